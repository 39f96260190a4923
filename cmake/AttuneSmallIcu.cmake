# For wheels and root file systems, which carry all libraries with them: ICU's data in a library like Debian's,
# libicudata.so, but with 0.6 of its 31 MB. Attune reads the tables of NFKC; the server, names of languages in English.
# Everything else is in ICU's code.
include_guard(GLOBAL)
find_library(ICU_STATIC_DATA libicudata.a REQUIRED)
find_program(ICUPKG icupkg PATHS /usr/sbin /sbin REQUIRED)
set(folder ${PROJECT_BINARY_DIR}/icu)
string(REGEX MATCH "^[0-9]+" version ${ICU_VERSION})
set(items nfkc.nrm icustd.res icuver.res ulayout.icu uemoji.icu root.res en.res pool.res metadata.res likelySubtags.res
    lang/root.res lang/en.res lang/pool.res)
file(MAKE_DIRECTORY ${folder}/lang ${folder}/small)
list(JOIN items "\n" lines)
file(WRITE ${folder}/items.txt "${lines}\n")
set(whole icudt${version}l)  # the "l" is for little-endian
foreach(command "${CMAKE_AR} x ${ICU_STATIC_DATA}"
        "${CMAKE_OBJCOPY} -O binary -j .rodata ${whole}_dat.o ${whole}.dat"
        "${ICUPKG} -x items.txt -d . ${whole}.dat"
        "${ICUPKG} -a items.txt -s . new small/${whole}.dat")  # ICU looks for its items by this name
  separate_arguments(words UNIX_COMMAND "${command}")
  execute_process(COMMAND ${words} WORKING_DIRECTORY ${folder} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(REMOVE ${folder}/${whole}_dat.o ${folder}/${whole}.dat)
file(WRITE ${folder}/data.cpp "asm(R\"(
  .section .rodata
  .balign 16
  .globl icudt${version}_dat
  .type icudt${version}_dat, @object
icudt${version}_dat:
  .incbin \"${folder}/small/${whole}.dat\"
  .size icudt${version}_dat, . - icudt${version}_dat
  .previous
)\");
")
add_library(attune_icu_data SHARED ${folder}/data.cpp)
set_target_properties(attune_icu_data PROPERTIES OUTPUT_NAME icudata SOVERSION ${version}
                      LIBRARY_OUTPUT_DIRECTORY ${folder})

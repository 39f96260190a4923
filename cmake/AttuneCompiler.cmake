# How the project's own sources are compiled: attune_build, ccache, sanitizers. Nothing of it is installed.
add_library(attune_build INTERFACE)
target_compile_options(attune_build INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow $<$<BOOL:${ATTUNE_WARNINGS_AS_ERRORS}>:-Werror>
  -fno-math-errno -fvisibility=hidden
  -fno-semantic-interposition  # calls within the library stay direct, though the code is position-independent
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # GCC 12 sees overlaps in std::string that are not there (its bug 105329)
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # and unset alternatives read in std::variant (its bug 80635)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

if(ATTUNE_SANITIZE)
  add_compile_options(-fsanitize=${ATTUNE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -O1
                      -g1)  # line numbers for reports alone: objects have a third of the size
  add_link_options(-fsanitize=${ATTUNE_SANITIZE})
  if(ATTUNE_SANITIZE MATCHES thread)  # it does not know fences; Asio's mutexes give the same order
    add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
  endif()
endif()

# attune_join(TARGET [ALONE sources...] [READERS folders...]): compiles the sources of each folder as one, because most
# of the time goes into the headers that they share. It does so if ATTUNE_JOIN_SOURCES is ON, or if it is TESTS and the
# target is a test program. These sources are still compiled alone: those that include themselves once for each
# instruction set (Highway), those with compile options of their own, and those whose path begins with an entry of
# ALONE, because they use a name of a neighbour for something else. The folders of READERS read texts and configurations
# once, and are optimised less. Two warnings are off in joined sources: they take names of one source for names of a
# header.
function(attune_join target)
  if(NOT ATTUNE_JOIN_SOURCES OR (ATTUNE_JOIN_SOURCES STREQUAL "TESTS" AND NOT target MATCHES "_test$"))
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ALONE;READERS")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP UNITY_BUILD_CODE_BEFORE_INCLUDE
    "#pragma GCC diagnostic ignored \"-Wshadow\"\n#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"")
  list(JOIN arg_ALONE "|" alone)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    file(STRINGS ${path} own_unit REGEX "foreach_target\\.h" LIMIT_COUNT 1)
    if(NOT own_unit AND (NOT alone OR NOT name MATCHES "^(${alone})"))
      cmake_path(GET name PARENT_PATH folder)
      string(MAKE_C_IDENTIFIER ${folder} group)
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  foreach(folder IN LISTS arg_READERS)  # the file that CMake makes of a group
    string(MAKE_C_IDENTIFIER ${folder} group)
    set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${target}.dir/Unity/unity_${group}_cxx.cxx
                                PROPERTIES COMPILE_OPTIONS -O1)
  endforeach()
endfunction()

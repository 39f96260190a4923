# How the project's own sources are compiled: attune_build, ccache, sanitizers. Nothing of it is installed.
add_library(attune_build INTERFACE)
target_compile_options(attune_build INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow -Werror
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
                      -g1)  # lines for reports, no more: a third of the object size
  add_link_options(-fsanitize=${ATTUNE_SANITIZE})
endif()

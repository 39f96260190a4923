# The program attune (ATTUNE_BUILD_PROGRAM). The server is a part of it and not of the library, so that programs that
# link the library need none of the server's packages.
file(GLOB_RECURSE serve_sources CONFIGURE_DEPENDS attune/serve/*.cpp)
list(FILTER serve_sources EXCLUDE REGEX "/language_detector${ATTUNE_CLD2_OTHER}\\.cpp$")
add_library(attune_serve STATIC ${serve_sources})
target_link_libraries(attune_serve PUBLIC attune_internal PRIVATE OpenSSL::SSL PkgConfig::ICU ${ATTUNE_CLD2_LIBRARY})
file(GLOB page_files CONFIGURE_DEPENDS attune/serve/page/*)
attune_embed(attune_serve attune::serve ${page_files})
target_compile_options(attune_serve PRIVATE -O1)  # it waits for models and sockets; Boost at -O3 takes minutes
attune_join(attune_serve)

# The command line, for the binary and for the Python module.
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS attune/cli/*.cpp)
list(FILTER cli_sources EXCLUDE REGEX "/cli/main\\.cpp$")
add_library(attune_command_line STATIC ${cli_sources})
target_link_libraries(attune_command_line PUBLIC attune_serve PRIVATE CLI11::CLI11)
target_compile_options(attune_command_line PRIVATE -O1)  # it waits for the library; -O3 would cost a third of the build
attune_join(attune_command_line ALONE attune/cli/report attune/cli/train attune/cli/bench/decode attune/cli/draw/line_chart
                                      attune/cli/draw/stacks)
attune_embed(attune_command_line attune::cli attune/cli/draw/heat_map.html)
add_executable(attune_cli attune/cli/main.cpp)
set_target_properties(attune_cli PROPERTIES OUTPUT_NAME attune)
target_link_libraries(attune_cli PRIVATE attune_command_line)

# What is installed has three components, each a package of its own (AttunePackages.cmake): the program (tools), the
# shared library (library), and what other projects are built with (development).
if(ATTUNE_BUILD_PROGRAM)
  install(TARGETS attune_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
endif()
install(TARGETS attune EXPORT attune-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)

# find_package(attune) for other projects.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/attune)
install(EXPORT attune-targets NAMESPACE attune:: DESTINATION ${package_folder})
configure_package_config_file(cmake/attune-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/attune-config.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/attune-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/attune-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/attune-config-version.cmake
        DESTINATION ${package_folder})
if(NOT BUILD_SHARED_LIBS)  # attune-config.cmake finds its libraries with these
  install(FILES cmake/FindOneDNN.cmake cmake/FindMPIC.cmake DESTINATION ${package_folder})
endif()

# pkg-config, also for compilers of C. For the static library the file also names what that links. Folders are relative
# to the file itself, so that an installed copy may be moved, except those that are given as absolute paths.
set(ATTUNE_PC_LIBS "")
set(ATTUNE_PC_REQUIRES "")
if(NOT BUILD_SHARED_LIBS)
  set(ATTUNE_PC_LIBS " -ltomlplusplus ${OpenMP_CXX_FLAGS} -lstdc++ -lm -pthread")
  if(ATTUNE_WITH_ONEDNN)
    string(PREPEND ATTUNE_PC_LIBS " -ldnnl")
  endif()
  if(ATTUNE_CUDA_BUILT AND NOT ATTUNE_CUDA STREQUAL "EMULATED")
    cmake_path(GET ATTUNE_CUDART PARENT_PATH folder)
    string(PREPEND ATTUNE_PC_LIBS " \"-L${folder}\" -lcudart_static -ldl -lrt")
  endif()
  foreach(library IN LISTS MPIC_LIBRARIES)
    cmake_path(GET library STEM name)
    string(REGEX REPLACE "^lib" " -l" name ${name})
    string(APPEND ATTUNE_PC_LIBS ${name})
  endforeach()
  set(ATTUNE_PC_REQUIRES "Requires: libhwy sentencepiece libpcre2-8 icu-uc fmt zlib")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(ATTUNE_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
else()
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
             OUTPUT_VARIABLE ATTUNE_PC_PREFIX)
  string(PREPEND ATTUNE_PC_PREFIX "\${pcfiledir}/")
endif()
foreach(folder LIBDIR INCLUDEDIR)
  set(ATTUNE_PC_${folder} ${CMAKE_INSTALL_${folder}})
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    string(PREPEND ATTUNE_PC_${folder} "\${prefix}/")
  endif()
endforeach()
configure_file(cmake/attune.pc.in attune.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/attune.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The public headers: c.h, attune.h and all headers that it includes, directly or not. They are looked up at
# installation.
install(CODE "set(sources [[${CMAKE_CURRENT_SOURCE_DIR}]])
set(includes [[${CMAKE_INSTALL_INCLUDEDIR}]])")
install(SCRIPT cmake/InstallHeaders.cmake)

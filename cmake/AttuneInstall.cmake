# find_package(attune) for other projects.
include(CMakePackageConfigHelpers)
install(TARGETS attune attune_private_flags attune_highway EXPORT attune-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS attune_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY attune/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attune FILES_MATCHING PATTERN "*.h" PATTERN "cli" EXCLUDE)
install(EXPORT attune-targets NAMESPACE attune:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attune)
configure_package_config_file(cmake/attune-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/attune-config.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attune)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/attune-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/FindOneDNN.cmake ${CMAKE_CURRENT_BINARY_DIR}/attune-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/attune-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/attune)

# For scripts/package. Adds man pages and completions to the program. cpack then makes a Debian package of each
# component of AttuneInstall.cmake, and an archive of all of them. A build with MPI makes one package alone, attune-mpi:
# the program with MPI, which is installed in place of the package attune.
find_program(HELP2MAN help2man REQUIRED)
find_program(GZIP gzip REQUIRED)
set(share ${PROJECT_BINARY_DIR}/share)
add_custom_command(OUTPUT ${share}/done
  COMMAND rm -rf ${share}
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/man-pages $<TARGET_FILE:attune_cli> ${share}/man/man1
  COMMAND ${GZIP} -9nr ${share}/man
  COMMAND mkdir -p ${share}/bash-completion/completions ${share}/zsh/vendor-completions ${share}/fish/vendor_completions.d
  COMMAND attune_cli completion bash > ${share}/bash-completion/completions/attune
  COMMAND attune_cli completion zsh > ${share}/zsh/vendor-completions/_attune
  COMMAND attune_cli completion fish > ${share}/fish/vendor_completions.d/attune.fish
  COMMAND touch ${share}/done
  DEPENDS attune_cli ${PROJECT_SOURCE_DIR}/scripts/man-pages VERBATIM)
add_custom_target(attune_share ALL DEPENDS ${share}/done)
install(DIRECTORY ${share}/man ${share}/bash-completion ${share}/zsh ${share}/fish
        DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)

include(AttuneSmallIcu)  # for scripts/root-filesystem; no package has it

# Each package has the license and the changes in the places where Debian has them.
set(version_of_library ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set(tools_package attune)
if(TARGET MPIC::MPIC)
  set(tools_package attune-mpi)
endif()
set(library_package libattune${version_of_library})
set(development_package libattune-dev)
set(documents ${PROJECT_BINARY_DIR}/documents)
configure_file(packaging/copyright ${documents}/copyright COPYONLY)
string(TIMESTAMP ATTUNE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)  # SOURCE_DATE_EPOCH, where that is set
configure_file(packaging/changelog.in ${documents}/changelog.Debian @ONLY)
configure_file(CHANGELOG.md ${documents}/changelog COPYONLY)
execute_process(COMMAND ${GZIP} -9nf changelog.Debian changelog WORKING_DIRECTORY ${documents}
                COMMAND_ERROR_IS_FATAL ANY)
foreach(component tools library development)
  install(FILES ${documents}/copyright ${documents}/changelog.Debian.gz ${documents}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${${component}_package} COMPONENT ${component})
endforeach()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME attune)
set(CPACK_PACKAGE_CONTACT "Attune's maintainers <attune@example.org>")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools library development)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(about "It has encoder-decoders (translation), encoders (classification,\n\
embeddings) and language models, with multi-head and latent attention, and\ntakes models of the Hugging Face hub as they are.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME ${tools_package})
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
if(TARGET MPIC::MPIC)
  set(CPACK_GENERATOR DEB)
  set(CPACK_COMPONENTS_ALL tools)
  foreach(relation PROVIDES CONFLICTS REPLACES)
    set(CPACK_DEBIAN_TOOLS_PACKAGE_${relation} attune)
  endforeach()
  set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS openmpi-bin)  # mpirun
  string(PREPEND about "Training can be shared by several machines, over MPI.\n")
endif()
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "trains, runs and serves Transformers\n\
The program attune trains Transformers, translates, generates, classifies\nand embeds text with them, and answers requests \
over HTTP.\n${about}")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library_package})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "library that trains and runs Transformers\n\
For programs in C++ and C that are linked with it.\n${about}")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME ${development_package})
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "${library_package} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "library that trains and runs Transformers, for development\n\
Headers for C++ and C, and files for CMake and pkg-config.\n${about}")
set(CPACK_PACKAGE_FILE_NAME attune-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})  # the archive, and its folder
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/packaging/archive.cmake)
include(CPack)

# MPI's C interface for projects in C++, as the target MPIC::MPIC: without the C++ interface and the compiler flags of
# MPI's wrapper, and its headers as system headers.
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI QUIET COMPONENTS CXX)
set(MPIC_LIBRARIES ${MPI_CXX_LIBRARIES})
list(FILTER MPIC_LIBRARIES EXCLUDE REGEX "mpi_cxx")
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MPIC REQUIRED_VARS MPIC_LIBRARIES MPI_CXX_FOUND)
if(MPIC_FOUND AND NOT TARGET MPIC::MPIC)
  add_library(MPIC::MPIC INTERFACE IMPORTED)
  set_target_properties(MPIC::MPIC PROPERTIES INTERFACE_LINK_LIBRARIES "${MPIC_LIBRARIES}"
                                              INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${MPI_CXX_INCLUDE_DIRS}")
endif()

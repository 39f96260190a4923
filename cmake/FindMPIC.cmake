# MPI's C interface for projects in C++: MPIC::MPIC is linked, without the C++ interface and the compiler flags of MPI's
# wrapper; the one source that calls it finds its headers in MPIC_INCLUDE_DIRS.
set(MPI_CXX_SKIP_MPICXX TRUE)
find_package(MPI QUIET COMPONENTS CXX)
set(MPIC_LIBRARIES ${MPI_CXX_LIBRARIES})
list(FILTER MPIC_LIBRARIES EXCLUDE REGEX "mpi_cxx")
set(MPIC_INCLUDE_DIRS ${MPI_CXX_INCLUDE_DIRS})
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MPIC REQUIRED_VARS MPIC_LIBRARIES MPI_CXX_FOUND)
if(MPIC_FOUND AND NOT TARGET MPIC::MPIC)
  add_library(MPIC::MPIC INTERFACE IMPORTED)
  set_target_properties(MPIC::MPIC PROPERTIES INTERFACE_LINK_LIBRARIES "${MPIC_LIBRARIES}")
endif()

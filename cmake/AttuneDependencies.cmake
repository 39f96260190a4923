# Every package comes from Debian 12 (scripts/setup installs them). docs/architecture.md says what each is for.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(OneDNN REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)

# One of two files stands for message passing: ATTUNE_MPI_OTHER is what tells the other one's name apart.
set(ATTUNE_MPI_OTHER "")
set(MPI_CXX_SKIP_MPICXX TRUE)  # the C interface alone
if(ATTUNE_MPI STREQUAL "AUTO")
  find_package(MPI COMPONENTS CXX)  # mpirun is found with it
elseif(ATTUNE_MPI)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()
if(MPI_CXX_FOUND)
  set(ATTUNE_MPI_OTHER "_missing")
endif()

# The scalar target stays as the fallback; the old SSE targets only cost compile time, and SVE's vectors, which have no size,
# cannot be kept in arrays: Arm machines run NEON.
add_library(attune_highway INTERFACE)
target_link_libraries(attune_highway INTERFACE PkgConfig::HWY)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(disabled_targets "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
else()
  set(disabled_targets "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")
endif()
target_compile_definitions(attune_highway INTERFACE "HWY_DISABLED_TARGETS=(${disabled_targets})")

set(ATTUNE_PRIVATE_LIBRARIES Threads::Threads OpenMP::OpenMP_CXX OneDNN::OneDNN attune_highway PkgConfig::SENTENCEPIECE
    ZLIB::ZLIB tomlplusplus::tomlplusplus)
if(MPI_CXX_FOUND)
  # As system headers, without the compiler flags of MPI's wrapper and without its C++ interface.
  list(FILTER MPI_CXX_LIBRARIES EXCLUDE REGEX "mpi_cxx")
  add_library(attune_mpi INTERFACE)
  target_include_directories(attune_mpi SYSTEM INTERFACE ${MPI_CXX_INCLUDE_DIRS})
  list(APPEND ATTUNE_PRIVATE_LIBRARIES $<BUILD_INTERFACE:attune_mpi> ${MPI_CXX_LIBRARIES})
endif()
set(ATTUNE_CLI_LIBRARIES CLI11::CLI11)

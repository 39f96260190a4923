# Every package comes from Debian 12 (scripts/setup installs them). docs/architecture.md says what each is for.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
# One of onednn_matmul.cpp and onednn_matmul_missing.cpp is compiled. ATTUNE_ONEDNN_OTHER is the suffix of the other
# one, which CMakeLists.txt leaves out.
set(ATTUNE_ONEDNN_OTHER "")
if(ATTUNE_WITH_ONEDNN)
  find_package(OneDNN REQUIRED)
  set(ATTUNE_ONEDNN_OTHER "_missing")
endif()
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(ICU REQUIRED IMPORTED_TARGET icu-uc)
if(ATTUNE_SMALL_ICU)
  include(AttuneSmallIcu)
  set_property(TARGET PkgConfig::ICU APPEND PROPERTY INTERFACE_LINK_LIBRARIES attune_icu_data)
endif()
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(tomlplusplus REQUIRED)

# Likewise one of mpi_transport.cpp and mpi_transport_missing.cpp is compiled.
set(ATTUNE_MPI_OTHER "")
if(ATTUNE_MPI STREQUAL "AUTO")
  find_package(MPIC)  # mpirun is found with it
elseif(ATTUNE_MPI)
  find_package(MPIC REQUIRED)
endif()
if(TARGET MPIC::MPIC)
  set(ATTUNE_MPI_OTHER "_missing")
endif()

if(ATTUNE_BUILD_PROGRAM)
  find_package(CLI11 REQUIRED)
  # The server's: Beast and Asio are headers alone.
  find_package(Boost 1.74 REQUIRED)
  find_package(OpenSSL REQUIRED)
  # Detection of languages is optional: likewise one of language_detector.cpp and language_detector_missing.cpp is
  # compiled.
  find_library(CLD2_LIBRARY cld2)
  find_path(CLD2_INCLUDE_DIR cld2/public/compact_lang_det.h)
  set(ATTUNE_CLD2_OTHER "")
  set(ATTUNE_CLD2_LIBRARY "")
  if(ATTUNE_CLD2 AND CLD2_LIBRARY AND CLD2_INCLUDE_DIR)
    set(ATTUNE_CLD2_OTHER "_missing")
    set(ATTUNE_CLD2_LIBRARY ${CLD2_LIBRARY})
  elseif(ATTUNE_CLD2 AND NOT ATTUNE_CLD2 STREQUAL "AUTO")
    message(FATAL_ERROR "ATTUNE_CLD2 = ${ATTUNE_CLD2}, but CLD2 (libcld2-dev) is missing")
  endif()
  mark_as_advanced(CLD2_LIBRARY CLD2_INCLUDE_DIR)
endif()

# What the sources need as well, as headers. Highway's scalar target stays as the fallback; the old SSE targets only
# cost compile time. SVE's vectors cannot be kept in arrays, since their size is not known: Arm machines run NEON.
target_link_libraries(attune_build INTERFACE nlohmann_json::nlohmann_json)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(disabled_targets "HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128")
else()
  set(disabled_targets "HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL")
  if(ATTUNE_SANITIZE)  # AVX-512: the same loops a third time, at several times the cost
    string(APPEND disabled_targets "|HWY_AVX3")
  elseif(ATTUNE_THIS_PROCESSOR)
    file(STRINGS /proc/cpuinfo avx512 REGEX "^flags.* avx512vl( |$)" LIMIT_COUNT 1)
    if(avx512)
      string(APPEND disabled_targets "|HWY_AVX2")
    else()
      string(APPEND disabled_targets "|HWY_AVX3")
    endif()
  endif()
endif()
target_compile_definitions(attune_build INTERFACE "HWY_DISABLED_TARGETS=(${disabled_targets})")

# What the library links. A program that links the static library needs all of it, see attune-config.cmake.in; one that
# links the shared library needs none of it.
set(ATTUNE_LIBRARIES Threads::Threads OpenMP::OpenMP_CXX PkgConfig::HWY PkgConfig::SENTENCEPIECE
    PkgConfig::PCRE2 PkgConfig::ICU fmt::fmt ZLIB::ZLIB tomlplusplus::tomlplusplus)
if(ATTUNE_WITH_ONEDNN)
  list(APPEND ATTUNE_LIBRARIES OneDNN::OneDNN)
endif()
if(TARGET MPIC::MPIC)
  list(APPEND ATTUNE_LIBRARIES MPIC::MPIC)
endif()

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
set(ATTUNE_CLI_LIBRARIES CLI11::CLI11)

# Every package comes from Debian 12 (scripts/setup installs them). docs/architecture.md says what each is for.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(dnnl REQUIRED CONFIG)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(SENTENCEPIECE REQUIRED IMPORTED_TARGET sentencepiece)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Protobuf REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)

# The scalar target stays as the fallback; the old SSE targets only cost compile time.
add_library(attune_highway INTERFACE)
target_link_libraries(attune_highway INTERFACE PkgConfig::HWY)
target_compile_definitions(attune_highway INTERFACE "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4|HWY_AVX3_DL)")

set(ATTUNE_PRIVATE_LIBRARIES Threads::Threads OpenMP::OpenMP_CXX DNNL::dnnl attune_highway PkgConfig::SENTENCEPIECE
    ZLIB::ZLIB protobuf::libprotobuf-lite tomlplusplus::tomlplusplus)
set(ATTUNE_CLI_LIBRARIES CLI11::CLI11)

# TensorBoard's event format, from our own description of the few fields that are written.
function(attune_compile_event_proto target)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated/attune/train)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(
    OUTPUT ${out}/event.pb.cc ${out}/event.pb.h
    COMMAND protobuf::protoc --cpp_out=${out} -I ${CMAKE_CURRENT_SOURCE_DIR}/attune/train
            ${CMAKE_CURRENT_SOURCE_DIR}/attune/train/event.proto
    DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/attune/train/event.proto)
  add_library(attune_event_proto OBJECT ${out}/event.pb.cc ${out}/event.pb.h)
  target_include_directories(attune_event_proto SYSTEM PUBLIC ${CMAKE_CURRENT_BINARY_DIR}/generated)
  target_link_libraries(attune_event_proto PUBLIC protobuf::libprotobuf-lite)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:attune_event_proto>)
  add_dependencies(${target} attune_event_proto)
  target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
endfunction()

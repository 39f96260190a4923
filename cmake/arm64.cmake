# The toolchain of the preset arm64: Debian's cross compiler and packages for 64-bit Arm (`scripts/setup arm64`). Tests
# run in QEMU, whose `-cpu max` has the instructions of int8 and bfloat16; `-DATTUNE_ARM64_CPU=cortex-a72` has neither.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(ATTUNE_ARM64_CPU max CACHE STRING "The processor that QEMU is for tests")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu ${ATTUNE_ARM64_CPU})

# SentencePiece cannot be installed for two architectures at once: the one for Arm is unpacked into .arm64.
cmake_path(SET unpacked NORMALIZE ${CMAKE_CURRENT_LIST_DIR}/../.arm64/usr/lib/aarch64-linux-gnu)
set(CMAKE_LIBRARY_PATH ${unpacked})
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig:${unpacked}/pkgconfig)

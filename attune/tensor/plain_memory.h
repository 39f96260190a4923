#pragma once
// Memory of the plain device. Its pages have no permissions while no kernel of that device runs: host code that reads
// device memory by mistake crashes in the tests instead of working by luck.

#include <cstddef>
#include <memory>
#include <span>

#include "attune/tensor/buffer.h"

namespace attune {

/// Uninitialised memory of the plain device, aligned to 64 bytes. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<Buffer> allocate_plain_buffer(size_t bytes);

/// All memory that was ever handed out, to compare its whole state. Accessible while a PlainAccess lives.
std::span<std::byte> plain_memory();

}  // namespace attune

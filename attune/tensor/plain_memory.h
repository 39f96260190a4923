#pragma once
// Memory of the plain device. Its pages have no permissions while no kernel of that device runs, so that host code
// which reads device memory by mistake ends with a fault in the tests instead of working by luck.

#include <cstddef>
#include <memory>

#include "attune/tensor/buffer.h"

namespace attune {

/// Memory of the plain device, aligned to 64 bytes, of no particular content. Thread-safe. Throws std::bad_alloc.
std::shared_ptr<Buffer> allocate_plain_buffer(size_t bytes);

}  // namespace attune

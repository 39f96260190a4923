#pragma once

#include <cstdint>

namespace attune::cpu {

/// Bytes of the vectors in which kernels compute on this processor: 64 with AVX-512. Takes no time, while
/// hwy::SupportedTargets() takes 15 microseconds on a virtual machine.
int64_t vector_bytes();

}  // namespace attune::cpu

#pragma once

namespace attune::cpu {

/// Whether kernels compute in vectors of 512 bits on this processor: with AVX-512. Takes no time, while
/// hwy::SupportedTargets() takes 15 microseconds on a virtual machine.
bool has_wide_vectors();

}  // namespace attune::cpu

#pragma once
// Which devices this build has beside Cpu and Plain. A build with CUDA puts a file that says true in front of this one
// (cmake/AttuneCuda.cmake).

namespace attune {

inline constexpr bool kBuiltWithCuda = false;

}  // namespace attune

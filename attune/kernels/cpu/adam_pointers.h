#pragma once

#include <cstdint>

namespace attune {

/// AdamTensors as pointers; `average` may be null.
template <class T>
struct AdamPointers {
  T* parameter;
  const T* gradient;
  T* m;
  T* v;
  T* average;

  AdamPointers from(int64_t i) const {
    return {parameter + i, gradient + i, m + i, v + i, average == nullptr ? average : average + i};
  }
};

}  // namespace attune

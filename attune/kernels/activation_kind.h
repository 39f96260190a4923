#pragma once

namespace [[gnu::visibility("default")]] attune {

/// An element-wise function, alone or at the end of a matrix product. The formulas are in ops/activation.h.
enum class Activation { none, relu, gelu, gelu_tanh, gelu_sigmoid, silu, tanh };

}  // namespace attune

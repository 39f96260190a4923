#pragma once

namespace [[gnu::visibility("default")]] attune {

/// What a number goes through, alone or at the end of a product. The formulas are in ops/activation.h.
enum class Activation { none, relu, gelu, gelu_tanh, silu, tanh };

}  // namespace attune

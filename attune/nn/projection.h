#pragma once
// All products of inputs with parameters are computed here.

#include <array>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "attune/nn/adapters/adapter.h"
#include "attune/nn/module.h"
#include "attune/ops/cross_entropy.h"
#include "attune/ops/linear/linear.h"

namespace [[gnu::visibility("default")]] attune {

/// The parameters of a product x W^T + b.
struct Projection {
  Parameter weight;                                                // [out, in]
  Parameter bias;                                                  // [out], or undefined
  std::shared_ptr<Adapter> adapter = std::make_shared<Adapter>();  // of x W^T; copies of a projection share it

  void visit(Visitor& v) {
    v("weight", weight);
    if (bias.defined()) v("bias", bias);
    v("lora", *adapter);
  }
};

/// New parameters; see new_parameter().
Projection new_projection(int64_t in, int64_t out, bool bias);
/// New parameters for several products of one input, adjacent in memory.
std::vector<Projection> new_adjacent_projections(int64_t in, std::initializer_list<int64_t> outs, bool bias);

// All of these read the panels of weights that have them, provided that nothing is recorded and that products are in
// float32 or the panels in bfloat16. Else they read the tensors, and throw ShapeError for a weight that has only
// panels. If bfloat16_products(), panels in bfloat16 are multiplied with x in bfloat16. Adapters have products of their
// own.

/// dropout(activation(x W^T + b)), see linear().        [..., in] -> [..., out]
Tensor project(const Tensor& x, const Projection& projection, const LinearOptions& options = {});

using Projections = std::initializer_list<const Projection*>;  // 2 or 3
/// The products of x with each projection, side by side, as one product. `bf16_output` as in LinearOptions; ignored if
/// a projection has an adapter.        [..., in] -> [..., sum of out]
Tensor project_fused(const Tensor& x, Projections projections, bool bf16_output = false);
/// The same, each in its own tensor, the third undefined for two projections; panels are multiplied as one product.
std::array<Tensor, 3> project_each(const Tensor& x, Projections projections);

/// Segments of rows, each times the parameters of its own projection, see segment_linear(). Projections of empty
/// segments are not read. `bf16_output` as in LinearOptions.        [rows, in] -> [rows, out]
Tensor project_segments(const Tensor& x, std::span<const int64_t> offsets,
                        std::span<const Projection* const> projections, bool bf16_output);

/// Only the columns columns[r] of row r, see linear_columns(). Not differentiable.
Tensor project_columns(const Tensor& x, const Projection& projection,
                       std::span<const std::span<const int32_t>> columns);

/// The cross entropy of project(x), which never stores all logits.
CrossEntropy projection_loss(const Tensor& x, const Projection& projection, const Indices& labels,
                             const CrossEntropyOptions& options);

}  // namespace attune

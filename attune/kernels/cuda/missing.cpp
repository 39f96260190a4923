// What has no kernel for GPUs yet: refused by name, never computed on the host.

#include "attune/base/fail.h"
#include "attune/kernels/activation.h"
#include "attune/kernels/adam.h"
#include "attune/kernels/bfloat16.h"
#include "attune/kernels/column_sums.h"
#include "attune/kernels/concat_heads.h"
#include "attune/kernels/cross_entropy.h"
#include "attune/kernels/dropout.h"
#include "attune/kernels/embedding.h"
#include "attune/kernels/gated_activation.h"
#include "attune/kernels/gather.h"
#include "attune/kernels/layer_norm.h"
#include "attune/kernels/linear_columns.h"
#include "attune/kernels/linear_gradient.h"
#include "attune/kernels/log_mean_exp.h"
#include "attune/kernels/matmul.h"
#include "attune/kernels/mean_over_heads.h"
#include "attune/kernels/mean_pool.h"
#include "attune/kernels/page_rows.h"
#include "attune/kernels/panel_linear.h"
#include "attune/kernels/panel_weight.h"
#include "attune/kernels/per_head_matmul.h"
#include "attune/kernels/reduce.h"
#include "attune/kernels/rotary.h"
#include "attune/kernels/scale.h"
#include "attune/kernels/top_candidates.h"
#include "attune/tensor/device_error.h"

namespace attune {
namespace {

[[noreturn]] void refuse(std::string_view kernel) {
  fail<DeviceError>("{}: has no kernel for GPUs yet", kernel);
}

}  // namespace

void activation_forward(Cuda, Activation, const Tensor&, const Tensor&) {
  refuse("activation_forward");
}
void activation_backward(Cuda, Activation, const Tensor&, const Tensor&, const Tensor&) {
  refuse("activation_backward");
}
void adam_step(Cuda, const AdamTensors&, double, const AdamStepArguments&) {
  refuse("adam_step");
}
void to_bfloat16(Cuda, const Tensor&, const Tensor&) {
  refuse("to_bfloat16");
}
void widen(Cuda, const Tensor&, const Tensor&) {
  refuse("widen");
}
void column_sums(Cuda, const Tensor&, const Tensor&, bool) {
  refuse("column_sums");
}
void concat_heads_forward(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("concat_heads_forward");
}
void concat_heads_backward(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("concat_heads_backward");
}
void cross_entropy_forward(Cuda, const CrossEntropyInputs&, const Tensor&) {
  refuse("cross_entropy_forward");
}
void cross_entropy_backward(Cuda, const CrossEntropyInputs&, const Tensor&, double, const Tensor&) {
  refuse("cross_entropy_backward");
}
void cross_entropy_loss(Cuda, const CrossEntropyInputs&, double, const Tensor&, const Tensor&) {
  refuse("cross_entropy_loss");
}
void cross_entropy_totals(Cuda, const Tensor&, const Tensor&) {
  refuse("cross_entropy_totals");
}
void dropout_rows(Cuda, const Tensor&, const Tensor&, const Tensor&, const DropoutMask&) {
  refuse("dropout_rows");
}
void embedding_forward(Cuda, const Tensor&, const Tensor&, double, const Tensor&) {
  refuse("embedding_forward");
}
void embedding_backward(Cuda, const Tensor&, const Tensor&, double, const Tensor&) {
  refuse("embedding_backward");
}
void add_rows(Cuda, const AddRows&) {
  refuse("add_rows");
}
void gated_activation_forward(Cuda, Activation, const Tensor&, const Tensor&) {
  refuse("gated_activation_forward");
}
void gated_activation_backward(Cuda, Activation, const Tensor&, const Tensor&, const Tensor&) {
  refuse("gated_activation_backward");
}
void gather_forward(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("gather_forward");
}
void gather_backward(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("gather_backward");
}
void layer_norm_forward(Cuda, const LayerNormForward&) {
  refuse("layer_norm_forward");
}
void layer_norm_backward(Cuda, const LayerNormBackward&) {
  refuse("layer_norm_backward");
}
void linear_columns(Cuda, const Tensor&, const Tensor&, const Tensor&, std::span<const ColumnGroup>, const Tensor&) {
  refuse("linear_columns");
}
void linear_gradient(Cuda, const LinearGradient&) {
  refuse("linear_gradient");
}
void log_mean_exp(Cuda, std::span<const Tensor>, const Tensor&) {
  refuse("log_mean_exp");
}
void matmul(Cuda, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const MatmulForm&) {
  refuse("matmul");
}
void mean_over_heads(Cuda, const Tensor&, const Tensor&) {
  refuse("mean_over_heads");
}
void mean_pool_forward(Cuda, const Tensor&, std::span<const int32_t>, const Tensor&) {
  refuse("mean_pool_forward");
}
void mean_pool_backward(Cuda, const Tensor&, std::span<const int32_t>, const Tensor&) {
  refuse("mean_pool_backward");
}
void write_rows(Cuda, const Tensor&, std::span<const int32_t>, const Pages&) {
  refuse("write_rows");
}
void gather_rows(Cuda, const Pages&, std::span<const int32_t>, int64_t, const Tensor&) {
  refuse("gather_rows");
}
void panel_linear(Cuda, const Tensor&, std::span<const PanelPart>, Activation) {
  refuse("panel_linear");
}
void panel_linear_columns(Cuda, const Tensor&, const Panels&, const Tensor&, std::span<const ColumnGroup>,
                          const Tensor&) {
  refuse("panel_linear_columns");
}
void pack_panels(Cuda, const Tensor&, const Panels&) {
  refuse("pack_panels");
}
void unpack_rows(Cuda, const Panels&, const Tensor&, const Tensor&) {
  refuse("unpack_rows");
}
void per_head_matmul(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("per_head_matmul");
}
void per_head_matmul_transposed(Cuda, const Tensor&, const Tensor&, const Tensor&) {
  refuse("per_head_matmul_transposed");
}
double sum_of_squares(Cuda, const Tensor&) {
  refuse("sum_of_squares");
}
void rotary_table(Cuda, const RotaryFrequencies&, const Tensor&, int64_t, const Tensor&) {
  refuse("rotary_table");
}
void rotary_rows(Cuda, const RotaryRows&) {
  refuse("rotary_rows");
}
void scale(Cuda, const Tensor&, double) {
  refuse("scale");
}
int64_t top_candidates(Cuda, const CandidateRow&, const CandidateQuery&, std::span<Candidate>) {
  refuse("top_candidates");
}
void penalize_tokens(Cuda, const CandidateRow&, std::span<const int32_t>, double) {
  refuse("penalize_tokens");
}

}  // namespace attune

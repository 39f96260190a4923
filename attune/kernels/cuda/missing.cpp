// What has no kernel for GPUs yet: refused by name, never computed on the host.

#include "attune/base/fail.h"
#include "attune/kernels/attention.h"
#include "attune/kernels/cached_attention.h"
#include "attune/kernels/guided_attention.h"
#include "attune/tensor/device_error.h"

namespace attune {
namespace {

[[noreturn]] void refuse(std::string_view kernel) {
  fail<DeviceError>("{}: has no kernel for GPUs yet", kernel);
}

}  // namespace

void attention_forward(Cuda, const AttentionInputs&, const Tensor&, const Tensor&) {
  refuse("attention_forward");
}
void attention_backward(Cuda, const AttentionInputs&, const Tensor&, const Tensor&, const Tensor&,
                        const AttentionGradients&) {
  refuse("attention_backward");
}
void attention_weights(Cuda, const AttentionInputs&, const Tensor&, const Tensor&) {
  refuse("attention_weights");
}
void cached_attention_forward(Cuda, const CachedAttention&) {
  refuse("cached_attention_forward");
}
double guided_attention_forward(Cuda, const GuidedAttentionInputs&, const Tensor&) {
  refuse("guided_attention_forward");
}
void guided_attention_backward(Cuda, const GuidedAttentionInputs&, const Tensor&, double, const HeadColumns&,
                               const HeadColumns&) {
  refuse("guided_attention_backward");
}

}  // namespace attune

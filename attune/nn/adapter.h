#pragma once
// Low-rank adapters of projections: Hu et al. 2021, "LoRA".

#include "attune/nn/dropout.h"
#include "attune/nn/lora_config.h"
#include "attune/nn/module.h"

namespace [[gnu::visibility("default")]] attune {

/// The place for an adapter that every projection has. With an adapter, the projection's product x W^T becomes
/// x W^T + s (x A^T) B^T. Without one it has no parameters.
class Adapter final : public Module {
 public:
  Adapter() : dropout_(0) {}

  /// `a` is A [rank, in], `b` is B [out, rank]. `dropout` is applied to x in front of A.
  void set(Tensor a, Tensor b, double scale, double dropout = 0);
  void remove();
  bool there() const { return a_.tensor.defined(); }

  /// s dropout(x) A^T        [..., in] -> [..., rank]
  Tensor down(const Tensor& x) const;
  Tensor dropped(const Tensor& x) const { return dropout_(x); }

  const Tensor& a() const { return a_.tensor; }
  const Tensor& b() const { return b_.tensor; }
  double scale() const { return scale_; }
  int64_t rank() const { return a_.tensor.size(0); }
  /// s B A, which the adapter adds to W        [out, in]
  Tensor product() const;

  void visit(Visitor& v) override;

 private:
  Parameter a_, b_;
  double scale_ = 1;
  Dropout dropout_;
};

}  // namespace attune

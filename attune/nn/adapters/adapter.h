#pragma once
// Low-rank adapters of projections: Hu et al. 2021, "LoRA".

#include <memory>
#include <vector>

#include "attune/nn/adapters/adapter_rows.h"
#include "attune/nn/adapters/lora_config.h"
#include "attune/nn/dropout.h"
#include "attune/nn/module.h"

namespace [[gnu::visibility("default")]] attune {

/// The place for an adapter that every projection has. With an adapter, the projection's product x W^T becomes
/// x W^T + s (x A^T) B^T. Without one it has no parameters.
///
/// In inference there can be several to choose from: rows of a batch then have the ones that execution().adapter_rows
/// names (Sheng et al. 2023, "S-LoRA"; Chen et al. 2023, "Punica").
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

  /// Adds adapter `number` to those to choose from: `a` is A [rank, in], `b` is B [out, rank], both float32. Rows that
  /// choose a number that was not added get nothing.
  void add_choice(int32_t number, const Tensor& a, const Tensor& b, double scale);
  /// Whether there are adapters to choose from, and rows of the batch that choose.
  bool is_chosen() const { return !choices_.empty() && execution().adapter_rows != nullptr; }
  /// s (x A^T) B^T of the rows that have an adapter, each with its own. A row of the result depends on that row of x
  /// alone, bit for bit.        x [rows.sorted().size(), in] -> [same, out]
  Tensor chosen(const Tensor& x, const AdapterRows& rows, int64_t out) const;

  void visit(Visitor& v) override;

 private:
  struct Choice {
    std::shared_ptr<const PanelWeight> a, b;  // A and s B; null: the adapter adds nothing here
  };
  Parameter a_, b_;
  double scale_ = 1;
  Dropout dropout_;
  std::vector<Choice> choices_;  // by number
};

}  // namespace attune

#pragma once

#include <memory>
#include <span>
#include <vector>

#include "attune/kernels/routing_form.h"
#include "attune/nn/feed_forward.h"

namespace attune {

class ExpertBalance;  // attune/nn/expert_balance.h

struct MixtureOfExpertsConfig {
  FeedForwardConfig expert = {};  // of each expert
  int64_t experts = 8;
  int64_t shared_experts = 0;  // work on every token, as one network of the width shared_experts * d_ff
  ExpertScores scores = ExpertScores::softmax;
  RoutingForm routing = {};
  bool choice_bias = false;  // a number for each expert, added to its score for the choice alone
  double balance_loss = 0;   // coefficient of balance_loss() in training
  double bias_rate = 0;      // by which an update moves the choice bias
};

/// MoE(x) = shared(x) + sum over the chosen experts e of w_e(x) FFN_e(x)        [tokens, d_model] -> same
///   router.weight       [experts, d_model]: scores are softmax(x W^T) or sigmoid(x W^T), in float32 or float64
///   router.choice_bias  [experts]: no gradient trains it
///   experts.E           linear_1 and linear_2 of each expert, as in FeedForward
///   shared_experts      a FeedForward, or none
/// Each token chooses its experts, see route(), and none is dropped. A batch's rows are put in the order of their
/// experts, so that each expert is a product with its rows, and experts that nobody chose are not read. Sources:
/// Shazeer et al. 2017; Fedus et al. 2021, "Switch Transformers"; Dai et al. 2024, "DeepSeekMoE" (shared experts).
class MixtureOfExperts final : public FeedForwardNetwork {
 public:
  explicit MixtureOfExperts(const MixtureOfExpertsConfig& config);
  static int64_t parameter_count(const MixtureOfExpertsConfig& config);
  Tensor operator()(const Tensor& x) const override;
  void visit(Visitor& v) override;

  // For ExpertBalance.

  int64_t experts() const { return config_.experts; }
  /// Recorded forward passes report to `balance`, as mixture `index`; null: to nobody.
  void set_balance(ExpertBalance* balance, size_t index) {
    balance_ = balance;
    index_ = index;
  }
  /// Moves the bias of each expert by the rate, against the sign of its count's distance from the mean.
  void move_bias(std::span<const int64_t> counts);

 private:
  struct Expert final : Module {
    Expert(const FeedForwardConfig& config, int64_t inner);
    void visit(Visitor& v) override;
    Projection linear_1, linear_2;
  };

  /// The scores of all experts for each token.        [tokens, d_model] -> [tokens, experts]
  Tensor scores(const Tensor& x) const;
  /// The rows of each expert are padded to a multiple of this number, see sort_by_expert().
  int64_t unit_of(int64_t tokens) const;
  /// Returns the weights. While there is an ExpertBalance, their gradient includes that of the balance loss.
  Tensor balanced(const Tensor& weights, const Tensor& scores, std::span<const int64_t> counts) const;
  Tensor project(const Tensor& x, const std::vector<int64_t>& offsets, Projection Expert::*part) const;

  MixtureOfExpertsConfig config_;
  std::optional<Activation> gate_;  // of gated units
  Parameter router_, choice_bias_;  // choice_bias_ may be undefined
  std::vector<std::unique_ptr<Expert>> experts_;
  std::unique_ptr<FeedForward> shared_;  // or null
  Dropout dropout_;
  ExpertBalance* balance_ = nullptr;
  size_t index_ = 0;  // of this mixture in balance_
};

}  // namespace attune

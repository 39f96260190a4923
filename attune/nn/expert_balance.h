#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attune/nn/mixture_of_experts.h"

namespace attune {

/// What one update of a model has to know and to do so that its experts get equally many tokens. While it lives, the
/// model's mixtures of experts say here which experts the tokens of recorded forward passes chose, and the loss of
/// their balance is part of the gradient. One thread at a time may train the model.
class ExpertBalance {
 public:
  explicit ExpertBalance(Module& model);
  ~ExpertBalance();
  ExpertBalance(const ExpertBalance&) = delete;
  ExpertBalance& operator=(const ExpertBalance&) = delete;

  /// The balance loss of the next forward passes is multiplied with this: their share of the update.
  void set_loss_weight(double weight) { loss_weight_ = weight; }
  double loss_weight() const { return loss_weight_; }
  /// Called by mixture `index` with the number of choices of each of its experts.
  void add(size_t index, std::span<const int64_t> counts);

  /// The counts of all mixtures, one after the other in the order of visit(). Those of several ranks are added up
  /// before they are given to the functions below.
  const std::vector<int64_t>& counts() const { return counts_; }
  /// Moves the choice biases of mixtures that have a rate: down by it for experts with more tokens than the mean, up
  /// for those with fewer. Source: DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2; Wang et al. 2024.
  void move_biases(std::span<const int64_t> counts) const;
  /// The largest number of tokens that an expert got, over the mean of its mixture; 0 without experts.
  double imbalance(std::span<const int64_t> counts) const;

 private:
  std::vector<MixtureOfExperts*> mixtures_;
  std::vector<size_t> first_;  // of each mixture, in counts_; and the end
  std::vector<int64_t> counts_;
  double loss_weight_ = 1;
};

}  // namespace attune

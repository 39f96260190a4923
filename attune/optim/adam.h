#pragma once
// Adam (Kingma & Ba 2015) and AdamW (Loshchilov & Hutter 2019).

#include <cstdint>
#include <string>
#include <vector>

#include "attune/nn/module.h"
#include "attune/optim/config.h"

namespace [[gnu::visibility("default")]] attune {

/// The elements [begin, end) of a parameter in row-major order.
struct ElementRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// What Adam keeps of one parameter, in its dtype; in its shape, or [size] where it updates only a part of it.
struct AdamState {
  std::string name;
  Tensor m, v;     // running means of the gradient and of its square
  Tensor average;  // moving average of the parameter; undefined unless that is on
  ElementRange range = {};
};

/// Reads and writes each parameter once a step: bias correction, clipping, weight decay and the moving average are one
/// pass. Parameters without a gradient stay as they are, their average too.
class Adam {
 public:
  /// The parameters are updated in place and must outlive this. Weight decay is applied to matrices only: a vector
  /// (bias, weight of a norm) has no scale to keep small. `moving_average` is the decay of an exponential moving
  /// average of the parameters, 0 for none; it starts from the parameters of the moment. `owned` says which part of
  /// each parameter this updates and keeps states of, where others have the rest (ZeRO stage 1, Rajbhandari et al.
  /// 2020); empty: all. Throws ConfigError for a number out of range.
  Adam(std::vector<NamedParameter> parameters, const OptimizerConfig& config, double moving_average = 0,
       const std::vector<ElementRange>& owned = {});

  /// One update from the parameters' gradients, which stay. Returns their global norm before clipping (Pascanu et al.
  /// 2013: above clip_norm, all are scaled by clip_norm / norm). When the norm is not finite, nothing is changed.
  double step(double learning_rate);
  /// The same with a norm that somebody else has formed; it has to be finite.
  void step(double learning_rate, double norm);

  /// Updates so far, which the bias correction depends on. The moving average follows with
  /// min(moving_average, (1 + steps) / (10 + steps)), so that it soon forgets the random start.
  int64_t steps() const { return steps_; }

  /// The tensors to store; writing into them and set_steps() continue an earlier optimizer.
  const std::vector<AdamState>& states() const { return states_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// Exchanges the parameters and their moving averages, if there are any; a second call takes it back.
  void swap_averages() const;

 private:
  double gradient_norm() const;

  std::vector<NamedParameter> parameters_;
  std::vector<AdamState> states_;  // in the order of parameters_
  OptimizerConfig config_;
  double moving_average_;
  int64_t steps_ = 0;
};

}  // namespace attune

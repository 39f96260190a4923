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

/// The state of one parameter. The tensors have its dtype and its shape, or [range.size()] if only a part is updated.
struct AdamState {
  std::string name;
  Tensor m, v;     // running means of the gradient and of its square
  Tensor average;  // moving average of the parameter; undefined unless moving averages are on
  ElementRange range = {};
};

/// Reads and writes each parameter once per step: bias correction, clipping, weight decay and the moving average are
/// one pass. Parameters without a gradient do not change, nor do their averages.
class Adam {
 public:
  /// The parameters are updated in place and must outlive this. Weight decay applies only to matrices: a vector (bias,
  /// weight of a norm) has no scale to keep small. `moving_average` is the decay of an exponential moving average of
  /// the parameters, 0 for none; it starts from the current parameters. `owned` is the part of each parameter that this
  /// object updates and keeps states of, while other ranks have the rest (ZeRO stage 1, Rajbhandari et al. 2020);
  /// empty: all. `rates` are factors of the learning rate, one for each parameter; empty: 1. Throws ConfigError for a
  /// number out of range, and ShapeError for parameters on several devices, and for ranges or rates that are not as
  /// many as the parameters.
  Adam(std::vector<NamedParameter> parameters, const OptimizerConfig& config, double moving_average = 0,
       const std::vector<ElementRange>& owned = {}, std::vector<double> rates = {});

  /// One update from the parameters' gradients, which are kept. Returns their global norm before clipping (Pascanu et
  /// al. 2013: above clip_norm, all are scaled by clip_norm / norm). If the norm is not finite, nothing is changed.
  /// Waits for the device. Throws ShapeError for a gradient on another device than its parameter.
  double step(double learning_rate);

  /// step() in three calls, none of which waits for the device. The first adds the squares of all gradients to sum [1],
  /// float64 on device(). Throws as step().
  void add_squares(const Tensor& sum) const;
  /// The second starts the update. `numbers` [n], float64 on device(): the first is the sum of the squares of all
  /// gradients. If one of them is not finite, the update changes nothing.
  void start_step(double learning_rate, const Tensor& numbers);
  /// The third counts the update in steps(). To be called once the numbers are known to be finite.
  void count_step() { ++steps_; }

  /// Where the parameters are.
  Device device() const { return parameters_.empty() ? Device{} : parameters_.front().tensor->device(); }

  /// The number of updates so far, for the bias correction. The decay of the moving average is
  /// min(moving_average, (1 + steps) / (10 + steps)), so that it soon forgets the random start.
  int64_t steps() const { return steps_; }

  /// The tensors to store. To continue an earlier optimizer, write into them and call set_steps().
  const std::vector<AdamState>& states() const { return states_; }
  void set_steps(int64_t steps) { steps_ = steps; }

  /// Swaps the parameters and their moving averages, if there are any; a second call swaps them back.
  void swap_averages() const;

 private:
  std::vector<NamedParameter> parameters_;
  std::vector<AdamState> states_;  // in the order of parameters_
  OptimizerConfig config_;
  double moving_average_;
  std::vector<double> rates_;  // in the order of parameters_, or empty
  int64_t steps_ = 0;
};

}  // namespace attune

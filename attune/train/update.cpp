#include "attune/train/update.h"

#include <cmath>
#include <optional>

#include "attune/autograd/graph.h"

namespace attune {
namespace {

std::optional<std::string> bad_parameter(Module& model) {
  for (const auto& [name, parameter] : named_parameters(model))
    if (const int64_t i = first_not_finite(*parameter); i >= 0)
      return fmt::format("parameter {} is not finite at element {}", name, i);
  return std::nullopt;
}

// Parameters come first: where one is not finite, every gradient may be its consequence.
std::string first_culprit(Module& model) {
  if (const auto parameter = bad_parameter(model)) return *parameter;
  for (const auto& [name, parameter] : named_parameters(model)) {
    const Tensor g = gradient(*parameter);
    if (!g.defined()) continue;
    if (const int64_t i = first_not_finite(g); i >= 0)
      return fmt::format("the gradient of {} is not finite at element {}", name, i);
  }
  return "all parameters and gradients are finite";
}

std::string batches_of(const UpdateInput& input) {
  const int64_t last = input.first_batch + static_cast<int64_t>(input.batches.size()) - 1;
  return last == input.first_batch ? fmt::format("batch {}", last)
                                   : fmt::format("batches {} to {}", input.first_batch, last);
}

[[noreturn]] void fail_not_finite(const char* what, double value, Module& model, const UpdateInput& input,
                                  const std::string& batches) {
  const std::string culprit = first_culprit(model);
  clear_gradients(model);
  fail<NumericError>("step {}, epoch {}, {}: the {} is {}; {}", input.step, input.epoch, batches, what, value, culprit);
}

}  // namespace

UpdateResult update(Module& model, Adam& adam, const UpdateInput& input) {
  UpdateResult result;
  for (const TrainingBatch& batch : input.batches) {
    result.labels += batch.labels;
    result.tokens += batch.tokens;
  }
  const auto labels = static_cast<double>(result.labels);
  std::optional<ProductPrecisionScope> precision;
  if (!input.batches.empty()) precision.emplace(input.batches.front().precision);
  for (size_t i = 0; i < input.batches.size(); ++i) {
    set_training(model, input.seed, input.first_forward + i);
    const CrossEntropy cross_entropy =
        input.batches[i].loss({.label_smoothing = input.label_smoothing, .scale = 1 / labels});
    const double loss = cross_entropy.loss.item();
    backward(cross_entropy.loss);
    if (!std::isfinite(loss))
      fail_not_finite("loss", loss, model, input, fmt::format("batch {}", input.first_batch + static_cast<int64_t>(i)));
    result.loss += loss * labels;
    result.nll += cross_entropy.sum_negative_log_likelihood;
  }
  precision.reset();  // the parameters change
  result.gradient_norm = adam.step(input.learning_rate);
  if (!std::isfinite(result.gradient_norm))
    fail_not_finite("gradient's norm", result.gradient_norm, model, input, batches_of(input));
  clear_gradients(model);
  return result;
}

void check_parameters(Module& model, int64_t step) {
  if (const auto parameter = bad_parameter(model)) fail<NumericError>("step {}: {}", step, *parameter);
}

}  // namespace attune

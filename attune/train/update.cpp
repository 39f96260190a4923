#include "attune/train/update.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/nn/dropout.h"
#include "attune/nn/expert_balance.h"
#include "attune/tensor/device_error.h"
#include "attune/train/data_parallel.h"

namespace attune {
namespace {

std::optional<std::string> bad_parameter(Module& model) {
  for (const auto& [name, parameter] : named_parameters(model))
    if (const int64_t i = first_not_finite(*parameter); i >= 0)
      return fmt::format("parameter {} is not finite at element {}", name, i);
  return std::nullopt;
}

// Where the first gradient with a bad number is, or nothing.
struct BadGradient {
  int64_t parameter = std::numeric_limits<int64_t>::max(), element = -1;
};

// `reduced`: only the parts that Adam updates here have the sum of all ranks.
BadGradient bad_gradient(Module& model, const Adam& adam, bool reduced) {
  const std::vector<NamedParameter> parameters = trained_parameters(model);
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Tensor g = gradient(*parameters[p].tensor);
    if (!g.defined()) continue;
    const ElementRange range = reduced ? adam.states()[p].range : ElementRange{0, g.numel()};
    const int64_t i = first_not_finite(g.detach().reshape({g.numel()}).rows(range.begin, range.end));
    if (i >= 0) return {static_cast<int64_t>(p), range.begin + i};
  }
  return {};
}

// Parameters come first: where one is not finite, every gradient may be its consequence.
// With a communicator, all ranks look for it together.
std::string first_culprit(Module& model, const Adam& adam, Communicator* communicator) {
  if (const auto parameter = bad_parameter(model)) return *parameter;
  BadGradient bad = bad_gradient(model, adam, communicator != nullptr);
  if (communicator != nullptr)
    bad = std::ranges::min(communicator->all_gather_values(bad), {},
                           [](const BadGradient& b) { return std::pair(b.parameter, b.element); });
  if (bad.element < 0) return "all parameters and gradients are finite";
  return fmt::format("the gradient of {} is not finite at element {}",
                     trained_parameters(model)[static_cast<size_t>(bad.parameter)].name, bad.element);
}

std::string batches_of(const UpdateInput& input) {
  const int64_t last = input.first_batch + static_cast<int64_t>(input.batches.size()) - 1;
  return last == input.first_batch ? fmt::format("batch {}", last)
                                   : fmt::format("batches {} to {}", input.first_batch, last);
}

// "step 3, epoch 1, batch 7: the loss is nan; parameter ...".
std::string not_finite(const char* what, double value, const UpdateInput& input, const std::string& batches,
                       const std::string& culprit) {
  return fmt::format("step {}, epoch {}, {}: the {} is {}; {}", input.step, input.epoch, batches, what, value, culprit);
}

[[noreturn]] void give_up(Module& model, const std::string& message) {
  clear_gradients(model);
  throw NumericError(message);
}

// While the device works on batch i, the host sends it the next one. What cannot be sent is copied where it is used,
// which also tells of a device that has failed.
void go_ahead(const UpdateInput& input, size_t i) {
  if (i + 1 == input.batches.size()) {
    if (input.meanwhile) input.meanwhile();
  } else if (const TrainingBatch& next = input.batches[i + 1]; next.send) {
    try {
      next.send(input.device, input.r_drop);
    } catch (const DeviceError&) {
    }
  }
}

// Losses and gradients of all batches, as far as they are this rank's. Returns what is wrong with the first loss that
// is not finite, or nothing; what follows it is not done.
std::optional<std::string> accumulate_gradients(Module& model, const Adam& adam, const UpdateInput& input,
                                                ExpertBalance& experts, UpdateResult& result) {
  const auto labels = static_cast<double>(result.labels);
  const double passes = input.r_drop > 0 ? 2 : 1;          // of each label
  const ProductPrecisionScope precision(input.precision);  // ends before the parameters change
  for (size_t i = 0; i < input.batches.size(); ++i) {
    if (!input.batches[i].loss) continue;
    const double share = static_cast<double>(input.batches[i].labels) / labels;
    experts.set_loss_weight(input.ranks != nullptr ? share / input.ranks->communicator().size() : share);
    const DropoutScope dropout({.seed = input.seed, .step = input.first_forward + i});
    const CrossEntropy cross_entropy = input.batches[i].loss(
        {.label_smoothing = input.label_smoothing, .scale = 1 / (passes * labels), .r_drop = input.r_drop});
    const double loss = cross_entropy.loss.item();
    const bool last = i + 1 == input.batches.size();
    const bool completes = input.ranks != nullptr && input.overlap && last && std::isfinite(loss);
    LeafObserver observer;
    if (completes) observer = [&](const GradientNode& leaf) { input.ranks->on_complete(leaf); };
    // With dropout of layers, all that is trained of a model may be left out.
    if (requires_gradient(cross_entropy.loss)) backward(cross_entropy.loss, {}, observer);
    if (!std::isfinite(loss))
      return not_finite("loss", loss, input, fmt::format("batch {}", input.first_batch + static_cast<int64_t>(i)),
                        first_culprit(model, adam, nullptr));
    go_ahead(input, i);
    result.loss += loss * labels;
    result.nll += cross_entropy.sum_negative_log_likelihood / passes;
  }
  return std::nullopt;
}

// What all ranks have together. They fail together too: with the message of the first rank that has one.
void reduce(Module& model, const UpdateInput& input, const std::optional<std::string>& failure, UpdateResult& result) {
  DataParallel& ranks = *input.ranks;
  ranks.reduce();
  const UpdateTotals totals =
      ranks.agree({.loss = result.loss, .nll = result.nll, .failures = failure.has_value() ? 1 : 0});
  if (totals.failures > 0)
    give_up(model, ranks.communicator().broadcast(failure.value_or(""), static_cast<int>(totals.first_failure)));
  result.loss = totals.loss;
  result.nll = totals.nll;
  result.gradient_norm = std::sqrt(totals.squares);
}

// Counts the tokens of each expert over all ranks.
void balance(const ExpertBalance& experts, const UpdateInput& input, UpdateResult& result) {
  const std::vector<int64_t> counts = input.ranks != nullptr ? input.ranks->sum(experts.counts()) : experts.counts();
  experts.move_biases(counts);
  result.expert_imbalance = experts.imbalance(counts);
}

}  // namespace

UpdateResult update(Module& model, Adam& adam, const UpdateInput& input) {
  UpdateResult result;
  for (const TrainingBatch& batch : input.batches) {
    result.labels += batch.labels;
    result.tokens += batch.tokens;
  }
  ExpertBalance experts(model);
  const std::optional<std::string> failure = accumulate_gradients(model, adam, input, experts, result);
  if (input.ranks != nullptr) {
    reduce(model, input, failure, result);
    if (std::isfinite(result.gradient_norm)) adam.step(input.learning_rate, result.gradient_norm);
  } else {
    if (failure) give_up(model, *failure);
    result.gradient_norm = adam.step(input.learning_rate);
  }
  if (!std::isfinite(result.gradient_norm)) {
    Communicator* communicator = input.ranks != nullptr ? &input.ranks->communicator() : nullptr;
    give_up(model, not_finite("gradient's norm", result.gradient_norm, input, batches_of(input),
                              first_culprit(model, adam, communicator)));
  }
  clear_gradients(model);
  balance(experts, input, result);
  if (input.ranks != nullptr) {
    input.ranks->share_parameters();
    const CommunicationCost cost = input.ranks->take_cost();
    result.bytes_sent = cost.bytes_sent;
    result.communication_seconds = cost.seconds;
    result.exposed_seconds = cost.exposed;
  }
  return result;
}

void check_parameters(Module& model, int64_t step) {
  if (const auto parameter = bad_parameter(model)) fail<NumericError>("step {}: {}", step, *parameter);
}

}  // namespace attune

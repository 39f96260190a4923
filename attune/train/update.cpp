#include "attune/train/update.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/nn/dropout.h"
#include "attune/nn/expert_balance.h"
#include "attune/tensor/device_error.h"
#include "attune/tensor/host_view.h"
#include "attune/train/data_parallel.h"

namespace attune {
namespace {

// Where the first number is that is not finite, or nothing.
struct BadNumber {
  int64_t tensor = std::numeric_limits<int64_t>::max();  // its place in a list of parameters
  int64_t element = -1;
  auto operator<=>(const BadNumber&) const = default;
};

BadNumber bad_parameter(const std::vector<NamedParameter>& parameters) {
  for (size_t p = 0; p < parameters.size(); ++p)
    if (const int64_t i = first_not_finite(*parameters[p].tensor); i >= 0) return {static_cast<int64_t>(p), i};
  return {};
}

// `reduced`: only the parts that Adam updates here have the sum of all ranks.
BadNumber bad_gradient(const std::vector<NamedParameter>& parameters, const Adam& adam, bool reduced) {
  for (size_t p = 0; p < parameters.size(); ++p) {
    const Tensor g = gradient(*parameters[p].tensor);
    if (!g.defined()) continue;
    const ElementRange range = reduced ? adam.states()[p].range : ElementRange{0, g.numel()};
    const int64_t i = first_not_finite(g.detach().reshape({g.numel()}).rows(range.begin, range.end));
    if (i >= 0) return {static_cast<int64_t>(p), range.begin + i};
  }
  return {};
}

// The first of all ranks, which call this together.
BadNumber first_of_ranks(const BadNumber& mine, Communicator* communicator) {
  return communicator != nullptr ? std::ranges::min(communicator->all_gather_values(mine)) : mine;
}

std::string text_of(const BadNumber& bad, const std::vector<NamedParameter>& parameters) {
  return fmt::format("{} is not finite at element {}", parameters[static_cast<size_t>(bad.tensor)].name, bad.element);
}

// Parameters come first: where one is not finite, every gradient may be its consequence. With a communicator, all ranks
// call this together, and each returns the same, although a parameter may be bad on one rank alone.
std::string first_culprit(Module& model, const Adam& adam, Communicator* communicator) {
  const std::vector<NamedParameter> parameters = named_parameters(model), trained = trained_parameters(model);
  if (const BadNumber bad = first_of_ranks(bad_parameter(parameters), communicator); bad.element >= 0)
    return fmt::format("parameter {}", text_of(bad, parameters));
  if (const BadNumber bad = first_of_ranks(bad_gradient(trained, adam, communicator != nullptr), communicator);
      bad.element >= 0)
    return fmt::format("the gradient of {}", text_of(bad, trained));
  return "all parameters and gradients are finite";
}

std::string batches_of(const UpdateInput& input) {
  const int64_t last = input.first_batch + static_cast<int64_t>(input.batches.size()) - 1;
  return last == input.first_batch ? fmt::format("batch {}", last)
                                   : fmt::format("batches {} to {}", input.first_batch, last);
}

// While the device works on batch i, the host sends it the next one. What cannot be sent is copied where it is used,
// which also tells of a device that has failed.
void send_next(const UpdateInput& input, size_t i) {
  if (i + 1 == input.batches.size() || !input.batches[i + 1].send) return;
  try {
    input.batches[i + 1].send(input.device, input.r_drop);
  } catch (const DeviceError&) {
  }
}

double passes_of(const UpdateInput& input) {
  return input.r_drop > 0 ? 2 : 1;  // of each label
}

// What this rank's parts of the batches give, scalars on the device.
struct BatchLosses {
  std::vector<int64_t> batches;     // their numbers in the epoch
  std::vector<Tensor> losses;       // their sum is that per label of the update
  std::vector<Tensor> nlls;         // summed over labels and passes
  std::vector<Tensor> guided;       // what guided heads add to the losses; none without
  std::vector<Tensor> divergences;  // summed over the pairs of r_drop; none without
};

// Starts the losses and gradients of all batches, as far as they are this rank's.
BatchLosses accumulate_gradients(const UpdateInput& input, double labels, ExpertBalance& experts) {
  BatchLosses done;
  const ProductPrecisionScope precision(input.precision);  // ends before the parameters change
  for (size_t i = 0; i < input.batches.size(); ++i) {
    if (!input.batches[i].loss) continue;
    const double share = static_cast<double>(input.batches[i].labels) / labels;
    experts.set_loss_weight(input.ranks != nullptr ? share / input.ranks->communicator().size() : share);
    const DropoutScope dropout({.seed = input.seed, .step = input.first_forward + i});
    const CrossEntropy cross_entropy = input.batches[i].loss(
        {.label_smoothing = input.label_smoothing, .scale = 1 / (passes_of(input) * labels), .r_drop = input.r_drop});
    const Tensor& loss = cross_entropy.loss;
    LeafObserver observer;
    if (input.ranks != nullptr && input.overlap && i + 1 == input.batches.size())
      observer = [&](const GradientNode& leaf) { input.ranks->on_complete(leaf); };
    // With dropout of layers, all that is trained of a model may be left out. The cotangent is on the CPU, where the
    // gradient of a loss reads it.
    if (requires_gradient(loss)) backward(loss, Tensor::full(loss.shape(), 1, {.dtype = loss.dtype()}), observer);
    done.batches.push_back(input.first_batch + static_cast<int64_t>(i));
    done.losses.push_back(loss.detach());
    done.nlls.push_back(cross_entropy.sum_negative_log_likelihood);
    if (cross_entropy.guided_loss.defined()) done.guided.push_back(cross_entropy.guided_loss);
    if (input.r_drop > 0 && cross_entropy.sum_divergence.defined())
      done.divergences.push_back(cross_entropy.sum_divergence);
    send_next(input, i);
  }
  return done;
}

// All that the host reads of an update, in one tensor on the device: the sum of the squares of the gradients, the
// losses, the negative log likelihoods, and what is added to the cross entropies.
Tensor numbers_of(const BatchLosses& batches, const Adam& adam, const DataParallel* ranks) {
  const Tensor squares = Tensor::zeros({1}, {DType::f64, adam.device()});
  if (ranks != nullptr) {
    ranks->add_squares(squares);
  } else {
    adam.add_squares(squares);
  }
  std::vector<Tensor> parts = {squares};
  for (const std::vector<Tensor>* numbers : {&batches.losses, &batches.nlls, &batches.guided, &batches.divergences})
    parts.insert(parts.end(), numbers->begin(), numbers->end());
  return joined_numbers(parts, adam.device());
}

// This rank's part of the totals, and what is wrong with the first loss that is not finite.
struct Outcome {
  UpdateTotals totals;
  std::optional<std::string> failure;
};

// Waits for the device.
Outcome read_numbers(const Tensor& numbers, const BatchLosses& batches, double labels, const UpdateInput& input) {
  const std::vector<double> values = host_values<double>(numbers);
  Outcome outcome;
  outcome.totals.squares = values[0];
  const size_t count = batches.losses.size();
  for (size_t i = 0; i < count; ++i) {
    const double loss = values[1 + i];
    outcome.totals.loss += loss * labels;
    outcome.totals.nll += values[1 + count + i] / passes_of(input);
    if (!std::isfinite(loss) && !outcome.failure)
      outcome.failure = fmt::format("batch {}: the loss is {}", batches.batches[i], loss);
  }
  const auto guided = values.begin() + static_cast<std::ptrdiff_t>(1 + 2 * count);
  const auto divergences = guided + std::ssize(batches.guided);
  outcome.totals.guided_loss = labels * std::accumulate(guided, divergences, 0.0);
  outcome.totals.r_drop_loss = input.r_drop / 2 / passes_of(input) * std::accumulate(divergences, values.end(), 0.0);
  outcome.totals.loss -= outcome.totals.guided_loss + outcome.totals.r_drop_loss;
  outcome.totals.failures = outcome.failure ? 1 : 0;
  return outcome;
}

// Throws NumericError where a loss or the norm is not finite, with the same message on every rank; for losses, that of
// the first rank that has such a loss: "step 3, epoch 1, batch 7: the loss is nan; parameter ...".
void check_finite(Module& model, const Adam& adam, const UpdateInput& input, const UpdateTotals& totals,
                  const std::optional<std::string>& failure) {
  Communicator* const communicator = input.ranks != nullptr ? &input.ranks->communicator() : nullptr;
  std::string wrong;
  if (totals.failures > 0) {
    wrong = failure.value_or("");
    if (communicator != nullptr) wrong = communicator->broadcast(wrong, static_cast<int>(totals.first_failure));
  } else if (const double norm = std::sqrt(totals.squares); !std::isfinite(norm)) {
    wrong = fmt::format("{}: the gradient's norm is {}", batches_of(input), norm);
  } else {
    return;
  }
  const std::string culprit = first_culprit(model, adam, communicator);
  clear_gradients(model);
  fail<NumericError>("step {}, epoch {}, {}; {}", input.step, input.epoch, wrong, culprit);
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
  if (input.ranks != nullptr) input.ranks->take_cost();  // drops that of what came before, such as a validation
  for (const TrainingBatch& batch : input.batches) {
    result.labels += batch.labels;
    result.tokens += batch.tokens;
  }
  const auto labels = static_cast<double>(result.labels);
  ExpertBalance experts(model);
  const BatchLosses batches = accumulate_gradients(input, labels, experts);
  if (input.ranks != nullptr) input.ranks->reduce(input.meanwhile);
  const Tensor numbers = numbers_of(batches, adam, input.ranks);
  if (input.ranks == nullptr) {
    adam.start_step(input.learning_rate, numbers.rows(0, 1 + std::ssize(batches.losses)));
    if (input.meanwhile) input.meanwhile();
  }
  const Outcome mine = read_numbers(numbers, batches, labels, input);
  const UpdateTotals totals = input.ranks != nullptr ? input.ranks->agree(mine.totals) : mine.totals;
  check_finite(model, adam, input, totals, mine.failure);
  if (input.ranks != nullptr)
    adam.start_step(input.learning_rate, Tensor::from({1}, std::vector{totals.squares}, adam.device()));
  adam.count_step();
  result.loss = totals.loss;
  result.nll = totals.nll;
  result.guided_loss = totals.guided_loss;
  result.r_drop_loss = totals.r_drop_loss;
  result.gradient_norm = std::sqrt(totals.squares);
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
  const std::vector<NamedParameter> parameters = named_parameters(model);
  if (const BadNumber bad = bad_parameter(parameters); bad.element >= 0)
    fail<NumericError>("step {}: parameter {}", step, text_of(bad, parameters));
}

}  // namespace attune

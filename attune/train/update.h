#pragma once
// One update of the parameters.

#include <cstdint>
#include <functional>
#include <span>

#include "attune/ops/cross_entropy.h"
#include "attune/ops/linear/precision.h"
#include "attune/optim/adam.h"

namespace attune {

class DataParallel;  // attune/train/data_parallel.h

/// A batch of any model; where several ranks work on it, this rank's part.
struct TrainingBatch {
  int64_t labels = 0;  // predictions that the loss is a mean over, at least 1; of the whole batch
  int64_t tokens = 0;  // that the model works on, of the target where there are two sides; of the whole batch
  /// Computes the loss of the part; empty where the part is. The loss has to be one of those in ops/, or a sum of them:
  /// update() gives backward() a cotangent on the CPU, and these losses read it there.
  std::function<CrossEntropy(const CrossEntropyOptions&)> loss;
  /// Starts the copies of what the next loss() reads to the model's device, see Indices::send(); with r_drop, of what
  /// it reads for both passes. It need not be called: loss() copies what was not sent. Empty: there is nothing to send.
  std::function<void(const Device& device, double r_drop)> send = {};
};

struct UpdateInput {
  std::span<const TrainingBatch> batches;  // their gradients are added up
  int64_t step = 1;                        // of this update, from 1
  int64_t epoch = 1;                       // for messages, from 1
  int64_t first_batch = 1;                 // number of batches[0] in the epoch, for messages, from 1
  double learning_rate = 0;
  ProductPrecision precision = ProductPrecision::float32;  // of the matrix products, forward and backward
  double label_smoothing = 0;
  double r_drop = 0;           // see CrossEntropyOptions; above 0, each batch passes through the model twice
  uint64_t seed = 1;           // of dropout
  uint64_t first_forward = 0;  // number of the first forward pass, by which dropout differs from pass to pass: unique
                               // among the ranks, and in the run while train.accumulate is the same
  Device device = {};          // of the model: each batch is sent there while it works on the one before
  /// Called once, before the host waits: when the device has all its work or, with `ranks`, when all sums of gradients
  /// are started. It may wait for something else itself.
  std::function<void()> meanwhile = {};
  DataParallel* ranks = nullptr;  // those that work on the same batches; null: this process alone
  /// Whether gradients are sent while backward goes on. Needs that no parameter is used both within and outside of a
  /// layer that computes its activations again: the pass outside does not see the uses within.
  bool overlap = true;
};

struct UpdateResult {
  double loss = 0;         // cross entropy, label-smoothed, summed over the labels; with r_drop the mean of both passes
  double nll = 0;          // the same without smoothing
  double guided_loss = 0;  // what a guided head adds to the sum, 0 without one
  double r_drop_loss = 0;  // what the divergences of r_drop add to it
  int64_t labels = 0;
  int64_t tokens = 0;
  double gradient_norm = 0;     // of the mean over labels, before clipping
  double expert_imbalance = 0;  // the most tokens that an expert got, over the mean of its layer; 0 without experts
  // Of this rank and of this update alone, 0 without others:
  int64_t bytes_sent = 0;
  double communication_seconds = 0;  // in which gradients or parameters were on their way
  double exposed_seconds = 0;        // of these, those in which the rank did nothing but wait
};

/// Adam's step on the loss per label of all batches together: however a set of examples is cut into batches, the
/// gradient is the same except for rounding. Gradients are cleared afterwards. The balance loss of mixtures of experts
/// is formed within each batch and rank, and counts by their share of the labels; UpdateResult does not have it.
/// The choice biases of the experts are moved after the step.
///
/// With `ranks`, every rank calls this with its parts of the same batches, and the update is that of the whole batches
/// except for rounding. The order of all sums depends on the number of ranks alone.
///
/// Losses and the norm of the gradients stay on the device. The host waits for them once: at the end, when Adam's step
/// is on its way, or, with `ranks`, before that step. Mixtures of experts wait for the choices of each layer too, and
/// TrainingBatch::send waits where too many copies are on their way, as with many batches.
///
/// When loss or gradient is not finite, throws NumericError naming step, epoch, batch and the first parameter or
/// gradient with such a number, and leaves parameters and moments as they were; on every rank with the same message.
/// The batches after that one have been worked on by then.
UpdateResult update(Module& model, Adam& adam, const UpdateInput& input);

/// Throws NumericError naming the step and the first parameter with a number that is not finite. The losses do not show
/// this: no loss has been computed with the parameters of the last update, and a ReLU makes 0 of a NaN in the bias
/// before it.
void check_parameters(Module& model, int64_t step);

}  // namespace attune

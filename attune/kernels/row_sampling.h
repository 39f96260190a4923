#pragma once
// What sampling needs of rows of logits, so that the rows stay where they are.

#include <cstdint>
#include <span>

#include "attune/tensor/tensor.h"

namespace attune {

/// The most tokens that SamplingJob::likeliest asks for.
constexpr int64_t kMostLikeliest = 1024;

/// A row, what is asked of it, and the answer. A token has the weight exp((logit - largest) / temperature), where
/// `largest` is the largest logit of the tokens that count. All tokens count but the excluded ones, those that are set
/// aside, and those whose logit is minus infinity.
struct SamplingJob {
  const Tensor* logits = nullptr;  // float32 [rows, at least `size`]
  int64_t row = 0, size = 0;       // the first `size` tokens of this row

  /// Their logits become minus infinity in the tensor; tokens that the row does not have are ignored.
  std::span<const int32_t> excluded = {}, more_excluded = {};
  /// Tokens of the row, no excluded one among them, that the caller judges himself.
  std::span<const int32_t> set_aside = {};
  double temperature = 1;  // above 0
  double least = 0;        // from 0 to 1: smaller weights have no part in `sum`, and their tokens are not drawn
  bool wants_sum = false;

  std::span<float> logits_aside = {};  // room: the logit of each token of `set_aside`

  /// Room for as many of the likeliest tokens as are wanted; the first `found` are written. They come in descending
  /// order, equal ones by ascending id.
  struct Likely {
    int32_t token;
    float logit;
  };
  std::span<Likely> likeliest = {};

  /// Draws a token for each number from [0, 1): the first token, in the order of ids, at which the running sum of the
  /// weights exceeds number * sum. `before` and `after` are the running sum without the token and with it. Token -1:
  /// rounding leaves the running sum too low for every token.
  struct Drawn {
    int32_t token;
    double before, after;
  };
  std::span<const double> numbers = {};  // with wants_sum
  std::span<Drawn> drawn = {};           // room

  // The answer. For an invalid row only `valid` is written, and its logits stay.
  bool valid = false;       // false: a logit is NaN or plus infinity
  int64_t possible = 0;     // how many tokens count
  int64_t found = 0;        // the wanted tokens of `likeliest`, or all that count
  double largest = 0;       // minus infinity where no token counts
  double sum = 0;           // of the weights, in an order and with an exp() that the device chooses
  bool near_least = false;  // whether a weight below 1 is so near `least` that another exp() might judge otherwise
};

/// How near `near_least` means: within 1e-12 * least, which is more than any two exp() differ by.
constexpr double kNearLeast = 1e-12;

/// Answers all jobs. All rows are on one device; a row has one job. On a GPU this is one launch, and the host gets the
/// answers alone.
void sample_rows(Cpu, std::span<SamplingJob* const> jobs);
void sample_rows(Plain, std::span<SamplingJob* const> jobs);
void sample_rows(Cuda, std::span<SamplingJob* const> jobs);

}  // namespace attune

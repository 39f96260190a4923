#pragma once
// Tokens drawn from a row of logits on another device, of which the host sees a few numbers.

#include <cstdint>
#include <span>
#include <vector>

#include "attune/inference/decoding/decoding_model.h"
#include "attune/inference/decoding/sampler.h"
#include "attune/kernels/row_sampling.h"

namespace attune {

/// Draws from one row what draw(token_distribution(...), number) draws: the same tokens, or none where the numbers from
/// the device do not decide, so that the whole row has to be read. The memory is used again for the next row.
///
/// With temperature 0 and with top_k the host gets the logits of the tokens that count and computes as it always does.
/// Elsewhere it gets sums, which the device adds in another order than the host does. Their last bits differ, so that
/// a token counts as drawn only if its share holds the number, with a margin on both sides for what rounding can do.
class RowDraw {
 public:
  /// Whether tokens can be drawn so with these options: not with a repetition penalty where top_k and top_p limit
  /// nothing, nor with a top_k above kMostLikeliest.
  static bool suits(const SamplingConfig& config);

  struct Inputs {
    std::span<const int32_t> past;                     // tokens of the text so far
    std::span<const int32_t> excluded, more_excluded;  // have probability 0; the first list is often that of other rows
    std::span<const double> numbers;                   // from [0, 1): one token is drawn for each
  };
  /// What the device is asked; the answer goes there too. Null where a token of the past is not in the row. Config and
  /// lists have to be there until tokens are drawn.
  SamplingJob* ask(const LogitsRow& row, const SamplingConfig& config, const Inputs& inputs);
  /// Writes the token of each number. Returns false, without all of them, where the row has to be read.
  bool draw(std::span<int32_t> tokens) const;

 private:
  /// For temperature 0 and top_k: the host has all that its own computation needs.
  bool draw_from_likeliest(std::span<int32_t> tokens) const;
  bool draw_from_nucleus(std::span<int32_t> tokens) const;
  bool draw_from_all(std::span<int32_t> tokens) const;
  void set_aside(std::span<const int32_t> past);
  /// The likeliest tokens, and those set aside that are possible, with the logits that token_distribution() gives them.
  std::vector<TokenValue> known_logits() const;
  /// The most by which a share of the whole can differ from the host's.
  double margin() const;

  const SamplingConfig* config_ = nullptr;
  SamplingJob job_ = {};
  std::vector<int32_t> aside_;
  std::vector<float> logits_aside_;
  std::vector<SamplingJob::Likely> likeliest_;
  std::vector<SamplingJob::Drawn> drawn_;
  std::span<const double> numbers_;
};

}  // namespace attune

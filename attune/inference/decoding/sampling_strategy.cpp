// Sampling, token by token, as the strategy of a request.

#include <algorithm>
#include <numeric>

#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/sampled_texts.h"
#include "attune/inference/decoding/sampler.h"

namespace attune {
namespace {

class SamplingStrategy final : public DecodingStrategy {
 public:
  SamplingStrategy(const DecodingModel& model, DecodingRequest& request)
      : texts_(model, request),
        alive_(texts_.count()),
        next_(texts_.count()),
        scores_(texts_.options().likeliest < 0 ? 0 : texts_.count()) {
    std::iota(alive_.begin(), alive_.end(), size_t{0});
  }

  ReadBy next(RowInputs& inputs) override;
  void look(size_t row, std::span<const LogitsRow> logits, int64_t found) override;
  bool advance() override;
  void finish(std::optional<FinishReason> cut_short, DecodingResult& result) override {
    texts_.finish(cut_short, alive_, result);
  }
  bool reads_on_host() const override { return true; }
  int64_t sequences() const override { return static_cast<int64_t>(texts_.count()); }
  int64_t most_tokens(const DecodingModel& reader) const override {
    return texts_.most_tokens(reader.longest_sequence());
  }

 private:
  SampledTexts texts_;
  std::vector<size_t> alive_;        // of each row its text; at first all texts share one row
  std::vector<int32_t> next_;        // of each text
  std::vector<TokenScores> scores_;  // of each text, where they are wanted
  std::vector<int32_t> parents_;     // of each row
  std::vector<bool> slid_;           // of each row: whether its window has moved, so that it is read anew
  bool started_ = false;
};

ReadBy SamplingStrategy::next(RowInputs& inputs) {
  if (!started_) {
    inputs.add_row(0, RowInputs::kAll, texts_[0].window(), 1);
    return ReadBy::model;
  }
  for (size_t r = 0; r < alive_.size(); ++r) {
    const auto window = texts_[alive_[r]].window();
    inputs.add_row(parents_[r], slid_[r] ? 0 : RowInputs::kAll, slid_[r] ? window : window.last(1), 1);
  }
  return ReadBy::model;
}

void SamplingStrategy::look(size_t row, std::span<const LogitsRow> logits, int64_t /*found*/) {
  const SamplingRequest& options = texts_.options();
  const SampledText& first = texts_[alive_[row]];
  const TokenDistribution next = texts_.distribution(logits.front().host, first.tokens, first.generated);
  const auto draw_for = [&](size_t i) {
    next_[i] = draw(next, random_number(options.config.seed, texts_[i].number, texts_[i].generated));
    if (!scores_.empty()) scores_[i] = token_scores(logits.front().host, next_[i], options.likeliest);
  };
  if (started_) return draw_for(alive_[row]);
  for (const size_t i : alive_) draw_for(i);
}

bool SamplingStrategy::advance() {
  parents_.clear();
  slid_.clear();
  size_t kept = 0;
  for (size_t r = 0; r < alive_.size(); ++r) {
    const size_t i = alive_[r], window_begin = texts_[i].window_begin;
    if (!texts_.accept(i, next_[i], scores_.empty() ? nullptr : &scores_[i])) continue;
    parents_.push_back(started_ ? static_cast<int32_t>(r) : 0);
    slid_.push_back(texts_[i].window_begin != window_begin);
    alive_[kept++] = i;
  }
  alive_.resize(kept);
  started_ = true;
  return kept > 0;
}

}  // namespace

std::unique_ptr<DecodingStrategy> make_sampling_strategy(const DecodingModel& model, DecodingRequest& request) {
  return std::make_unique<SamplingStrategy>(model, request);
}

}  // namespace attune

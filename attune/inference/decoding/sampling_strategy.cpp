// Sampling, token by token, as the strategy of a request.

#include <algorithm>
#include <numeric>
#include <utility>

#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/sampled_texts.h"
#include "attune/inference/decoding/sampler.h"
#include "attune/inference/decoding/sampler_on_device.h"

namespace attune {
namespace {

class SamplingStrategy final : public DecodingStrategy {
 public:
  SamplingStrategy(const DecodingModel& model, DecodingRequest& request)
      : texts_(model, request),
        on_device_(texts_.options().likeliest < 0 && RowDraw::suits(texts_.options().config)),
        alive_(texts_.count()),
        next_(texts_.count()),
        scores_(texts_.options().likeliest < 0 ? 0 : texts_.count()) {
    std::iota(alive_.begin(), alive_.end(), size_t{0});
  }

  ReadBy next(RowInputs& inputs) override;
  SamplingJob* ask_sampling(size_t row, std::span<const LogitsRow> logits) override;
  void look(size_t row, std::span<const LogitsRow> logits, int64_t found) override;
  bool advance() override;
  void finish(std::optional<FinishReason> cut_short, DecodingResult& result) override {
    texts_.finish(cut_short, alive_, result);
  }
  bool reads_on_host() const override { return !on_device_; }
  int64_t sequences() const override { return static_cast<int64_t>(texts_.count()); }
  int64_t most_rows() const override { return sequences(); }
  int64_t most_tokens(const DecodingModel& reader) const override {
    return texts_.most_tokens(reader.longest_sequence());
  }

 private:
  // What a row asked its device, and what that needs meanwhile. The memory is used again.
  struct Asked {
    bool answered = false;
    std::vector<int32_t> excluded, drawn;
    std::vector<double> numbers;
    RowDraw draw;
  };

  /// The texts that get a token from row `row`: at first all.
  std::span<const size_t> texts_of(size_t row) const {
    return started_ ? std::span(alive_).subspan(row, 1) : std::span(alive_);
  }
  /// Draws the tokens of row `row` from what its device found; false where that does not decide.
  bool take_answer(size_t row);
  double number_for(size_t text) const {
    return random_number(texts_.options().config.seed, texts_[text].number, texts_[text].generated);
  }

  SampledTexts texts_;
  bool on_device_;  // whether other devices than the CPU draw tokens, as far as they can; scores need all logits
  std::vector<Asked> asked_;         // of each row, once one is asked
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

SamplingJob* SamplingStrategy::ask_sampling(size_t row, std::span<const LogitsRow> logits) {
  const SamplingRequest& options = texts_.options();
  const SampledText& first = texts_[alive_[row]];
  if (!on_device_ || texts_.forced(first.generated) >= 0) return nullptr;
  if (asked_.empty()) asked_.resize(alive_.size());
  Asked& asked = asked_[row];
  asked.excluded = texts_.more_excluded(first.tokens, first.generated);
  asked.numbers.clear();
  for (const size_t i : texts_of(row)) asked.numbers.push_back(number_for(i));
  SamplingJob* const job = asked.draw.ask(logits.front(), options.config,
                                          {.past = first.tokens,
                                           .excluded = options.never_drawn,
                                           .more_excluded = asked.excluded,
                                           .numbers = asked.numbers});
  asked.answered = job != nullptr;
  return job;
}

bool SamplingStrategy::take_answer(size_t row) {
  if (asked_.empty() || !std::exchange(asked_[row].answered, false)) return false;
  const std::span<const size_t> texts = texts_of(row);
  Asked& asked = asked_[row];
  asked.drawn.resize(texts.size());
  if (!asked.draw.draw(asked.drawn)) return false;
  for (size_t i = 0; i < texts.size(); ++i) next_[texts[i]] = asked.drawn[i];
  return true;
}

void SamplingStrategy::look(size_t row, std::span<const LogitsRow> logits, int64_t /*found*/) {
  const SamplingRequest& options = texts_.options();
  const std::span<const size_t> texts = texts_of(row);
  if (take_answer(row)) return;
  const SampledText& first = texts_[texts.front()];
  if (const int64_t token = texts_.forced(first.generated); token >= 0 && scores_.empty()) {  // whatever the logits are
    for (const size_t i : texts) next_[i] = static_cast<int32_t>(token);
    return;
  }
  const HostRow read(logits.front());
  const TokenDistribution next = texts_.distribution(read.logits(), first.tokens, first.generated);
  for (const size_t i : texts) {
    next_[i] = draw(next, number_for(i));
    if (!scores_.empty()) scores_[i] = token_scores(read.logits(), next_[i], options.likeliest, options.named_tokens);
  }
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

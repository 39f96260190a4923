#include "attune/inference/decoding/speculative_strategy.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/sampled_texts.h"
#include "attune/nn/attention/query_groups.h"

namespace attune {
namespace {

static_assert(1 + kMostDraftTokens <= kQueriesByRow);

// Numbers for one position of one text that are independent of those which plain sampling uses.
enum class Purpose : uint64_t { draft = 1, judge = 2, replace = 3 };

double probability_of(const TokenDistribution& distribution, int32_t token) {
  const auto at = std::find(distribution.tokens.begin(), distribution.tokens.end(), token);
  if (at == distribution.tokens.end()) return 0;
  return distribution.probabilities[static_cast<size_t>(at - distribution.tokens.begin())];
}

class SpeculativeStrategy final : public DecodingStrategy {
 public:
  SpeculativeStrategy(const DecodingModel& model, DecodingRequest& request);

  ReadBy next(RowInputs& inputs) override;
  void look(size_t row, std::span<const LogitsRow> logits, int64_t found) override;
  bool advance() override;
  void finish(std::optional<FinishReason> cut_short, DecodingResult& result) override;
  bool reads_on_host() const override { return true; }
  int64_t sequences() const override { return static_cast<int64_t>(texts_.count()); }
  int64_t most_rows() const override { return sequences() * (1 + texts_.options().draft_tokens); }
  const std::shared_ptr<const DecodingModel>& draft() const override { return texts_.options().draft; }
  int64_t most_tokens(const DecodingModel& reader) const override {
    return texts_.most_tokens(reader.longest_sequence());
  }

 private:
  enum class Phase { read_prompt, draft_reads_prompt, propose, judge };

  // The row of a text, in both caches.
  struct Row {
    size_t text;
    int32_t parent = 0, draft_parent = 0;           // the row before, in the cache of each model
    int32_t read = 0, draft_read = 0;               // tokens of `window` that each model has
    std::vector<int32_t> window = {};               // the text with the proposals at its end
    size_t wanted = 0;                              // proposals of this round
    std::vector<TokenDistribution> proposals = {};  // the distributions that they were drawn from
    std::vector<int32_t> accepted = {};
  };

  double number_for(const Row& row, size_t offset, Purpose purpose) const;
  /// The number that plain sampling uses there.
  double plain_number_for(const Row& row, size_t offset) const;
  /// Of the token after `past`, which ends `offset` tokens behind the text of the row.
  TokenDistribution distribution(const Row& row, const LogitsRow& logits, std::span<const int32_t> past,
                                 size_t offset) const;
  size_t proposals_for(const SampledText& text) const;
  ReadBy read_prompt(RowInputs& inputs);
  void begin_round();
  void draw_first(const LogitsRow& logits);
  void propose(Row& row, const LogitsRow& logits) const;
  void judge(Row& row, std::span<const LogitsRow> logits) const;
  bool accept_all();

  SampledTexts texts_;
  size_t prompt_tokens_;
  int64_t context_, draft_context_;
  Phase phase_ = Phase::read_prompt;
  size_t step_ = 0;  // of the proposals
  std::vector<Row> rows_;
};

SpeculativeStrategy::SpeculativeStrategy(const DecodingModel& model, DecodingRequest& request)
    : texts_(model, request),
      prompt_tokens_(texts_[0].tokens.size()),
      context_(model.longest_sequence()),
      draft_context_(draft()->longest_sequence()) {
  if (draft()->vocab() != model.vocab())
    fail<ConfigError>("draft: has {} tokens, the model has {}", draft()->vocab(), model.vocab());
  if (draft()->source_vocab() != model.source_vocab())
    fail<ConfigError>("draft: has {} source tokens, the model has {}", draft()->source_vocab(), model.source_vocab());
  if (const auto tokens = std::ssize(request.source); tokens > draft_context_)
    fail<DataError>("source: has {} tokens, the draft reads at most {}", tokens, draft_context_);
  if (texts_.options().config.slide) fail<ConfigError>("slide: does not go with a draft");
  check_range<int64_t>("draft_tokens", texts_.options().draft_tokens, 1, kMostDraftTokens);
  for (size_t i = 0; i < texts_.count(); ++i) rows_.push_back({.text = i});
}

// How many proposals make sense: one more token is drawn behind them, and both models have to have room.
size_t SpeculativeStrategy::proposals_for(const SampledText& text) const {
  const auto window = static_cast<int64_t>(text.tokens.size());
  const int64_t left = texts_.options().config.max_tokens - static_cast<int64_t>(text.generated);
  const int64_t room = std::min(context_ - window, draft_context_ - window + 1);
  return static_cast<size_t>(std::max<int64_t>(0, std::min({texts_.options().draft_tokens, left - 1, room})));
}

void SpeculativeStrategy::begin_round() {
  phase_ = Phase::propose;
  step_ = 0;
  for (Row& row : rows_) {
    row.window = texts_[row.text].tokens;
    row.wanted = proposals_for(texts_[row.text]);
    row.proposals.clear();
  }
}

// One row reads the prompt for all texts. The model reads it as it does without a draft, and its logits after it give
// the first tokens; the draft reads it where it has room for one of these too.
ReadBy SpeculativeStrategy::read_prompt(RowInputs& inputs) {
  const bool by_model = phase_ == Phase::read_prompt;
  const std::span<const int32_t> prompt = std::span<const int32_t>(texts_[0].tokens).first(prompt_tokens_);
  const bool reads = by_model || static_cast<int64_t>(prompt.size()) < draft_context_;
  inputs.add_row(0, RowInputs::kAll, reads ? prompt : std::span<const int32_t>{}, by_model ? 1 : 0);
  for (Row& row : rows_) (by_model ? row.read : row.draft_read) = reads ? static_cast<int32_t>(prompt.size()) : 0;
  return by_model ? ReadBy::model : ReadBy::draft;
}

ReadBy SpeculativeStrategy::next(RowInputs& inputs) {
  if (phase_ == Phase::read_prompt || phase_ == Phase::draft_reads_prompt) return read_prompt(inputs);
  const bool proposes = phase_ == Phase::propose;
  for (size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    int32_t& read = proposes ? row.draft_read : row.read;
    int32_t& parent = proposes ? row.draft_parent : row.parent;
    const bool reads = !proposes || step_ < row.wanted;
    const auto tokens = std::span<const int32_t>(row.window).subspan(static_cast<size_t>(read));
    const auto wanted = !reads ? 0 : proposes ? 1 : static_cast<int32_t>(tokens.size());
    inputs.add_row(parent, read, reads ? tokens : std::span<const int32_t>{}, wanted);
    if (reads) read = static_cast<int32_t>(row.window.size());
    parent = static_cast<int32_t>(r);
  }
  return proposes ? ReadBy::draft : ReadBy::model;
}

double SpeculativeStrategy::number_for(const Row& row, size_t offset, Purpose purpose) const {
  const SampledText& text = texts_[row.text];
  return random_number(texts_.options().config.seed, text.number + (static_cast<uint64_t>(purpose) << 48),
                       text.generated + offset);
}

double SpeculativeStrategy::plain_number_for(const Row& row, size_t offset) const {
  const SampledText& text = texts_[row.text];
  return random_number(texts_.options().config.seed, text.number, text.generated + offset);
}

TokenDistribution SpeculativeStrategy::distribution(const Row& row, const LogitsRow& logits,
                                                    std::span<const int32_t> past, size_t offset) const {
  return texts_.distribution(logits.host, past, texts_[row.text].generated + offset);
}

void SpeculativeStrategy::look(size_t row, std::span<const LogitsRow> logits, int64_t /*found*/) {
  if (phase_ == Phase::read_prompt) return draw_first(logits.front());
  if (phase_ == Phase::propose) return propose(rows_[row], logits.front());
  judge(rows_[row], logits);
}

void SpeculativeStrategy::draw_first(const LogitsRow& logits) {
  const TokenDistribution first = distribution(rows_.front(), logits, texts_[0].tokens, 0);
  for (Row& row : rows_) row.accepted = {draw(first, plain_number_for(row, 0))};
}

void SpeculativeStrategy::propose(Row& row, const LogitsRow& logits) const {
  row.proposals.push_back(distribution(row, logits, row.window, row.proposals.size()));
  row.window.push_back(draw(row.proposals.back(), number_for(row, step_, Purpose::draft)));
}

// The model's logits are those after the last token of the text and after each proposal.
void SpeculativeStrategy::judge(Row& row, std::span<const LogitsRow> logits) const {
  const std::span<const int32_t> window(row.window);
  const size_t known = window.size() - row.proposals.size();
  row.accepted.clear();
  for (size_t j = 0; j <= row.proposals.size(); ++j) {
    const TokenDistribution p = distribution(row, logits[j], window.first(known + j), j);
    if (j == row.proposals.size()) {
      row.accepted.push_back(draw(p, plain_number_for(row, j)));
      return;
    }
    const TokenDistribution& q = row.proposals[j];
    const int32_t token = window[known + j];
    if (number_for(row, j, Purpose::judge) * probability_of(q, token) >= probability_of(p, token)) {
      row.accepted.push_back(draw(residual(p, q), number_for(row, j, Purpose::replace)));
      return;
    }
    row.accepted.push_back(token);
    if (texts_.options().ends_with(token)) return;
  }
}

// Appends what was accepted. The rows whose texts go on keep, in both caches, what is certain: all of the text but its
// last token.
bool SpeculativeStrategy::accept_all() {
  std::vector<Row> alive;
  for (size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    bool goes_on = true;
    for (size_t j = 0; goes_on && j < row.accepted.size(); ++j) goes_on = texts_.accept(row.text, row.accepted[j]);
    if (!goes_on) continue;
    const auto certain = static_cast<int32_t>(texts_[row.text].tokens.size()) - 1;
    row.parent = row.draft_parent = static_cast<int32_t>(r);
    row.read = std::min(row.read, certain);
    row.draft_read = std::min(row.draft_read, certain);
    alive.push_back(std::move(row));
  }
  rows_ = std::move(alive);
  return !rows_.empty();
}

bool SpeculativeStrategy::advance() {
  switch (phase_) {
    case Phase::read_prompt:
      if (!accept_all()) return false;
      for (Row& row : rows_) row.parent = row.draft_parent = 0;  // all go on from the row of the prompt
      phase_ = Phase::draft_reads_prompt;
      return true;
    case Phase::draft_reads_prompt:
      begin_round();
      return true;
    case Phase::propose:
      ++step_;
      if (std::all_of(rows_.begin(), rows_.end(), [&](const Row& row) { return step_ >= row.wanted; }))
        phase_ = Phase::judge;
      return true;
    case Phase::judge:
      if (!accept_all()) return false;
      begin_round();
      return true;
  }
  return false;
}

void SpeculativeStrategy::finish(std::optional<FinishReason> cut_short, DecodingResult& result) {
  std::vector<size_t> alive;
  for (const Row& row : rows_) alive.push_back(row.text);
  texts_.finish(cut_short, alive, result);
}

}  // namespace

TokenDistribution residual(const TokenDistribution& p, const TokenDistribution& q) {
  std::unordered_map<int32_t, double> of_q;
  for (size_t i = 0; i < q.tokens.size(); ++i) of_q[q.tokens[i]] = q.probabilities[i];
  TokenDistribution rest;
  double sum = 0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    const auto at = of_q.find(p.tokens[i]);
    const double more = p.probabilities[i] - (at == of_q.end() ? 0 : at->second);
    if (more <= 0) continue;
    rest.tokens.push_back(p.tokens[i]);
    rest.probabilities.push_back(more);
    sum += more;
  }
  if (sum <= 0) return p;
  for (double& probability : rest.probabilities) probability /= sum;
  return rest;
}

std::unique_ptr<DecodingStrategy> make_speculative_strategy(const DecodingModel& model, DecodingRequest& request) {
  return std::make_unique<SpeculativeStrategy>(model, request);
}

}  // namespace attune

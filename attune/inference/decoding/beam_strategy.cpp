// Beam search as the strategy of a request.

#include <algorithm>
#include <limits>
#include <optional>

#include "attune/base/fail.h"
#include "attune/inference/decoding/beam.h"
#include "attune/inference/decoding/decoding_strategy.h"
#include "attune/inference/decoding/shortlist.h"

namespace attune {
namespace {

// The index of a token among the columns of a row's logits, or -1; without columns it is the token itself.
int32_t column_of(const std::vector<int32_t>& columns, int32_t token) {
  if (columns.empty()) return token;
  const auto at = std::lower_bound(columns.begin(), columns.end(), token);
  return at != columns.end() && *at == token ? static_cast<int32_t>(at - columns.begin()) : -1;
}

void to_columns(const std::vector<int32_t>& columns, std::vector<int32_t>& tokens) {
  if (columns.empty()) return;
  for (int32_t& token : tokens) token = column_of(columns, token);
  std::erase(tokens, -1);
}

// Whether no token is left: with renormalize_logits, top_candidates() makes the logits of excluded tokens -inf.
bool nothing_is_left(const LogitsRow& row) {
  const HostView view(row.logits->rows(row.row, row.row + 1));
  const auto logits = view.as<float>().first(static_cast<size_t>(row.size));
  return std::ranges::all_of(logits, [](float x) { return x == -std::numeric_limits<float>::infinity(); });
}

class BeamStrategy final : public DecodingStrategy {
 public:
  BeamStrategy(const DecodingModel& model, DecodingRequest& request);

  void start() override;
  ReadBy next(RowInputs& inputs) override;
  std::optional<CandidateJob> ask(size_t row, std::span<const LogitsRow> logits) override;
  void look(size_t row, std::span<const LogitsRow> logits, int64_t found) override;
  bool advance() override;
  void finish(std::optional<FinishReason> cut_short, DecodingResult& result) override;
  std::span<const int32_t> columns() const override { return columns_; }
  bool source_attention() const override { return stride_ > 0; }
  int64_t most_rows() const override { return options_.generation.beam_size; }
  int64_t most_tokens(const DecodingModel&) const override {
    return static_cast<int64_t>(prompt_.size()) + options_.generation.beam_size * limit_;
  }

 private:
  int64_t limit_of(const DecodingModel& model) const;
  int64_t candidates_of_row() const { return (1 + ends_) * options_.generation.beam_size; }
  void choose_columns();
  void prepare_rules();
  /// Whether the repetition penalty is for log probabilities, see GenerationConfig.
  bool penalizes_log_probabilities() const;
  std::vector<int32_t> penalized(int64_t row) const;

  std::shared_ptr<const BeamSearchOptions> shared_options_;
  const BeamSearchOptions& options_;
  SentenceConstraints constraints_;
  std::vector<int32_t> source_, prompt_;
  int64_t limit_;
  int64_t ends_;                       // how many tokens end an output
  size_t stride_;                      // of attention_: the tokens of the source, where their attention is wanted
  std::vector<int32_t> excluded_;      // rising
  std::vector<int32_t> columns_;       // with a shortlist: the tokens of the logits, rising
  std::optional<Beam> beam_;           // from the start on
  std::vector<CandidateRules> rules_;  // of each row, or none
  std::vector<std::vector<int32_t>> penalized_;  // of each row: see penalized()
  std::vector<CandidateRules> with_penalized_;   // of each row: its rules, with those as wanted ones
  CandidateLists candidates_;
  std::vector<float> attention_;  // [rows, stride_]
};

BeamStrategy::BeamStrategy(const DecodingModel& model, DecodingRequest& request)
    : shared_options_(std::get<BeamSearchRequest>(request.search).options),
      options_(*shared_options_),
      constraints_(std::move(std::get<BeamSearchRequest>(request.search).constraints)),
      source_(request.source),
      prompt_(std::move(request.prompt)) {
  options_.validate(model.vocab());
  constraints_.validate(options_, model.vocab());
  if (static_cast<int64_t>(prompt_.size()) > model.longest_sequence())
    fail<DataError>("prompt: has {} tokens, the model reads at most {}", prompt_.size(), model.longest_sequence());
  limit_ = limit_of(model);
  ends_ = std::ssize(SearchTokens(options_).ends);
  if (options_.generation.repetition_penalty != 1 && model.gives_log_probabilities() && !penalizes_log_probabilities())
    fail<ConfigError>(
        "repetition_penalty = {}: an ensemble has no logits that it could change; with a beam_size above 1, "
        "penalize_log_probabilities = true changes log probabilities",
        options_.generation.repetition_penalty);
  const bool attention = options_.alignments || options_.generation.coverage_penalty > 0;
  if (attention && model.source_vocab() == 0)
    fail<ConfigError>("alignments and coverage_penalty: need a model that reads sources");
  stride_ = attention ? source_.size() : 0;
  if (options_.shortlist != nullptr && options_.shortlist->source_vocab() != model.source_vocab())
    fail<ConfigError>("shortlist: is for {} source tokens, the model has {}", options_.shortlist->source_vocab(),
                      model.source_vocab());
}

int64_t BeamStrategy::limit_of(const DecodingModel& model) const {
  const GenerationConfig& g = options_.generation;
  int64_t least = static_cast<int64_t>(constraints_.prefix.size()) + (g.forced_first_token >= 0 ? 2 : 1);
  for (const auto& phrase : constraints_.required) least += static_cast<int64_t>(phrase.size());
  const int64_t longest =
      source_.empty() ? g.max_length : std::max(g.longest_output(static_cast<int64_t>(source_.size())), least);
  const int64_t room = model.longest_sequence() - static_cast<int64_t>(prompt_.size()) + 1;  // the last is not read
  return std::min(longest, room);
}

void BeamStrategy::choose_columns() {
  if (options_.shortlist == nullptr) return;
  columns_ = options_.shortlist->targets_of(source_);
  for (const int32_t never : excluded_) std::erase(columns_, never);
  const SearchTokens special(options_);
  columns_.insert(columns_.end(), special.ends.begin(), special.ends.end());
  for (const int64_t forced : {options_.generation.forced_first_token, options_.generation.forced_last_token})
    if (forced >= 0) columns_.push_back(static_cast<int32_t>(forced));
  columns_.insert(columns_.end(), constraints_.prefix.begin(), constraints_.prefix.end());
  for (const auto& phrase : constraints_.required) columns_.insert(columns_.end(), phrase.begin(), phrase.end());
  std::sort(columns_.begin(), columns_.end());
  columns_.erase(std::unique(columns_.begin(), columns_.end()), columns_.end());
  to_columns(columns_, excluded_);  // keeps those that a prefix or a phrase needs
}

void BeamStrategy::start() {
  excluded_ = SearchTokens(options_).never;
  choose_columns();
  beam_.emplace(options_, constraints_, prompt_, static_cast<int64_t>(source_.size()), limit_);
}

void BeamStrategy::prepare_rules() {
  rules_.clear();
  if (!beam_->has_rules()) return;
  for (int64_t row = 0; row < beam_->rows(); ++row) {
    rules_.push_back(beam_->rules(row));
    to_columns(columns_, rules_.back().excluded);
    to_columns(columns_, rules_.back().wanted);
  }
}

ReadBy BeamStrategy::next(RowInputs& inputs) {
  if (!prompt_.empty()) {
    inputs.add_row(0, RowInputs::kAll, prompt_, 1);
    prompt_.clear();
  } else {
    for (size_t r = 0; r < beam_->tokens().size(); ++r)
      inputs.add_row(beam_->parents()[r], RowInputs::kAll, std::span(&beam_->tokens()[r], 1), 1);
  }
  prepare_rules();
  size_t most_wanted = 0;
  for (const CandidateRules& rules : rules_) most_wanted = std::max(most_wanted, rules.wanted.size());
  if (penalizes_log_probabilities()) most_wanted += 2 * beam_->text(0).size();
  const auto rows = inputs.rows();
  candidates_.reset(rows, static_cast<size_t>(candidates_of_row()) + most_wanted);
  attention_.resize(rows * stride_);
  penalized_.resize(rows);
  with_penalized_.resize(rows);
  return ReadBy::model;
}

bool BeamStrategy::penalizes_log_probabilities() const {
  const GenerationConfig& g = options_.generation;
  return g.penalize_log_probabilities && g.repetition_penalty != 1 && g.beam_size > 1;
}

// The columns of the tokens of a row's text, rising; none without a penalty.
std::vector<int32_t> BeamStrategy::penalized(int64_t row) const {
  if (options_.generation.repetition_penalty == 1) return {};
  std::vector<int32_t> tokens = beam_->text(row);
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  to_columns(columns_, tokens);
  return tokens;
}

std::optional<CandidateJob> BeamStrategy::ask(size_t row, std::span<const LogitsRow> logits) {
  const LogitsRow& after = logits.front();
  std::vector<int32_t>& seen = penalized_[row];
  seen = penalized(static_cast<int64_t>(row));
  CandidateQuery query{.count = candidates_of_row(),
                       .excluded = excluded_,
                       .renormalize = options_.generation.renormalize_logits,
                       .rules = rules_.empty() ? nullptr : &rules_[row]};
  if (penalizes_log_probabilities()) {  // all of these are candidates, and as many others as without a penalty
    CandidateRules& with_seen = with_penalized_[row];
    with_seen = query.rules == nullptr ? CandidateRules{} : *query.rules;
    if (!with_seen.only_wanted) {
      with_seen.wanted.insert(with_seen.wanted.end(), seen.begin(), seen.end());
      query.count += std::ssize(seen);
    }
    query.rules = &with_seen;
  } else {
    query.penalized = seen;
    query.penalty = options_.generation.repetition_penalty;
  }
  return CandidateJob{.row = {.logits = *after.logits, .row = after.row, .size = after.size},
                      .query = query,
                      .room = candidates_.room(row)};
}

void BeamStrategy::look(size_t row, std::span<const LogitsRow> logits, int64_t found) {
  if (found < 0 && !(options_.generation.renormalize_logits && nothing_is_left(logits.front())))
    fail<NumericError>("the model's logits are not finite");
  candidates_.set_count(row, static_cast<size_t>(std::max<int64_t>(found, 0)));
  const std::vector<int32_t>& seen = penalized_[row];
  if (penalizes_log_probabilities())
    for (Candidate& c : candidates_[row])
      if (std::binary_search(seen.begin(), seen.end(), c.token))
        c.log_probability *= options_.generation.repetition_penalty;
  if (!columns_.empty())
    for (Candidate& c : candidates_[row]) c.token = columns_[static_cast<size_t>(c.token)];
  const std::span<const float> attention = logits.front().attention;
  std::copy_n(attention.begin(), stride_, attention_.begin() + static_cast<std::ptrdiff_t>(row * stride_));
}

bool BeamStrategy::advance() {
  beam_->advance({.candidates = candidates_, .attention = attention_, .stride = stride_});
  return !beam_->done();
}

void BeamStrategy::finish(std::optional<FinishReason>, DecodingResult& result) {
  if (beam_) result.hypotheses = beam_->hypotheses();
}

}  // namespace

std::unique_ptr<DecodingStrategy> make_beam_strategy(const DecodingModel& model, DecodingRequest& request) {
  return std::make_unique<BeamStrategy>(model, request);
}

}  // namespace attune

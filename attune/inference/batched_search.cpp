#include "attune/inference/batched_search.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"

namespace attune {
namespace {

// Where a token stands among the columns of a sentence's logits, or -1; without columns at its own place.
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

}  // namespace

BatchedSearch::BatchedSearch(const Transformer& model, const BeamSearchOptions& options)
    : model_(model), options_(options), excluded_{options.special.bos}, cache_(model.start()) {
  options.validate(model.config().target_vocab);
  if (options.special.pad != options.special.eos) excluded_.push_back(options.special.pad);
  if (options.shortlist != nullptr && options.shortlist->source_vocab() != model.config().source_vocab)
    fail<ConfigError>("shortlist: is for {} source tokens, the model has {}", options.shortlist->source_vocab(),
                      model.config().source_vocab);
  cache_.keep_cross_weights = options.alignments || options.generation.coverage_penalty > 0;
}

int64_t BatchedSearch::limit_of(int64_t source_tokens, const SentenceConstraints& constraints) const {
  int64_t least = static_cast<int64_t>(constraints.prefix.size()) + 1;
  for (const auto& phrase : constraints.required) least += static_cast<int64_t>(phrase.size());
  const int64_t longest = std::max(options_.generation.longest_output(source_tokens), least);
  return std::min(longest, model_.config().longest_sequence());
}

void BatchedSearch::add(std::span<const size_t> ids, const PackedTokens& source,
                        std::span<const SentenceConstraints> constraints) {
  if (ids.empty()) return;
  const NoGrad no_grad;
  for (const SentenceConstraints& c : constraints)
    if (!c.empty()) c.validate(options_, model_.config().target_vocab);
  model_.add(model_.encode(source), source.sequences, cache_);
  for (size_t i = 0; i < ids.size(); ++i) {
    const SentenceConstraints c = constraints.empty() ? SentenceConstraints{} : constraints[i];
    const int64_t length = source.sequences.length(static_cast<int64_t>(i));
    const auto tokens = source.ids.values().subspan(
        static_cast<size_t>(source.sequences.begin(static_cast<int64_t>(i))), static_cast<size_t>(length));
    sentences_.push_back({ids[i], length, Beam(options_, c, length, limit_of(length, c)), columns_of(tokens, c)});
    tokens_.push_back(options_.special.bos);
  }
}

std::vector<int32_t> BatchedSearch::columns_of(std::span<const int32_t> source,
                                               const SentenceConstraints& constraints) const {
  if (options_.shortlist == nullptr) return {};
  std::vector<int32_t> columns = options_.shortlist->targets_of(source);
  columns.push_back(options_.special.eos);
  columns.insert(columns.end(), constraints.prefix.begin(), constraints.prefix.end());
  for (const auto& phrase : constraints.required) columns.insert(columns.end(), phrase.begin(), phrase.end());
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
  for (const int32_t never : excluded_) std::erase(columns, never);
  return columns;
}

Tensor BatchedSearch::logits() {
  if (options_.shortlist == nullptr) return model_.step(tokens_, cache_);
  std::vector<std::span<const int32_t>> columns;
  for (const Sentence& s : sentences_)
    columns.insert(columns.end(), static_cast<size_t>(s.beam.rows()), std::span<const int32_t>(s.columns));
  return model_.project(model_.step_states(tokens_, cache_), columns);
}

int64_t BatchedSearch::source_tokens() const {
  int64_t sum = 0;
  for (const Sentence& s : sentences_) sum += s.source_tokens;
  return sum;
}

std::vector<CandidateRules> BatchedSearch::rules() const {
  const auto has_rules = [](const Sentence& s) { return s.beam.has_rules(); };
  if (std::none_of(sentences_.begin(), sentences_.end(), has_rules)) return {};
  std::vector<CandidateRules> rules;
  for (const Sentence& s : sentences_) {
    for (int64_t row = 0; row < s.beam.rows(); ++row) {
      rules.push_back(s.beam.has_rules() ? s.beam.rules(row) : CandidateRules{});
      to_columns(s.columns, rules.back().excluded);
      to_columns(s.columns, rules.back().wanted);
    }
  }
  return rules;
}

// On the logits, as in Keskar et al. 2019.
void BatchedSearch::penalize_repetition(const Tensor& logits) const {
  const double penalty = options_.generation.repetition_penalty;
  if (penalty == 1) return;
  const int64_t vocab = logits.size(1);
  dispatch_floating("repetition_penalty", logits.dtype(), [&]<class T>(T) {
    T* x = logits.data<T>();
    for (const Sentence& s : sentences_) {
      for (int64_t row = 0; row < s.beam.rows(); ++row, x += vocab) {
        std::vector<int32_t> past = s.beam.past(row);
        std::sort(past.begin(), past.end());
        past.erase(std::unique(past.begin(), past.end()), past.end());
        to_columns(s.columns, past);
        for (const int32_t column : past) x[column] *= static_cast<T>(x[column] > 0 ? 1 / penalty : penalty);
      }
    }
  });
}

std::vector<FoundSentence> BatchedSearch::step() {
  if (sentences_.empty()) return {};
  const NoGrad no_grad;
  const Tensor scores = logits();
  penalize_repetition(scores);
  top_candidates(scores, 2 * options_.generation.beam_size,
                 options_.shortlist == nullptr ? excluded_ : std::vector<int32_t>{}, rules(), candidates_);
  const Tensor attention = cache_.cross_weights.defined() ? cache_.cross_weights.to(DType::f32) : Tensor{};
  const size_t stride = attention.defined() ? static_cast<size_t>(attention.size(1)) : 0;

  std::vector<FoundSentence> found;
  parents_.clear();
  tokens_.clear();
  size_t row = 0;
  for (Sentence& s : sentences_) {
    const auto rows = static_cast<size_t>(s.beam.rows());
    for (size_t r = row; r < row + rows && !s.columns.empty(); ++r)
      for (Candidate& c : candidates_[r]) c.token = s.columns[static_cast<size_t>(c.token)];
    StepResult result{.candidates = candidates_, .first_row = row};
    if (attention.defined()) {
      result.attention = attention.values<float>().subspan(row * stride, rows * stride);
      result.stride = stride;
    }
    s.beam.advance(result);
    if (s.beam.done()) {
      found.push_back({s.id, s.beam.hypotheses()});
    } else {
      for (const int32_t parent : s.beam.parents()) parents_.push_back(static_cast<int32_t>(row) + parent);
      tokens_.insert(tokens_.end(), s.beam.tokens().begin(), s.beam.tokens().end());
      remaining_.push_back(std::move(s));
    }
    row += rows;
  }
  std::swap(sentences_, remaining_);
  remaining_.clear();
  cache_.select(parents_);
  return found;
}

}  // namespace attune

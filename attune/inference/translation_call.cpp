#include "attune/inference/translation_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/inference/shortlist.h"
#include "attune/inference/text_limits.h"
#include "attune/models/transformer.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

const TranslateOptions& checked(const TranslateOptions& options) {
  const auto check = [](const char* field, int64_t value) {
    if (value < 1) fail<ConfigError>("{} = {}: needs a number from 1", field, value);
  };
  check("batch_sentences", options.batch_sentences);
  check("batch_tokens", options.batch_tokens);
  check("max_source_tokens", options.max_source_tokens);
  return options;
}

SpecialIds special_ids(const Tokenizer& t) {
  return {.pad = t.pad_id(), .unk = t.unk_id(), .bos = t.bos_id(), .eos = t.eos_id()};
}

TokenSequences encode_phrases(const char* field, const Tokenizer& tokenizer, const std::vector<std::string>& phrases) {
  TokenSequences ids;
  for (const std::string& phrase : phrases) {
    check_utf8(phrase, field);
    ids.push_back(tokenizer.encode(phrase));
    if (ids.back().empty()) fail<ConfigError>("{}: \"{}\" has no tokens", field, phrase);
    if (std::find(ids.back().begin(), ids.back().end(), tokenizer.unk_id()) != ids.back().end())
      fail<ConfigError>("{}: \"{}\" has what the target vocabulary does not", field, phrase);
  }
  return ids;
}

BeamSearchOptions search_options(const Translator& translator, const TranslateOptions& options) {
  const Tokenizer& target = translator.target_tokenizer();
  BeamSearchOptions search{.generation = options.generation.value_or(translator.generation()),
                           .n_best = options.n_best,
                           .special = special_ids(target),
                           .banned = encode_phrases("banned", target, options.banned),
                           .alignments = options.alignments,
                           .shortlist = options.shortlist};
  const int64_t vocab = translator.model().config().target_vocab;
  for (int64_t id = target.vocab_size(); id < vocab; ++id) search.generation.suppressed_tokens.push_back(id);
  search.validate(vocab);
  return search;
}

// What ends a source: eos of its tokenizer, or, where that names none, what ends an output.
int32_t source_end(const Translator& translator, const BeamSearchOptions& options) {
  const int32_t eos = translator.source_tokenizer().eos_id();
  return eos >= 0 ? eos : SearchTokens(options).ends.front();
}

// Threads that each have sentences of their own wait for each other a few times a sentence, threads that share each
// product several times a layer. But a few sentences read the weights once for all of them, where threads would do so
// for each; a single one shares them with nobody.
BatchLimits batch_limits(const TranslateOptions& options) {
  constexpr int64_t kLeastBatch = 16;
  const bool shared = options.batch_sentences > 1 && options.batch_sentences < kLeastBatch;
  return {.sequences = options.batch_sentences, .source_tokens = options.batch_tokens, .lanes = shared ? 1 : 0};
}

}  // namespace

TranslationCall::TranslationCall(const Translator& translator, Scheduler& scheduler, const TranslateOptions& options)
    : translator_(translator),
      options_(checked(options)),
      required_(encode_phrases("required", translator.target_tokenizer(), options.required)),
      search_options_(search_options(translator, options)),
      start_token_(SearchTokens(search_options_).start),
      source_end_(source_end(translator, search_options_)),
      batch_(batch_limits(options)),
      client_(scheduler) {
  // Enough for every thread and the next batch, so that other callers have their turn.
  constexpr int64_t kLeastSubmitted = 256, kMostBatch = 1 << 16;
  most_submitted_ = std::max(kLeastSubmitted, 2 * std::min(batch_.sequences, kMostBatch) * thread_count());
}

SentenceConstraints TranslationCall::encode(const TranslationConstraints& constraints, const std::string& place) const {
  const Tokenizer& tokenizer = translator_.target_tokenizer();
  SentenceConstraints encoded{.prefix = tokenizer.encode(constraints.prefix), .required = required_};
  check_utf8(constraints.prefix, place + ": prefix");
  for (auto& phrase : encode_phrases("required", tokenizer, constraints.required))
    encoded.required.push_back(std::move(phrase));
  if (encoded.empty()) return encoded;
  try {
    encoded.validate(search_options_, tokenizer.vocab_size());
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", place, error.what());
  }
  return encoded;
}

void TranslationCall::add(const std::string& sentence, const TranslationConstraints& constraints,
                          const std::string& place) {
  const size_t id = taken_ + entries_.size();
  const std::string name = place.empty() ? fmt::format("sentence {}", id + 1) : place;
  check_text(sentence, name);
  const Tokenizer& tokenizer = translator_.source_tokenizer();
  Entry entry{.source = tokenizer.encode(sentence)};
  const auto tokens = static_cast<int64_t>(entry.source.size());
  if (const int64_t most = translator_.longest_source(options_); tokens > most)
    fail<DataError>("{}: {}has {} tokens, at most {} are accepted", name, place.empty() ? "" : "the sentence ", tokens,
                    most);
  entry.constraints = encode(constraints, name);
  entry.done = tokens == 0;
  entry.name = name;
  if (entry.done) {
    entry.translation.n_best = {ScoredText{}};
    ++done_;
  } else {
    entry.source.push_back(source_end_);
    order_.push_back(id);
  }
  entries_.push_back(std::move(entry));
}

// So that none that takes long is left to the end.
void TranslationCall::sort_new() {
  if (first_new_ == order_.size()) return;
  std::stable_sort(order_.begin() + static_cast<std::ptrdiff_t>(first_new_), order_.end(),
                   [&](size_t a, size_t b) { return entry(a).source.size() > entry(b).source.size(); });
  order_.erase(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  first_new_ = order_.size();
}

void TranslationCall::submit() {
  sort_new();
  for (; waiting() && client_.outstanding() < most_submitted_; ++next_) {
    Entry& e = entry(order_[next_]);
    client_.submit(order_[next_], {.source = options_.alignments ? e.source : std::move(e.source),
                                   .prompt = {start_token_},
                                   .search = BeamSearchRequest{search_options_, std::move(e.constraints)},
                                   .batch = batch_,
                                   .interrupt = options_.interrupt,
                                   .deadline = options_.deadline});
  }
}

void TranslationCall::work() {
  submit();
  auto done = client_.work();
  check_interrupt(options_.interrupt);  // then results are cut short
  for (auto& [id, found] : done) {
    Entry& e = entry(id);
    try {
      if (found.error) std::rethrow_exception(found.error);
      e.translation = to_text(found, e.source);
    } catch (const NumericError& error) {
      e.failure = fmt::format("{}: {}", e.name, error.what());
    }
    e.done = true;
    ++done_;
  }
}

std::vector<Translation> TranslationCall::take() {
  std::vector<Translation> translations;
  for (; !entries_.empty() && entries_.front().done && entries_.front().failure.empty(); ++taken_) {
    translations.push_back(std::move(entries_.front().translation));
    entries_.pop_front();
  }
  return translations;
}

const std::string* TranslationCall::failure() const {
  return entries_.empty() || entries_.front().failure.empty() ? nullptr : &entries_.front().failure;
}

void TranslationCall::pass_over_failure() {
  entries_.front().failure.clear();
  entries_.front().translation.n_best = {ScoredText{}};
}

Translation TranslationCall::to_text(const DecodingResult& found, const std::vector<int32_t>& source) const {
  const Tokenizer& target = translator_.target_tokenizer();
  Translation translation;
  translation.cut_short = found.cut_short;
  for (const Hypothesis& h : found.hypotheses) {
    ScoredText text{.text = target.decode(h.tokens),
                    .score = h.score,
                    .tokens = h.tokens,
                    .finished = h.finished,
                    .token_log_probabilities = h.token_log_probabilities,
                    .log_probability = h.log_probability};
    if (!h.alignment.empty())
      text.alignment =
          align_words(words_of_tokens(translator_.source_tokenizer(), std::span(source).first(source.size() - 1)),
                      words_of_tokens(target, h.tokens), h.alignment);
    translation.n_best.push_back(std::move(text));
  }
  // Nothing was finished in time, or the vocabulary has nothing that may be produced.
  if (translation.n_best.empty()) translation.n_best.emplace_back().finished = !found.cut_short.has_value();
  return translation;
}

}  // namespace attune

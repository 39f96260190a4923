#include "attune/generate/translator.h"

#include <algorithm>

#include "attune/generate/batched_search.h"
#include "attune/generate/batches.h"
#include "attune/nn/pack_weights.h"

namespace attune {
namespace {

void check_options(const TranslateOptions& options) {
  const auto check = [](const char* field, int64_t value) {
    if (value < 1) fail<ConfigError>("{} = {}: needs a number from 1", field, value);
  };
  check("batch_sentences", options.batch_sentences);
  check("batch_tokens", options.batch_tokens);
  check("max_source_tokens", options.max_source_tokens);
}

// Each with eos; a sentence without tokens stays empty.
TokenSequences encode_all(const Tokenizer& tokenizer, std::span<const std::string> sentences, int64_t most_tokens) {
  TokenSequences ids;
  ids.reserve(sentences.size());
  for (const std::string& sentence : sentences) {
    ids.push_back(tokenizer.encode(sentence));
    if (static_cast<int64_t>(ids.back().size()) > most_tokens)
      fail<DataError>("sentence {}: has {} tokens, at most {} are accepted", ids.size(), ids.back().size(),
                      most_tokens);
    if (!ids.back().empty()) ids.back().push_back(tokenizer.eos_id());
  }
  return ids;
}

SpecialIds special_ids(const Tokenizer& t) {
  return {.pad = t.pad_id(), .unk = t.unk_id(), .bos = t.bos_id(), .eos = t.eos_id()};
}

TokenSequences encode_phrases(const char* field, const Tokenizer& tokenizer, const std::vector<std::string>& phrases) {
  TokenSequences ids;
  for (const std::string& phrase : phrases) {
    ids.push_back(tokenizer.encode(phrase));
    if (ids.back().empty()) fail<ConfigError>("{}: \"{}\" has no tokens", field, phrase);
    if (std::find(ids.back().begin(), ids.back().end(), tokenizer.unk_id()) != ids.back().end())
      fail<ConfigError>("{}: \"{}\" has what the target vocabulary does not", field, phrase);
  }
  return ids;
}

// The sentences that are still to be translated, longest first, so that none that takes long is left to the end.
class WaitingSentences {
 public:
  WaitingSentences(const TokenSequences& ids, const std::vector<SentenceConstraints>& constraints,
                   const TranslateOptions& options)
      : ids_(ids), constraints_(constraints), options_(options) {
    for (size_t i = 0; i < ids.size(); ++i)
      if (!ids[i].empty()) order_.push_back(i);
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) { return ids[a].size() > ids[b].size(); });
  }

  bool any() const { return next_ < order_.size(); }

  /// As many as there is room for, once that is a quarter of all: the encoder reads several at once.
  void enter(BatchedSearch& search) {
    const int64_t room = options_.batch_sentences - search.sentences();
    if (!any() || (search.sentences() > 0 && 4 * room < options_.batch_sentences)) return;
    std::vector<size_t> batch;
    std::vector<SentenceConstraints> constraints;
    int64_t tokens = search.source_tokens();
    for (; any() && static_cast<int64_t>(batch.size()) < room; ++next_) {
      const size_t i = order_[next_];
      tokens += static_cast<int64_t>(ids_[i].size());
      if (tokens > options_.batch_tokens && (search.sentences() > 0 || !batch.empty())) break;
      batch.push_back(i);
      if (!constraints_.empty()) constraints.push_back(constraints_[i]);
    }
    search.add(batch, pack_batch(ids_, batch), constraints);
  }

 private:
  const TokenSequences& ids_;
  const std::vector<SentenceConstraints>& constraints_;
  const TranslateOptions& options_;
  std::vector<size_t> order_;
  size_t next_ = 0;
};

}  // namespace

Translator::Translator(std::shared_ptr<Transformer> model, std::shared_ptr<const Tokenizer> source_tokenizer,
                       std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation)
    : model_(std::move(model)),
      source_tokenizer_(std::move(source_tokenizer)),
      target_tokenizer_(std::move(target_tokenizer)),
      generation_(generation) {
  generation_.validate();
  check_vocabularies(*model_, *source_tokenizer_, *target_tokenizer_);
  set_evaluation(*model_);
  pack_weights(*model_, WeightFormat::float32);
}

Translator::Translator(ModelFiles files)
    : Translator(std::move(files.model), std::move(files.source_tokenizer), std::move(files.target_tokenizer),
                 files.generation) {}

int64_t Translator::longest_source(const TranslateOptions& options) const {
  return std::min(options.max_source_tokens, model_->config().longest_sequence() - 1);  // and eos
}

BeamSearchOptions Translator::search_options(const TranslateOptions& options) const {
  BeamSearchOptions search{.generation = options.generation.value_or(generation_),
                           .n_best = options.n_best,
                           .special = special_ids(*target_tokenizer_),
                           .banned = encode_phrases("banned", *target_tokenizer_, options.banned),
                           .alignments = options.alignments,
                           .shortlist = options.shortlist.get()};
  search.validate(target_tokenizer_->vocab_size());
  return search;
}

std::vector<SentenceConstraints> Translator::constraints_of(const TranslateOptions& options, size_t sentences) const {
  if (!options.demands.empty() && options.demands.size() != sentences)
    fail<ConfigError>("demands: {} for {} sentences", options.demands.size(), sentences);
  if (options.demands.empty() && options.required.empty()) return {};
  const TokenSequences of_all = encode_phrases("required", *target_tokenizer_, options.required);
  std::vector<SentenceConstraints> constraints(sentences, {.required = of_all});
  for (size_t i = 0; i < options.demands.size(); ++i) {
    constraints[i].prefix = target_tokenizer_->encode(options.demands[i].prefix);
    for (auto& phrase : encode_phrases("required", *target_tokenizer_, options.demands[i].required))
      constraints[i].required.push_back(std::move(phrase));
  }
  return constraints;
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences,
                                               const TranslateOptions& options) const {
  check_options(options);
  const BeamSearchOptions search_with = search_options(options);
  const TokenSequences ids = encode_all(*source_tokenizer_, sentences, longest_source(options));
  const std::vector<SentenceConstraints> constraints = constraints_of(options, sentences.size());
  for (size_t i = 0; i < constraints.size(); ++i) {
    try {
      constraints[i].validate(search_with, target_tokenizer_->vocab_size());
    } catch (const ConfigError& error) {
      fail<ConfigError>("sentence {}: {}", i + 1, error.what());
    }
  }

  std::vector<Translation> translations(sentences.size(), Translation{.n_best = {ScoredText{}}});
  auto done = static_cast<int64_t>(std::count_if(ids.begin(), ids.end(), [](const auto& i) { return i.empty(); }));
  WaitingSentences waiting(ids, constraints, options);
  BatchedSearch search(*model_, search_with);
  while (waiting.any() || search.sentences() > 0) {
    waiting.enter(search);
    const std::vector<FoundSentence> found = search.step();
    for (const FoundSentence& f : found) translations[f.id] = to_text(f.hypotheses, ids[f.id]);
    done += static_cast<int64_t>(found.size());
    if (options.progress && !found.empty()) options.progress(done, static_cast<int64_t>(sentences.size()));
  }
  return translations;
}

Translation Translator::to_text(const std::vector<Hypothesis>& hypotheses, std::span<const int32_t> source) const {
  Translation translation;
  for (const Hypothesis& h : hypotheses) {
    ScoredText text{.text = target_tokenizer_->decode(h.tokens),
                    .score = h.score,
                    .tokens = h.tokens,
                    .finished = h.finished,
                    .token_log_probabilities = h.token_log_probabilities,
                    .log_probability = h.log_probability};
    if (!h.alignment.empty())
      text.alignment = align_words(words_of_tokens(*source_tokenizer_, source.first(source.size() - 1)),
                                   words_of_tokens(*target_tokenizer_, h.tokens), h.alignment);
    translation.n_best.push_back(std::move(text));
  }
  if (translation.n_best.empty()) translation.n_best.emplace_back();  // a vocabulary of nothing that may be produced
  return translation;
}

}  // namespace attune

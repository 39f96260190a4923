#include "attune/generate/translator.h"

#include <algorithm>

#include "attune/generate/batches.h"

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
}

Translator::Translator(ModelFiles files)
    : Translator(std::move(files.model), std::move(files.source_tokenizer), std::move(files.target_tokenizer),
                 files.generation) {}

int64_t Translator::longest_source(const TranslateOptions& options) const {
  return std::min(options.max_source_tokens, model_->config().longest_sequence() - 1);  // and eos
}

std::vector<Translation> Translator::translate(std::span<const std::string> sentences,
                                               const TranslateOptions& options) const {
  check_options(options);
  const BeamSearchOptions search{.generation = options.generation.value_or(generation_),
                                 .n_best = options.n_best,
                                 .special = special_ids(*target_tokenizer_)};
  search.validate(target_tokenizer_->vocab_size());
  const TokenSequences ids = encode_all(*source_tokenizer_, sentences, longest_source(options));
  const auto batches = batches_by_length(ids, options.batch_sentences, options.batch_tokens);

  std::vector<Translation> translations(sentences.size(), Translation{.n_best = {ScoredText{}}});
  auto done = static_cast<int64_t>(std::count_if(ids.begin(), ids.end(), [](const auto& i) { return i.empty(); }));
  for (const std::vector<size_t>& batch : batches) {
    const auto hypotheses = beam_search(*model_, pack_batch(ids, batch), search);
    for (size_t i = 0; i < batch.size(); ++i) translations[batch[i]] = to_text(hypotheses[i]);
    done += static_cast<int64_t>(batch.size());
    if (options.progress) options.progress(done, static_cast<int64_t>(sentences.size()));
  }
  return translations;
}

Translation Translator::to_text(const std::vector<Hypothesis>& hypotheses) const {
  Translation translation;
  for (const Hypothesis& h : hypotheses)
    translation.n_best.push_back({target_tokenizer_->decode(h.tokens), h.score, h.tokens, h.finished});
  if (translation.n_best.empty()) translation.n_best.emplace_back();  // a vocabulary of nothing that may be produced
  return translation;
}

}  // namespace attune

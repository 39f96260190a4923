#include "attune/inference/translation_requests.h"

#include <algorithm>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/inference/adapter_choice.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/decoding/shortlist.h"
#include "attune/inference/languages.h"
#include "attune/inference/text_limits.h"
#include "attune/models/transformer.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

const TranslateOptions& checked(const TranslateOptions& options) {
  check_range("batch_sentences", options.batch_sentences, 1, 1 << 20);
  check_least("batch_tokens", options.batch_tokens, 1);
  check_least("max_source_tokens", options.max_source_tokens, 1);
  return options;
}

void check_tokens(const std::string& name, int64_t tokens, int64_t most) {
  if (tokens > most)
    throw TooManyTokens(fmt::format("{}: has {} tokens, at most {} are accepted", name, tokens, most), tokens, most);
}

TokenSequences encode_phrases(const char* field, const Tokenizer& tokenizer, const std::vector<std::string>& phrases) {
  TokenSequences ids;
  for (const std::string& phrase : phrases) {
    check_text(phrase, field);
    ids.push_back(tokenizer.encode_target(phrase));
    if (ids.back().empty()) fail<ConfigError>("{}: \"{}\" has no tokens", field, phrase);
    if (std::find(ids.back().begin(), ids.back().end(), tokenizer.unk_id()) != ids.back().end())
      fail<ConfigError>("{}: \"{}\" has what the target vocabulary does not", field, phrase);
  }
  return ids;
}

std::shared_ptr<const BeamSearchOptions> search_options(const Translator& translator, const TranslateOptions& options,
                                                        const TokenSequences& required) {
  const Tokenizer& target = translator.target_tokenizer();
  BeamSearchOptions search{.generation = options.generation.value_or(translator.generation()),
                           .n_best = options.n_best,
                           .special = target.special_ids(),
                           .banned = encode_phrases("banned", target, options.banned),
                           .alignments = options.alignments,
                           .shortlist = options.shortlist};
  const int64_t vocab = translator.model().config().target_vocab;
  for (int64_t id = target.vocab_size(); id < vocab; ++id) search.generation.suppressed_tokens.push_back(id);
  if (!options.target_language.empty())
    set_target_language(search.generation, target, language_token(target, "target_language", options.target_language));
  search.validate(vocab);
  SentenceConstraints{.required = required}.validate(search, target.vocab_size());
  check_not_banned(required, search);
  return std::make_shared<const BeamSearchOptions>(std::move(search));
}

// What ends a source: eos of its tokenizer, or, where that names none, what ends an output.
int32_t source_end(const Translator& translator, const BeamSearchOptions& options) {
  const int32_t eos = translator.source_tokenizer().eos_id();
  return eos >= 0 ? eos : SearchTokens(options).ends.front();
}

int32_t source_language(const Translator& translator, const TranslateOptions& options) {
  if (options.source_language.empty()) return -1;
  return language_token(translator.source_tokenizer(), "source_language", options.source_language);
}

}  // namespace

// With a lane for each thread, threads wait for each other a few times a sentence; threads that share one lane do so
// several times a layer. But one lane reads the weights once for all its sentences, which counts for a few sentences.
// With a single sentence there is nothing to share.
BatchLimits batch_limits(const TranslateOptions& options) {
  constexpr int64_t kLeastBatch = 16;
  const bool shared = options.batch_sentences > 1 && options.batch_sentences < kLeastBatch;
  return {.sequences = options.batch_sentences, .source_tokens = options.batch_tokens, .lanes = shared ? 1 : 0};
}

TranslationRequests::TranslationRequests(const Translator& translator, const TranslateOptions& options)
    : translator_(translator),
      options_(checked(options)),
      adapter_(adapter_number(translator.adapters(), options.adapter)),
      required_(encode_phrases("required", translator.target_tokenizer(), options.required)),
      search_options_(search_options(translator, options, required_)),
      start_token_(SearchTokens(*search_options_).start),
      end_token_(SearchTokens(*search_options_).ends.front()),
      source_end_(source_end(translator, *search_options_)),
      source_language_(source_language(translator, options)),
      frame_(static_cast<int64_t>(read_by_encoder("").size())),
      batch_(batch_limits(options)) {}

std::vector<int32_t> TranslationRequests::read_by_encoder(std::string_view sentence) const {
  const Tokenizer& tokenizer = translator_.source_tokenizer();
  if (search_options_->generation.special_tokens)  // a model that was trained elsewhere
    return framed_source(tokenizer, sentence, source_language_, source_end_);
  std::vector<int32_t> source = tokenizer.encode(sentence);
  source.push_back(source_end_);
  return source;
}

std::vector<int32_t> TranslationRequests::encode(const std::string& sentence, const std::string& name) const {
  check_text(sentence, name);
  std::vector<int32_t> source = read_by_encoder(sentence);
  const int64_t tokens = static_cast<int64_t>(source.size()) - frame_;
  const int64_t room = translator_.scheduler().model().longest_sequence() - frame_;
  check_tokens(name, tokens, std::min(translator_.longest_source(options_), room));
  if (tokens == 0) return {};
  return source;
}

SentenceConstraints TranslationRequests::encode(const TranslationConstraints& constraints,
                                                const std::string& name) const {
  const Tokenizer& tokenizer = translator_.target_tokenizer();
  check_text(constraints.prefix, name + ": prefix");
  SentenceConstraints encoded{.prefix = tokenizer.encode_target(constraints.prefix)};
  try {
    const TokenSequences own = encode_phrases("required", tokenizer, constraints.required);
    encoded.required = required_;
    encoded.required.insert(encoded.required.end(), own.begin(), own.end());
    encoded.validate(*search_options_, tokenizer.vocab_size());
    check_not_banned(own, *search_options_);
  } catch (const ConfigError& error) {
    fail<ConfigError>("{}: {}", name, error.what());
  }
  return encoded;
}

std::vector<int32_t> TranslationRequests::decoder_input(const std::string& translation, const std::string& name) const {
  check_text(translation, name);
  std::vector<int32_t> tokens = translator_.target_tokenizer().encode_target(translation);
  const int64_t forced = search_options_->generation.forced_first_token;
  const int64_t room = translator_.scheduler().model().longest_sequence() - (forced >= 0 ? 2 : 1);
  check_tokens(name, std::ssize(tokens), std::min(options_.max_source_tokens, room));
  if (forced >= 0) tokens.insert(tokens.begin(), static_cast<int32_t>(forced));
  return decoder_input(tokens);
}

std::vector<int32_t> TranslationRequests::decoder_input(std::span<const int32_t> tokens) const {
  std::vector<int32_t> input = {start_token_};
  input.insert(input.end(), tokens.begin(), tokens.end());
  return input;
}

DecodingRequest TranslationRequests::request(std::vector<int32_t> source, SentenceConstraints constraints) const {
  return {.source = std::move(source),
          .prompt = {start_token_},
          .search = BeamSearchRequest(search_options_, std::move(constraints)),
          .adapter = adapter_,
          .batch = batch_,
          .interrupt = options_.interrupt,
          .deadline = options_.deadline};
}

Translation TranslationRequests::translation(const DecodingResult& found, const std::vector<int32_t>& source) const {
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
  if (translation.n_best.empty()) translation.n_best.emplace_back().finished = false;  // nothing was found in time
  return translation;
}

}  // namespace attune

#pragma once
// Text in, text out.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attune/generate/beam_search.h"
#include "attune/generate/model_files.h"

namespace attune {

struct ScoredText {
  std::string text;
  double score = 0;             // see Hypothesis
  std::vector<int32_t> tokens;  // of the target vocabulary, without bos and eos
  bool finished = true;         // not cut off by the length limit
};

struct Translation {
  std::vector<ScoredText> n_best;  // best first, at least one
  const std::string& text() const { return n_best.front().text; }
};

struct TranslateOptions {
  std::optional<GenerationConfig> generation = {};  // else the model's own
  int64_t n_best = 1;                               // at most beam_size
  int64_t batch_sentences = 64;                     // a batch has at most so many sentences and ...
  int64_t batch_tokens = 8192;                      // ... source tokens, but at least one sentence
  int64_t max_source_tokens = 1024;                 // a longer sentence is a DataError

  /// Called after each batch with the number of sentences that are done.
  std::function<void(int64_t done, int64_t total)> progress = {};
};

/// A model with its tokenizers. The model reads the source's tokens and an eos. Safe to use from several threads at
/// once.
class Translator {
 public:
  /// Takes the model into evaluation mode. Throws ConfigError when a vocabulary is not the model's.
  Translator(std::shared_ptr<Transformer> model, std::shared_ptr<const Tokenizer> source_tokenizer,
             std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation);
  explicit Translator(ModelFiles files);

  /// From a model folder. Throws FileError or ConfigError.
  static Translator load(const std::filesystem::path& folder) { return Translator(load_model_folder(folder)); }

  /// One translation for each sentence, in their order; that of a sentence without tokens is empty. A sentence's
  /// translation does not depend on what else is translated with it. Throws DataError naming the sentence (counted from
  /// 1) that is too long, before anything is translated, and ConfigError for options that do not fit.
  std::vector<Translation> translate(std::span<const std::string> sentences,
                                     const TranslateOptions& options = {}) const;
  /// Tokens that a sentence may have: max_source_tokens, or what learned positions have room for.
  int64_t longest_source(const TranslateOptions& options) const;

  const Transformer& model() const { return *model_; }
  const Tokenizer& source_tokenizer() const { return *source_tokenizer_; }
  const Tokenizer& target_tokenizer() const { return *target_tokenizer_; }
  const GenerationConfig& generation() const { return generation_; }

 private:
  Translation to_text(const std::vector<Hypothesis>& hypotheses) const;

  std::shared_ptr<Transformer> model_;
  std::shared_ptr<const Tokenizer> source_tokenizer_;
  std::shared_ptr<const Tokenizer> target_tokenizer_;
  GenerationConfig generation_;
};

}  // namespace attune

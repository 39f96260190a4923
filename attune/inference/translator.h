#pragma once
// Text in, text out.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/inference/scheduler_options.h"
#include "attune/inference/word_alignment.h"
#include "attune/models/generation_config.h"

namespace [[gnu::visibility("default")]] attune {

class Scheduler;
class Shortlist;
class Tokenizer;
class Transformer;
struct ModelFolder;

struct ScoredText {
  std::string text;
  double score = 0;                                  // see Hypothesis
  std::vector<int32_t> tokens;                       // of the target vocabulary, without bos and eos
  bool finished = true;                              // not cut off by the length limit
  std::vector<double> token_log_probabilities = {};  // of each token, and of eos where it is finished
  double log_probability = 0;                        // of all of them
  WordAlignment alignment = {};                      // on request
};

/// What is asked of the translation of one sentence, in words.
struct TranslationConstraints {
  std::string prefix = {};                 // it begins with this
  std::vector<std::string> required = {};  // it has each of these phrases
};

struct Translation {
  std::vector<ScoredText> n_best;  // best first, at least one
  const std::string& text() const { return n_best.front().text; }
};

struct TranslateOptions {
  std::optional<GenerationConfig> generation = {};  // else the model's own
  int64_t n_best = 1;                               // at most beam_size
  int64_t batch_sentences = 64;                     // at most so many at once (1, or 16 and more: by each thread) ...
  int64_t batch_tokens = 8192;                      // ... source tokens, but at least one sentence
  int64_t max_source_tokens = 1024;                 // a longer sentence is a DataError

  /// Called when sentences are done, with the number of all that are.
  std::function<void(int64_t done, int64_t total)> progress = {};

  std::vector<std::string> banned = {};    // phrases that no translation has, as the target tokenizer splits them
  std::vector<std::string> required = {};  // phrases that every one has, likewise
  std::vector<TranslationConstraints> constraints = {};  // of each sentence, in their order, or none at all
  bool alignments = false;                               // whether ScoredText::alignment is wanted
  std::shared_ptr<const Shortlist> shortlist = {};       // of the tokens that sentences may be translated by, or none
};

struct StreamedSentence {
  std::string text;
  TranslationConstraints constraints = {};
  std::string place = {};  // where it is from, for messages; else its number
};

/// Where sentences come from and their translations go.
struct TranslationStream {
  /// The next sentences: a piece, in which those of like length are translated together. `wait`: true blocks until
  /// there are some; an empty piece is the end. False returns what is at hand, perhaps nothing. An Error that it throws
  /// is one of translate(), once what was read before is written.
  std::function<std::vector<StreamedSentence>(bool wait)> read;
  /// The translations that are next, in the order of the sentences.
  std::function<void(std::vector<Translation>)> write;
  /// Called with what is wrong with a sentence that is too long or not valid UTF-8, whose translation is empty then.
  /// Without it that is an error as one of read() is.
  std::function<void(const std::string& what)> skip = {};
};

/// A model with its tokenizers. The model reads the source's tokens and an eos.
///
/// Safe to use from several threads at once, copies too: all calls share one Scheduler, in which one of the calling
/// threads works for all of them. Functions that are passed in are called from the thread that passed them.
class Translator {
 public:
  /// Of the numbers that the model has now: it works on a copy, see inference_copy(), so that the model may be trained
  /// meanwhile. Throws ConfigError when a vocabulary is not the model's.
  Translator(const std::shared_ptr<Transformer>& model, std::shared_ptr<const Tokenizer> source_tokenizer,
             std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation,
             const SchedulerOptions& options = {});
  /// Of a model that becomes its own; panels that it has are taken as they are.
  explicit Translator(ModelFolder files, const SchedulerOptions& options = {});

  /// From a model folder. Throws FileError or ConfigError.
  static Translator load(const std::filesystem::path& folder, const SchedulerOptions& options = {});

  /// The translation of one sentence; that of a sentence without tokens is empty. Throws as below.
  Translation translate(std::string_view sentence, const TranslateOptions& options = {}) const;
  /// One translation for each sentence, in their order. Sentences that are done make room for others at once. A
  /// sentence's translation does not depend on what else is translated at the same time. Throws DataError naming the
  /// sentence (counted from 1) that is too long or not valid UTF-8, before anything is translated, ConfigError for
  /// options that do not fit, and NumericError when the model's logits are not finite.
  std::vector<Translation> translate(std::span<const std::string> sentences,
                                     const TranslateOptions& options = {}) const;
  std::vector<Translation> translate(std::initializer_list<std::string> sentences,
                                     const TranslateOptions& options = {}) const;
  /// The same for sentences that memory need not hold: the next ones enter as others leave, without a pause between
  /// pieces, and no more than some thousand, or one piece, are held at once. Of the options `constraints` do not count;
  /// the total of `progress` is that of the sentences read so far. What the stream's functions throw ends it.
  void translate(const TranslationStream& stream, const TranslateOptions& options = {}) const;
  /// Tokens that a sentence may have: max_source_tokens, or what learned positions have room for.
  int64_t longest_source(const TranslateOptions& options) const;

  const Transformer& model() const;
  const Tokenizer& source_tokenizer() const;
  const Tokenizer& target_tokenizer() const;
  const GenerationConfig& generation() const;
  /// What all calls share.
  const Scheduler& scheduler() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace attune

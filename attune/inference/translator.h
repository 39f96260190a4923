#pragma once
// Text in, text out.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/base/interrupt.h"
#include "attune/hub/adapter_folders.h"
#include "attune/inference/decoding/finish_reason.h"
#include "attune/inference/decoding/scheduler_options.h"
#include "attune/models/generation_config.h"
#include "attune/text/word_alignment.h"

namespace [[gnu::visibility("default")]] attune {

class Scheduler;
class Shortlist;
class Tokenizer;
class Transformer;
struct ModelFolder;

struct ScoredText {
  std::string text;
  double score = 0;                                  // log_probability / length_divisor(), plus the coverage penalty
  std::vector<int32_t> tokens;                       // of the target vocabulary, without bos and eos
  bool finished = true;                              // ended by eos; false: cut off, or no token could follow it
  std::vector<double> token_log_probabilities = {};  // of each token, and of eos where it is finished
  double log_probability = 0;                        // their sum
  WordAlignment alignment = {};                      // on request
};

/// What the translation of one sentence must contain, as text.
struct TranslationConstraints {
  std::string prefix = {};                 // the translation begins with this
  std::vector<std::string> required = {};  // the translation has each of these phrases
};

struct Translation {
  std::vector<ScoredText> n_best;              // best first, at least one
  std::optional<FinishReason> cut_short = {};  // deadline, if that ended the search: fewer or none may be finished
  std::string error = {};                      // why the sentence was skipped, see TranslationStream; "": it was not
  const std::string& text() const { return n_best.front().text; }
};

struct TranslateOptions {
  std::optional<GenerationConfig> generation = {};  // else the model's own
  std::string adapter = {};                         // one of Translator::adapters(); "": the model as it is
  int64_t n_best = 1;                               // at most beam_size
  int64_t batch_sentences = 64;                     // most sentences at once, of each thread (2 to 15: of all) ...
  int64_t batch_tokens = 8192;                      // ... and most source tokens; at least one sentence
  int64_t max_source_tokens = 1024;                 // a longer sentence is a DataError

  /// Called when sentences are done, with the number of all that are done.
  std::function<void(int64_t done, int64_t total)> progress = {};
  /// Called with each translation as soon as it is done, in any order; `index` is the sentence's index among those of
  /// the call. Not called for a sentence that ends the call with an error.
  std::function<void(size_t index, const Translation& translation)> on_translation = {};

  std::vector<std::string> banned = {};    // phrases that no translation may have, as the target tokenizer splits them
  std::vector<std::string> required = {};  // phrases that every translation must have, likewise
  std::vector<TranslationConstraints> constraints = {};  // one for each sentence, in their order, or none
  std::vector<std::string> places = {};                  // likewise, where it is from, for messages; none: its number
  bool alignments = false;                               // true: fills ScoredText::alignment
  /// Of models of many languages, as their vocabularies name them: "deu_Latn" (NLLB), "de_DE" (mBART), "de" (M2M100).
  /// "": as the model's folder says.
  std::string source_language = {}, target_language = {};
  std::shared_ptr<const Shortlist> shortlist = {};  // limits the tokens of translations; null: no limit

  /// The time at which the search ends for all sentences of the call. A sentence that is not done by then keeps its
  /// finished translations, or gets an empty one, unfinished; Translation::cut_short is set. None: no limit.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// Once true, translate() throws Interrupted within a step of the search.
  const std::atomic<bool>* interrupt = nullptr;
};

struct StreamedSentence {
  std::string text;
  TranslationConstraints constraints = {};
  std::string place = {};  // where it is from, for messages; "": its number
};

/// Where sentences come from and where their translations go.
struct TranslationStream {
  /// Returns the next sentences, a piece; sentences of similar length in a piece are translated together. `wait`: true
  /// blocks until there is input, and an empty piece is the end of input; false returns what is there, perhaps nothing.
  /// translate() throws the Error that this throws, after it has written what was read before.
  std::function<std::vector<StreamedSentence>(bool wait)> read;
  /// Takes the next translations, in the order of the sentences.
  std::function<void(std::vector<Translation>)> write;
  /// Called with the message for a sentence that is too long or not valid UTF-8, for which the model's logits are not
  /// finite, or whose search could need more than SchedulerOptions::cache_bytes; its translation is then empty, not
  /// finished, and has the message too. Without this function such a sentence ends translate() with an error, after the
  /// translations before it are written.
  std::function<void(const std::string& what)> skip = {};
};

/// A model with its tokenizers. The model reads the source's tokens and an eos.
///
/// Safe to use from several threads at once, copies too: all calls share one Scheduler, and one of the calling threads
/// does the work of all. Functions that you pass to a call are called from the thread that made the call.
class Translator {
 public:
  /// Works on a copy of the model as it is now, with panels of its own, so that the model may be trained meanwhile. The
  /// copy is on `options.device`, none: on the model's.
  /// Throws ConfigError when a tokenizer's vocabulary is not the model's.
  Translator(const std::shared_ptr<Transformer>& model, std::shared_ptr<const Tokenizer> source_tokenizer,
             std::shared_ptr<const Tokenizer> target_tokenizer, const GenerationConfig& generation,
             const SchedulerOptions& options = {});
  /// Takes the model over. Moves it to `options.device`, and makes the panels of its weights unless it has them. Throws
  /// DeviceError, and ConfigError for a model with adapters to choose from that is on another device.
  explicit Translator(ModelFolder files, const SchedulerOptions& options = {});

  /// From a model folder. With adapters, each call chooses one (TranslateOptions::adapter) or none; calls with
  /// different ones are decoded together, and a translation is the same as if its call were alone. Throws FileError,
  /// which names a tensor of an adapter that does not fit the model, ConfigError, or DeviceError.
  static Translator load(const std::filesystem::path& folder, const SchedulerOptions& options = {},
                         const AdapterFolders& adapters = {});
  /// From several model folders, which translate together: at each step, the probability of a token is the mean of
  /// their probabilities. Tokenizers, generation settings and word alignments are the first one's. A repetition_penalty
  /// needs penalize_log_probabilities and a beam of several, else translate() throws ConfigError. Throws FileError or
  /// ConfigError, also unless all have the same vocabularies.
  static Translator load_ensemble(const std::vector<std::filesystem::path>& folders,
                                  const SchedulerOptions& options = {});

  /// Returns the translation of one sentence; it is empty for a sentence without tokens. Throws as below.
  Translation translate(std::string_view sentence, const TranslateOptions& options = {}) const;
  /// Returns one translation for each sentence, in their order. A sentence that is done makes room for the next at
  /// once. A sentence's translation does not depend on what else is translated at the same time. Throws DataError
  /// naming the sentence (counted from 1) that is too long or not valid UTF-8, before anything is translated,
  /// ConfigError for options that do not fit and for a sentence whose search could need more than
  /// SchedulerOptions::cache_bytes, and, once all others are translated, NumericError naming the first sentence for
  /// which the model's logits are not finite.
  std::vector<Translation> translate(std::span<const std::string> sentences,
                                     const TranslateOptions& options = {}) const;
  std::vector<Translation> translate(std::initializer_list<std::string> sentences,
                                     const TranslateOptions& options = {}) const;
  /// The same for more sentences than memory can hold: the next ones enter as others leave, without a pause between
  /// pieces. At most some thousand sentences, or one piece, are in memory. Constraints and places of the options are
  /// not used; the total of `progress` counts the sentences read so far. An exception of the stream's functions ends
  /// the call.
  void translate(const TranslationStream& stream, const TranslateOptions& options = {}) const;
  /// The most tokens of a sentence: max_source_tokens, or the number of learned positions.
  int64_t longest_source(const TranslateOptions& options) const;

  const Transformer& model() const;  // of an ensemble the first
  const Tokenizer& source_tokenizer() const;
  const Tokenizer& target_tokenizer() const;
  const GenerationConfig& generation() const;
  /// The names of the adapters that calls choose from.
  const std::vector<std::string>& adapters() const;
  /// What all calls share. For Attune's own programs: no public header defines Scheduler.
  Scheduler& scheduler() const;

 private:
  struct Impl;
  explicit Translator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace attune

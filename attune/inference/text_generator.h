#pragma once
// Text that continues a prompt.

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
#include <vector>

#include "attune/hub/adapter_folders.h"
#include "attune/inference/decoding/finish_reason.h"
#include "attune/inference/decoding/scheduler_options.h"
#include "attune/models/sampling_config.h"
#include "attune/text/text_unit.h"

namespace [[gnu::visibility("default")]] attune {

class DecoderLm;
class Scheduler;
class Tokenizer;
struct LanguageModelFolder;

struct GeneratedText {
  std::string text;             // what follows the prompt, up to a stop string, see keep_stop; valid UTF-8
  std::vector<int32_t> tokens;  // that were generated, eos and a stop string's included
  FinishReason finish_reason = FinishReason::length;
};

struct GenerateOptions {
  std::optional<SamplingConfig> sampling = {};  // else the model's own
  std::string adapter = {};                     // one of TextGenerator::adapters(); "": the model as it is
  std::vector<std::string> stop = {};           // strings that end a continuation and are left out of it ...
  bool keep_stop = false;                       // ... unless this is true: then the text has its last token whole
  int64_t samples = 1;                          // continuations of each prompt
  int64_t batch_texts = 32;                     // the most texts at once, those of other calls included
  /// The prompts have their special tokens, as those that a chat template writes: none is put around them.
  bool prompts_have_special_tokens = false;
  std::vector<std::string> places = {};  // where each prompt is from, for messages; none: its number

  /// Called with each addition to a text as soon as it is certain; `index` is the text's index in the result. Additions
  /// are whole characters; all together they are the text.
  std::function<void(size_t index, std::string_view added)> on_text = {};
  /// Called with each token of a text, those that its result has, in their order and before the text that they add.
  std::function<void(size_t index, int32_t token)> on_token = {};
  /// Once true, generation ends and returns what it has.
  const std::atomic<bool>* interrupt = nullptr;
  /// A second such flag, for a caller who may not set the one of `interrupt`. Read between the steps of the call.
  const std::atomic<bool>* cancel = nullptr;
  /// The time at which generation ends and returns what it has, with FinishReason::deadline. None: no limit.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// A smaller model with the same vocabulary that proposes up to draft_tokens tokens at once, which the model accepts
  /// or replaces (Leviathan et al. 2023). The texts have the same distribution as without it. It has to outlive the
  /// call. Null: none.
  const DecoderLm* draft = nullptr;
  int64_t draft_tokens = 4;
};

/// A language model with its tokenizer.
///
/// Safe to use from several threads at once, copies too: all calls share one Scheduler, and one of the calling threads
/// does the work of all. Functions that you pass to a call are called from the thread that made the call.
///
/// A continuation ends when it and the prompt fill the model's context_length. With SamplingConfig::slide it goes on
/// instead: the last context_length / 2 tokens become a new prompt, and the tokens before are forgotten.
class TextGenerator {
 public:
  /// Moves the model to `options.device`, and makes the panels of its weights unless it has them. Throws ConfigError
  /// when the tokenizer's vocabulary is not the model's, or when it has adapters to choose from and is on another
  /// device, and DeviceError.
  explicit TextGenerator(LanguageModelFolder files, const SchedulerOptions& options = {});

  /// From a model folder. With adapters, each call chooses one (GenerateOptions::adapter) or none; calls with different
  /// ones are decoded together, and a text is the same as if its call were alone. Throws FileError, which names a
  /// tensor of an adapter that does not fit the model, ConfigError, or DeviceError.
  static TextGenerator load(const std::filesystem::path& folder, const SchedulerOptions& options = {},
                            const AdapterFolders& adapters = {});

  /// Returns `samples` continuations of each prompt, in the order of the prompts. Random numbers are a function of the
  /// seed, the number of the sample and the token's position, so that a text does not depend on the other texts. Throws
  /// DataError naming the prompt (counted from 1) that is not valid UTF-8, has no tokens or more than context_length,
  /// before anything is generated; with `slide` the last context_length / 2 tokens of such a prompt are used.
  /// ConfigError for options that do not fit, NumericError naming the prompt for which the model's logits are not
  /// finite.
  std::vector<GeneratedText> generate(std::span<const std::string> prompts, const GenerateOptions& options = {}) const;
  std::vector<GeneratedText> generate(std::initializer_list<std::string> prompts,
                                      const GenerateOptions& options = {}) const;
  /// The continuation of one prompt; `samples` is 1.
  GeneratedText generate(std::string_view prompt, const GenerateOptions& options = {}) const;

  /// The tokens of a prompt, as such text is encoded in training: lines and paragraphs begin with bos. In a stream,
  /// each line end that the tokenizer does not keep is an eos. Never empty: the stream of an empty prompt
  /// begins after a line end, or with bos where the vocabulary has no line end. `has_special_tokens`: the prompt has
  /// them already, see GenerateOptions; then its tokens alone, which may be none. Throws DataError for an empty prompt
  /// where the tokenizer names no bos to begin with.
  std::vector<int32_t> encode_prompt(std::string_view prompt, bool has_special_tokens = false) const;
  /// Whether eos is a line break within a text and does not end it.
  bool eos_is_line_end() const;

  const DecoderLm& model() const;
  const Tokenizer& tokenizer() const;
  const SamplingConfig& sampling() const;
  TextUnit text_unit() const;
  /// The names of the adapters that calls choose from.
  const std::vector<std::string>& adapters() const;
  /// What all calls share. For Attune's own programs: no public header defines Scheduler.
  Scheduler& scheduler() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace attune

#pragma once
// Text that goes on from a prompt.

#include <atomic>
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

#include "attune/inference/finish_reason.h"
#include "attune/inference/scheduler_options.h"
#include "attune/models/sampling_config.h"
#include "attune/text/text_unit.h"

namespace [[gnu::visibility("default")]] attune {

class DecoderLm;
class Scheduler;
class Tokenizer;
struct LanguageModelFolder;

struct GeneratedText {
  std::string text;             // what follows the prompt, up to a stop string; valid UTF-8
  std::vector<int32_t> tokens;  // that were generated, with eos and those of a stop string
  FinishReason finish_reason = FinishReason::length;
};

struct GenerateOptions {
  std::optional<SamplingConfig> sampling = {};  // else the model's own
  std::vector<std::string> stop = {};           // texts that end a continuation, of which they are no part
  int64_t samples = 1;                          // continuations of each prompt
  int64_t batch_texts = 32;                     // generated at once, at most, with those of other calls

  /// Called with what is added to a text as soon as it is certain; `index` is the place in the result. What was added
  /// is whole characters, and all of it together is the text.
  std::function<void(size_t index, std::string_view added)> on_text = {};
  /// Once true, generation ends with what there is.
  const std::atomic<bool>* interrupt = nullptr;
  /// A smaller model of the same tokens that proposes up to draft_tokens at once, see speculative_strategy.h: the texts
  /// are distributed as without it. It has to outlive the call. Null: none.
  const DecoderLm* draft = nullptr;
  int64_t draft_tokens = 4;
};

/// A language model with its tokenizer.
///
/// Safe to use from several threads at once, copies too: all calls share one Scheduler, in which one of the calling
/// threads works for all of them. Functions that are passed in are called from the thread that passed them.
///
/// A continuation ends when the prompt and what follows it fill the model's context_length. With SamplingConfig::slide
/// it goes on instead: the last context_length / 2 tokens become a new prompt, and what was before is forgotten.
class TextGenerator {
 public:
  /// Panels that the model has are taken as they are, else they are made. Throws ConfigError when the vocabulary is not
  /// the model's.
  explicit TextGenerator(LanguageModelFolder files, const SchedulerOptions& options = {});

  /// From a model folder. Throws FileError or ConfigError.
  static TextGenerator load(const std::filesystem::path& folder, const SchedulerOptions& options = {});

  /// `samples` continuations of each prompt, in the order of the prompts. Random numbers are a function of the seed,
  /// the number of the sample and the token's place, so that a text does not depend on what else is generated with it.
  /// Throws DataError naming the prompt (counted from 1) that is not valid UTF-8 or longer than context_length, before
  /// anything is generated; with `slide` the last context_length / 2 tokens of such a prompt are used. ConfigError for
  /// options that do not fit, NumericError when the model's logits are not finite.
  std::vector<GeneratedText> generate(std::span<const std::string> prompts, const GenerateOptions& options = {}) const;
  std::vector<GeneratedText> generate(std::initializer_list<std::string> prompts,
                                      const GenerateOptions& options = {}) const;
  /// The continuation of one prompt; `samples` is 1.
  GeneratedText generate(std::string_view prompt, const GenerateOptions& options = {}) const;

  /// The prompt as the model was given such text in training, see load_text(): lines and paragraphs begin with bos. In
  /// a stream an eos stands for each line end that the tokenizer does not keep. Never empty: a stream that is to begin
  /// with nothing begins after a line end, with bos where the vocabulary has none.
  std::vector<int32_t> encode_prompt(std::string_view prompt) const;
  /// Whether an eos is a line break within the text, and so no end of it.
  bool eos_is_line_end() const;

  const DecoderLm& model() const;
  const Tokenizer& tokenizer() const;
  const SamplingConfig& sampling() const;
  TextUnit text_unit() const;
  /// What all calls share.
  const Scheduler& scheduler() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace attune

#pragma once
// Text that goes on from a prompt.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attune/inference/model_files.h"

namespace [[gnu::visibility("default")]] attune {

enum class FinishReason {
  eos,         // the model said so
  stop,        // a stop string
  length,      // max_tokens
  context,     // the model can look back no further, and `slide` is off
  interrupted  // GenerateOptions::interrupt
};

template <>
struct EnumNames<FinishReason> {
  static constexpr std::pair<FinishReason, const char*> values[] = {{FinishReason::eos, "eos"},
                                                                    {FinishReason::stop, "stop"},
                                                                    {FinishReason::length, "length"},
                                                                    {FinishReason::context, "context"},
                                                                    {FinishReason::interrupted, "interrupted"}};
};

struct GeneratedText {
  std::string text;             // what follows the prompt, up to a stop string; valid UTF-8
  std::vector<int32_t> tokens;  // that were generated, with eos and those of a stop string
  FinishReason finish_reason = FinishReason::length;
};

struct GenerateOptions {
  std::optional<SamplingConfig> sampling = {};  // else the model's own
  std::vector<std::string> stop = {};           // texts that end a continuation, of which they are no part
  int64_t samples = 1;                          // continuations of each prompt
  int64_t batch_texts = 32;                     // generated at once, at most

  /// Called with what is added to a text as soon as it is certain; `index` is the place in the result. What was added
  /// is whole characters, and all of it together is the text.
  std::function<void(size_t index, std::string_view added)> on_text = {};
  /// Once true, generation ends with what there is.
  const std::atomic<bool>* interrupt = nullptr;
  /// A smaller model of the same tokens that proposes up to draft_tokens at once, see generate_speculatively(): the
  /// texts are distributed as without it. Null: none.
  const DecoderLm* draft = nullptr;
  int64_t draft_tokens = 4;
};

/// A language model with its tokenizer. Safe to use from several threads at once.
///
/// A continuation ends when the prompt and what follows it fill the model's context_length. With SamplingConfig::slide
/// it goes on instead: the last context_length / 2 tokens become a new prompt, and what was before is forgotten.
class TextGenerator {
 public:
  /// Takes the model into evaluation mode and packs its weights, unless they are packed: those stay as they are. Throws
  /// ConfigError when the vocabulary is not the model's.
  explicit TextGenerator(LanguageModelFiles files);

  /// From a model folder. Throws FileError or ConfigError.
  static TextGenerator load(const std::filesystem::path& folder) {
    return TextGenerator(load_language_model_folder(folder, LoadedWeights::packed));
  }

  /// `samples` continuations of each prompt, in the order of the prompts. Random numbers are a function of the seed,
  /// the number of the sample and the token's place, so that a text does not depend on what else is generated with it.
  /// Throws DataError naming the prompt (counted from 1) that is longer than context_length, before anything is
  /// generated; with `slide` the last context_length / 2 tokens of such a prompt are used. ConfigError for options that
  /// do not fit, NumericError when the model's logits are not finite.
  std::vector<GeneratedText> generate(std::span<const std::string> prompts, const GenerateOptions& options = {}) const;
  GeneratedText generate(const std::string& prompt, const GenerateOptions& options = {}) const;

  /// The prompt as the model was given such text in training, see load_text(): lines and paragraphs begin with bos. In
  /// a stream an eos stands for each line end that the tokenizer does not keep. Never empty: a stream that is to begin
  /// with nothing begins after a line end, with bos where the vocabulary has none.
  std::vector<int32_t> encode_prompt(std::string_view prompt) const;
  /// Whether an eos is a line break within the text, and so no end of it.
  bool eos_is_line_end() const;

  const DecoderLm& model() const { return *model_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const SamplingConfig& sampling() const { return sampling_; }
  TextUnit text_unit() const { return text_unit_; }

 private:
  std::shared_ptr<const DecoderLm> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  SamplingConfig sampling_;
  TextUnit text_unit_;
};

}  // namespace attune

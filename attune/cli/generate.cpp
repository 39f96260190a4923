// attune generate: text that goes on from a prompt.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "attune/base/deadline.h"
#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/cli/chat_prompts.h"
#include "attune/cli/command.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/text_limits.h"
#include "attune/text/text_file.h"

namespace attune::cli {
namespace {

struct GenerateCommand {
  std::string model, file, draft, precision, device;
  std::vector<std::string> text, prompts, stop;
  int64_t samples = 1, threads = 0;
  bool json = false, echo = false, slide = false, chat = false;
  // What is not given comes from the model's generation_config.json.
  std::optional<double> repetition_penalty, temperature, top_p, min_p;
  std::optional<int64_t> top_k, max_tokens;
  std::optional<double> timeout;        // seconds
  std::optional<int64_t> draft_tokens;  // needs a draft
  std::optional<uint64_t> seed;
};

struct Prompts {
  std::vector<std::string> texts;
  std::vector<int64_t> lines;       // of the input that they are from, from 1; of several --prompt, which one it is
  std::vector<std::string> places;  // for messages: "chat.txt:3", of a whole file its name, "prompt 2"
};

Prompts numbered(std::vector<std::string> texts) {
  Prompts prompts{.texts = std::move(texts), .lines = {}, .places = {}};
  for (size_t i = 1; i <= prompts.texts.size(); ++i) {
    prompts.lines.push_back(static_cast<int64_t>(i));
    prompts.places.push_back(fmt::format("prompt {}", i));
  }
  return prompts;
}

/// The whole text without the line end at its end: whoever types or writes a file ends it with one.
std::string read_prompt(LineReader& reader) {
  std::string prompt;
  for (std::string line; reader.next(line);) prompt += (reader.line_number() == 1 ? "" : "\n") + line;
  return prompt;
}

/// Each line that is not empty.
Prompts read_conversations(LineReader& reader) {
  Prompts prompts;
  for (std::string line; reader.next(line);) {
    if (line.empty()) continue;
    prompts.texts.push_back(line);
    prompts.lines.push_back(reader.line_number());
    prompts.places.push_back(fmt::format("{}:{}", reader.name(), reader.line_number()));
  }
  return prompts;
}

Prompts read_prompts(LineReader&& reader, bool chat) {
  if (chat) return read_conversations(reader);
  return {.texts = {read_prompt(reader)}, .lines = {1}, .places = {reader.name()}};
}

Prompts prompts_of(const GenerateCommand& command) {
  constexpr TextLimits kLimits{.total_bytes = static_cast<int64_t>(kMostTextBytes)};
  if (!command.file.empty() && !command.prompts.empty())
    fail<ConfigError>("--prompt and --file {} at once: give one of them", command.file);
  if (!command.file.empty())
    return read_prompts(LineReader(std::filesystem::path(command.file), kLimits), command.chat);
  for (const std::string& prompt : command.prompts) check_utf8(prompt, "--prompt");
  if (!command.prompts.empty()) return numbered(command.prompts);
  if (::isatty(STDIN_FILENO) == 1 && command.chat) fail<ConfigError>("--chat: needs a message, by --prompt or --file");
  if (::isatty(STDIN_FILENO) == 1) return numbered({""});
  return read_prompts(LineReader(STDIN_FILENO, "standard input", kLimits), command.chat);
}

SamplingConfig sampling_of(const GenerateCommand& command, const TextGenerator& generator) {
  SamplingConfig sampling = generator.sampling();
  sampling.repetition_penalty = command.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.temperature = command.temperature.value_or(sampling.temperature);
  sampling.top_k = command.top_k.value_or(sampling.top_k);
  sampling.top_p = command.top_p.value_or(sampling.top_p);
  sampling.min_p = command.min_p.value_or(sampling.min_p);
  sampling.max_tokens = command.max_tokens.value_or(sampling.max_tokens);
  sampling.seed = command.seed.value_or(sampling.seed);
  sampling.slide = sampling.slide || command.slide;
  sampling.validate();
  return sampling;
}

/// Writes the texts one after the other. Writes the first one that is not complete while it grows.
class TextsInOrder {
 public:
  TextsInOrder(TextOutput& output, std::vector<std::string> beginnings)
      : output_(output), waiting_(std::move(beginnings)) {
    if (!waiting_.empty()) write(std::exchange(waiting_[0], ""));
  }

  void add(size_t index, std::string_view text) {
    if (index == turn_) {
      write(text);
    } else {
      waiting_[index] += text;
    }
  }
  /// All texts are complete.
  void finish() {
    for (;;) {
      if (!ends_line_) output_.write("\n");
      if (++turn_ >= waiting_.size()) break;
      output_.line("---");
      ends_line_ = false;
      write(waiting_[turn_]);
    }
  }

 private:
  void write(std::string_view text) {
    if (text.empty()) return;
    output_.write(written_text(text, "\n\t"));
    output_.flush();
    ends_line_ = text.back() == '\n';
  }

  TextOutput& output_;
  std::vector<std::string> waiting_;
  size_t turn_ = 0;
  bool ends_line_ = false;
};

void write_json(TextOutput& output, const Prompts& prompts, size_t prompt, int64_t sample, const GeneratedText& text) {
  const Json json = {{"line", prompts.lines[prompt]},
                     {"prompt", prompts.texts[prompt]},
                     {"sample", sample},
                     {"text", text.text},
                     {"finish_reason", enum_name(text.finish_reason)},
                     {"tokens", text.tokens}};
  output.line(show(json));
}

/// What a person should know about where a text ends.
void explain_end(const std::vector<GeneratedText>& texts, const TextGenerator& generator) {
  const bool full = std::any_of(texts.begin(), texts.end(),
                                [](const GeneratedText& t) { return t.finish_reason == FinishReason::context; });
  if (full)
    write_note(fmt::format("the text ends where the model's context of {} tokens does; --slide goes on",
                           generator.model().config().context_length));
}

/// What the model cannot read of the prompts.
void explain_unknown(const Prompts& prompts, bool have_special_tokens, const TextGenerator& generator) {
  const SpecialIds& special = generator.tokenizer().special_ids();
  const int32_t unknown = special.unk;
  if (unknown < 0 || unknown == special.bos || unknown == special.eos) return;
  for (size_t i = 0; i < prompts.texts.size(); ++i) {
    if (prompts.texts[i].size() > kMostTextBytes) return;  // is refused
    std::vector<int32_t> ids;
    try {
      ids = generator.encode_prompt(prompts.texts[i], have_special_tokens);
    } catch (const DataError&) {
      return;  // generate() refuses it, and names it
    }
    const auto count = std::count(ids.begin(), ids.end(), unknown);
    if (count > 0)
      write_note(fmt::format("{}: {} of its {} tokens {} unknown to the model", prompts.places[i], count, ids.size(),
                             count == 1 ? "is" : "are"));
  }
}

std::unique_ptr<DecoderLm> load_draft(const std::string& folder, const TextGenerator& generator,
                                      ProductPrecision precision, const Device& device) {
  LanguageModelFolder files = OpenedFolder(folder).load_language_model(weights_for(precision, device), {}, device);
  const Tokenizer& own = generator.tokenizer();
  bool same = files.tokenizer->vocab_size() == own.vocab_size();
  for (int32_t id = 0; same && id < own.vocab_size(); ++id) same = files.tokenizer->piece(id) == own.piece(id);
  if (!same) fail<ConfigError>("--draft {}: its tokens are not those of the model", folder);
  return std::move(files.model);
}

int generate(GenerateCommand command) {
  if (command.draft_tokens && command.draft.empty())
    fail<ConfigError>("--draft-tokens {}: needs --draft, the model that proposes them", *command.draft_tokens);
  find_model(command.model, command.text, "attune generate MODEL --prompt TEXT");
  command.prompts.insert(command.prompts.end(), command.text.begin(), command.text.end());
  const ThreadScope threads = use_threads(command.threads);
  const Device device = device_of(command.device);
  const ProductPrecision precision = precision_of(command.precision, device);
  const TextGenerator generator = TextGenerator::load(command.model, {.precision = precision, .device = device});
  if (command.samples < 1 || command.samples > 1 << 16)
    fail<ConfigError>("--n {}: needs a number from 1 to {}", command.samples, 1 << 16);
  Prompts prompts = prompts_of(command);
  if (command.chat) prompts.texts = chat_prompts(command.model, prompts.texts);
  const auto samples = static_cast<size_t>(command.samples);
  GenerateOptions options{.sampling = sampling_of(command, generator),
                          .stop = command.stop,
                          .samples = command.samples,
                          .prompts_have_special_tokens = command.chat,  // the template writes them
                          .places = prompts.places};
  std::unique_ptr<DecoderLm> draft;
  if (!command.draft.empty()) draft = load_draft(command.draft, generator, precision, device);
  options.draft = draft.get();
  options.draft_tokens = command.draft_tokens.value_or(options.draft_tokens);
  catch_stop_signals();
  options.interrupt = &stop_requested();
  if (command.timeout) options.deadline = deadline_after(*command.timeout, "--timeout");

  explain_unknown(prompts, options.prompts_have_special_tokens, generator);
  TextOutput output;
  std::vector<GeneratedText> texts;
  if (command.json) {
    texts = generator.generate(prompts.texts, options);
    for (size_t i = 0; i < texts.size(); ++i)
      write_json(output, prompts, i / samples, static_cast<int64_t>(i % samples), texts[i]);
  } else {
    std::vector<std::string> beginnings(prompts.texts.size() * samples);
    for (size_t i = 0; command.echo && i < beginnings.size(); ++i) beginnings[i] = prompts.texts[i / samples];
    TextsInOrder in_order(output, std::move(beginnings));
    options.on_text = [&](size_t index, std::string_view added) { in_order.add(index, added); };
    texts = generator.generate(prompts.texts, options);
    in_order.finish();
    output.flush();  // the text's line ends before the note begins
    explain_end(texts, generator);
  }
  output.finish();
  return stop_requested() ? stopped_status() : 0;
}

}  // namespace

void add_generate(CLI::App& app) {
  const auto c = std::make_shared<GenerateCommand>();
  CLI::App* command = add_command(
      app, "generate", "Continue a prompt with a language model",
      "  attune generate runs/shakespeare/model --prompt \"ROMEO:\" --echo\n"
      "  attune generate runs/shakespeare/model --temperature 0.8 --top-k 200 --max-tokens 500 --seed 7\n"
      "  attune generate runs/stories/model --prompt \"Once upon a time\" --top-p 0.9 --stop \"The end\" --n 3\n"
      "  attune generate runs/stories/model --json < prompt.txt\n"
      "Output, as it is generated: what follows the prompt; a line of --- between several texts. With --json one\n"
      "object a line: line (of the input, of several --prompt which one it is), prompt, sample, text,\n"
      "finish_reason (eos, stop, length, context, interrupted, deadline), tokens",
      [c] { return generate(*c); });
  add_model(*command, c->model)->required();
  add_texts(*command, "text", c->text, "The beginnings of texts, as with --prompt");
  add_repeated_text(*command, "--prompt", c->prompts,
                    "The beginning; may be given several times; without it --file, else standard input");
  command->add_option("--file", c->file, "The prompt, plain or gzip; a line end at its end is left out");
  command->add_flag("--chat", c->chat,
                    "Answer with the folder's chat template: each line of the input (or each --prompt) is a user's\n"
                    "message, or a JSON list of messages; empty lines are left out");
  command->add_option("--temperature", c->temperature,
                      "Below 1: likelier tokens; 0: always the likeliest [the model's]");
  command->add_option("--top-k", c->top_k, "Only the k likeliest tokens; 0: all [the model's]");
  command->add_option("--top-p", c->top_p, "Only the likeliest that together have this probability [the model's]");
  command->add_option("--min-p", c->min_p,
                      "Only those with this share of the likeliest one's probability [the model's]");
  command->add_option("--repetition-penalty", c->repetition_penalty,
                      "Above 1: tokens that occurred are less likely [the model's]");
  command->add_option("--max-tokens", c->max_tokens, "Most tokens of a text [the model's]");
  command->add_option("--seed", c->seed, "The same one gives the same text [the model's]");
  command->add_option("--timeout", c->timeout, "Most seconds of generating; then the texts end as they are");
  add_repeated_text(*command, "--stop", c->stop,
                    "Text that ends the output and is left out of it; may be given several times");
  command->add_option("--n", c->samples, "Texts for each prompt")->capture_default_str();
  command->add_option("--draft", c->draft,
                      "A smaller model with the same tokens that proposes the next ones: speculative decoding");
  command->add_option("--draft-tokens", c->draft_tokens,
                      fmt::format("Tokens that it proposes at once [{}]", GenerateOptions{}.draft_tokens));
  command->add_flag("--slide", c->slide, "Continue when the context is full, from its last half");
  command->add_flag("--echo", c->echo, "Write the prompt too");
  command->add_flag("--json", c->json, "For programs");
  add_device(*command, c->device);
  add_precision(*command, c->precision);
  add_threads(*command, c->threads);
}

}  // namespace attune::cli

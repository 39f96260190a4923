// attune translate: text in, text out.

#include <poll.h>
#include <unistd.h>

#include <optional>

#include "attune/cli/command.h"
#include "attune/cli/generation_options.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/data/text_file.h"

namespace attune::cli {
namespace {

constexpr size_t chunk_lines = 512;  // read ahead, so that sentences of similar length find each other
constexpr int patience_ms = 20;      // for more input, before what has come is answered

struct TranslateCommand {
  std::string model, file, output;
  std::vector<std::string> text;
  int64_t n_best = 1;
  bool scores = false;
  GenerationOptions generation;
};

/// Sentences from the command line, a file or standard input, some hundred at a time.
class SentenceSource {
 public:
  SentenceSource(const TranslateCommand& command, const Tokenizer& tokenizer, int64_t most_tokens)
      : tokenizer_(tokenizer), most_tokens_(most_tokens) {
    if (!command.file.empty() && !command.text.empty())
      fail<ConfigError>("text as arguments and --file {} at once: give one of them", command.file);
    if (!command.file.empty()) {
      reader_.emplace(std::filesystem::path(command.file));
    } else if (command.text.empty()) {
      reader_.emplace(STDIN_FILENO, "standard input");
      live_ = true;
    } else {
      arguments_ = command.text;
    }
  }

  /// The next sentences, none at the end. A line that cannot be translated is an error of the call after the one that
  /// returns the sentences before it.
  std::vector<std::string> next() {
    if (error_) std::rethrow_exception(error_);
    std::vector<std::string> sentences;
    try {
      std::string sentence;
      while (sentences.size() < chunk_lines && (sentences.empty() || more_at_hand()) && read(sentence))
        sentences.push_back(sentence);
    } catch (const Error&) {
      if (sentences.empty()) throw;
      error_ = std::current_exception();
    }
    return sentences;
  }

 private:
  bool read(std::string& sentence) {
    if (reader_) {
      if (!reader_->next(sentence)) return false;
      check_length(sentence, fmt::format("{}:{}", reader_->name(), reader_->line_number()));
      return true;
    }
    if (taken_ == arguments_.size()) return false;
    sentence = arguments_[taken_];
    check_length(sentence, place_of_text(arguments_, taken_++));
    return true;
  }

  void check_length(const std::string& sentence, const std::string& where) const {
    const size_t tokens = tokenizer_.encode(sentence).size();
    if (static_cast<int64_t>(tokens) > most_tokens_)
      fail<DataError>("{}: the sentence has {} tokens, at most {} are accepted", where, tokens, most_tokens_);
  }

  /// Whoever types, or waits for an answer at the other end of a pipe, gets one without the next line.
  bool more_at_hand() const {
    if (!live_) return true;
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    return ::poll(&input, 1, patience_ms) != 0;
  }

  const Tokenizer& tokenizer_;
  int64_t most_tokens_;
  std::optional<LineReader> reader_;
  bool live_ = false;
  std::vector<std::string> arguments_;
  size_t taken_ = 0;
  std::exception_ptr error_;
};

/// How many lines a file has; 0, for unknown, where it can be read but once or will turn out to be damaged.
int64_t count_lines(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return 0;
  try {
    LineReader reader{std::filesystem::path(file)};
    for (std::string line; reader.next(line);) continue;
    return reader.line_number();
  } catch (const Error&) {
    return 0;
  }
}

/// Thrown between two batches after Ctrl-C, so that an output file is left as it was and no temporary one stays.
struct Stopped {};

void write_translation(TextOutput& output, const Translation& translation, int64_t index,
                       const TranslateCommand& command) {
  for (const ScoredText& candidate : translation.n_best) {
    if (command.n_best > 1) output.write(fmt::format("{}\t", index));
    if (command.n_best > 1 || command.scores) output.write(fmt::format("{:.4f}\t", candidate.score));
    output.line(one_line(candidate.text));
  }
}

int translate(const TranslateCommand& command) {
  const Translator translator = Translator::load(command.model);
  TranslateOptions options = command.generation.for_model(translator);
  options.n_best = command.n_best;
  const int64_t beam_size = options.generation->beam_size;
  if (command.n_best < 1 || command.n_best > beam_size)
    fail<ConfigError>("--n-best {}: needs a number from 1 to the beam size, {}", command.n_best, beam_size);

  SentenceSource source(command, translator.source_tokenizer(), options.max_source_tokens);
  TextOutput output(command.output);
  const bool from_standard_input = command.file.empty() && command.text.empty();
  if (!command.output.empty() && !from_standard_input) catch_stop_signals();
  LineProgress progress;
  const bool shown = !command.file.empty() && progress.shown();
  if (shown) progress.set_total(count_lines(command.file));
  int64_t done = 0;
  options.progress = [&](int64_t of_chunk, int64_t) {
    if (stop_requested()) throw Stopped();
    if (shown) progress.show(done + of_chunk);
  };
  for (auto sentences = source.next(); !sentences.empty(); sentences = source.next()) {
    for (const Translation& translation : translator.translate(sentences, options))
      write_translation(output, translation, ++done, command);
    output.flush();
  }
  output.finish();
  return 0;
}

}  // namespace

void add_translate(CLI::App& app) {
  const auto c = std::make_shared<TranslateCommand>();
  CLI::App* command = add_command(
      app, "translate", "Translate text from arguments, a file or standard input, one sentence a line",
      "  attune translate runs/demo/model \"The old dog sleeps.\" \"Where is the station?\"\n"
      "  attune translate runs/demo/model --file news.en.gz --output news.de --beam-size 4\n"
      "  attune translate runs/demo/model < news.en > news.de\n"
      "  attune translate runs/demo/model --beam-size 8 --n-best 3 \"Good morning.\"\n"
      "Output, one line for each input line, in the same order:\n"
      "  translation                     An empty line stays empty\n"
      "  score<TAB>translation           With --scores; the log probability over the length penalty\n"
      "  line<TAB>score<TAB>translation  With --n-best 2 or more: several for each input line, counted from 1",
      [c] {
        try {
          return translate(*c);
        } catch (const Stopped&) {
          return 130;
        }
      });
  command->add_option("model", c->model, "Folder of the model")->required();
  add_texts(*command, "text", c->text, "Sentences; without them --file, else standard input");
  command->add_option("--file", c->file, "Text to translate, plain or gzip");
  command->add_option("--output", c->output, "File for the translations, written whole or not at all");
  command->add_option("--n-best", c->n_best, "So many translations of each sentence")->capture_default_str();
  command->add_flag("--scores", c->scores, "Write the score before each translation");
  c->generation.add_to(*command);
}

}  // namespace attune::cli

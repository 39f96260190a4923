// attune translate: text in, text out.

#include <fmt/format.h>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/generation_options.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/skipped_lines.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/inference/decoding/shortlist.h"
#include "attune/io/text_style_file.h"
#include "attune/text/tokenizer.h"

namespace attune::cli {
namespace {

struct TranslateCommand {
  std::string model, file, output, prefixes, shortlist, on_error = "stop";
  std::vector<std::string> text, banned, required, ensemble;
  int64_t n_best = 1;
  bool scores = false, token_scores = false, alignments = false, json = false;
  GenerationOptions generation;
};

std::string scores_text(const std::vector<double>& scores) {
  std::string text;
  for (const double score : scores) text += fmt::format("{}{:.4f}", text.empty() ? "" : " ", score);
  return text;
}

void write_columns(TextOutput& output, const Translation& translation, int64_t index, const TranslateCommand& command) {
  const bool columns = command.n_best > 1 || command.scores || command.alignments || command.token_scores;
  for (const ScoredText& candidate : translation.n_best) {
    if (command.n_best > 1) output.write(fmt::format("{}\t", index));
    if (command.n_best > 1 || command.scores) output.write(fmt::format("{:.4f}\t", candidate.score));
    output.write(written_text(candidate.text, columns ? "" : "\t"));
    if (command.alignments) output.write("\t" + pharaoh(candidate.alignment));
    if (command.token_scores) output.write("\t" + scores_text(candidate.token_log_probabilities));
    output.write("\n");
  }
}

void write_json(TextOutput& output, const Translation& translation, int64_t index, const TranslateCommand& command,
                const Tokenizer& tokenizer) {
  Json candidates = Json::array();
  for (const ScoredText& candidate : translation.n_best) {
    Json json = {{"text", candidate.text},
                 {"score", candidate.score},
                 {"log_probability", candidate.log_probability},
                 {"finished", candidate.finished}};
    if (command.token_scores) {
      json["tokens"] = Json::array();
      for (const int32_t id : candidate.tokens) json["tokens"].push_back(tokenizer.piece(id));
      json["token_log_probabilities"] = candidate.token_log_probabilities;
    }
    if (command.alignments) json["alignment"] = pharaoh(candidate.alignment);
    candidates.push_back(std::move(json));
  }
  Json line = {{"line", index}, {"translations", candidates}};
  if (!translation.error.empty()) line["error"] = translation.error;
  output.line(show(line));
}

/// What begins the translation of each sentence, from a file with a line for each.
class Prefixes {
 public:
  explicit Prefixes(const std::string& file) {
    if (!file.empty()) reader_.emplace(std::filesystem::path(file));
  }
  std::vector<StreamedSentence> with(std::vector<std::string> sentences, const std::vector<std::string>& places) {
    std::vector<StreamedSentence> result;
    for (size_t i = 0; i < sentences.size(); ++i) {
      result.push_back({.text = std::move(sentences[i]), .place = places[i]});
      if (reader_ && !reader_->next(result.back().constraints.prefix))
        fail<DataError>("{}: has {} lines, the text has more", reader_->name(), reader_->line_number());
    }
    return result;
  }
  /// Throws DataError when there are more lines.
  void finish() {
    if (std::string line; reader_ && reader_->next(line))
      fail<DataError>("{}: has more lines than the text, which has {}", reader_->name(), reader_->line_number() - 1);
  }

 private:
  std::optional<LineReader> reader_;
};

TranslateOptions options_of(const TranslateCommand& command, const Translator& translator) {
  TranslateOptions options = command.generation.for_model(translator);
  options.n_best = command.n_best;
  options.banned = command.banned;
  options.required = command.required;
  options.alignments = command.alignments;
  if (!command.shortlist.empty())
    options.shortlist = std::make_shared<const Shortlist>(Shortlist::load(command.shortlist));
  const int64_t beam_size = options.generation->beam_size;
  if (command.n_best < 1 || command.n_best > beam_size)
    fail<ConfigError>("--n-best {}: needs a number from 1 to the beam size, {}", command.n_best, beam_size);
  return options;
}

int translate(TranslateCommand command) {
  find_model(command.model, command.text, "attune translate MODEL TEXT");
  std::vector<std::string> inputs = command.ensemble;
  inputs.insert(inputs.end(), {command.model, command.file, command.prefixes, command.shortlist});
  check_output(command.output, inputs);
  for (const std::string& other : command.ensemble) check_model(other, "--ensemble MODEL");
  const ThreadScope threads = use_threads(command.generation.threads);
  std::vector<std::filesystem::path> folders = {command.model};
  folders.insert(folders.end(), command.ensemble.begin(), command.ensemble.end());
  const Device device = device_of(command.generation.device);
  const Translator translator = Translator::load_ensemble(
      folders, {.precision = precision_of(command.generation.precision, device), .device = device});
  TranslateOptions options = options_of(command, translator);
  InputLines source(command.text, command.file);
  SkippedLines skipped(command.on_error, source);
  Prefixes prefixes(command.prefixes);
  TextStyleCheck style(read_source_text(command.model));
  TextOutput output(command.output);
  if (!command.output.empty() && !source.from_standard_input()) catch_stop_signals();
  options.interrupt = &stop_requested();
  FileProgress progress(command.file);
  options.progress = [&](int64_t done, int64_t) { progress.show(done); };
  int64_t line = 0;
  const auto read = [&](bool wait) {
    std::vector<std::string> lines = wait ? source.next() : source.at_hand();
    if (const auto warning = style.add(lines)) write_note(*warning);
    skipped.add_read(source.places());
    return prefixes.with(std::move(lines), source.places());
  };
  const auto write = [&](std::vector<Translation> translations) {
    for (Translation& translation : translations) {
      ++line;
      translation.error = skipped.next(output, std::move(translation.error));
      if (!translation.error.empty()) translation.n_best.front().finished = false;
      if (command.json) {
        write_json(output, translation, line, command, translator.target_tokenizer());
      } else {
        write_columns(output, translation, line, command);
      }
    }
    output.flush();
  };
  TranslationStream stream{.read = read, .write = write};
  if (skipped.skips()) stream.skip = [](const std::string&) {};  // the translation has the message
  translator.translate(stream, options);
  prefixes.finish();
  output.finish();
  return skipped.status();
}

void add_search(CLI::App& command, TranslateCommand& c) {
  add_repeated_text(command, "--ban", c.banned, "A phrase that no translation has; may be given several times");
  add_repeated_text(command, "--require", c.required, "A phrase that every translation has; likewise");
  command.add_option("--prefixes", c.prefixes,
                     "File with the beginning of each translation, a line each; may be empty");
  command.add_option("--shortlist", c.shortlist,
                     "File of attune shortlist: only its targets of the sentence's tokens are considered");
  c.generation.add_to(command);
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
      "  attune translate runs/demo/model --require Hund --ban Katze --alignments \"The old dog sleeps.\"\n"
      "  attune translate runs/a/model --ensemble runs/b/model --ensemble runs/c/model < news.en > news.de\n"
      "Output, one line for each input line, in the same order:\n"
      "  translation                     An empty line stays empty\n"
      "  score<TAB>translation           With --scores; see beam search in docs/translation.md\n"
      "  line<TAB>score<TAB>translation  With --n-best 2 or more: several for each input line, counted from 1\n"
      "  ...<TAB>0-0 1-2                 With --alignments: pairs of words, source-translation, counted from 0\n"
      "  ...<TAB>-0.1 -0.3               With --token-scores: the log probability of each token and of the end\n"
      "  {\"line\": 1, \"translations\": [{\"text\": ..., \"score\": ...}]}  With --json",
      [c] { return translate(*c); });
  add_model(*command, c->model)->required();
  add_texts(*command, "text", c->text, "Sentences; without them --file, else standard input");
  add_models(*command, "--ensemble", c->ensemble,
             "Another model that translates together with the first; may be given several times");
  command->add_option("--file", c->file, "Text to translate, plain or gzip");
  command->add_option("--output", c->output, "File for the translations, written whole or not at all");
  add_on_error(*command, c->on_error,
               "A line that cannot be translated (not UTF-8, too long, or the model's numbers\n"
               "are not finite): stop, or skip it with an empty one");
  command->add_option("--n-best", c->n_best, "Translations of each sentence")->capture_default_str();
  command->add_flag("--scores", c->scores, "Write the score before each translation");
  command->add_flag("--token-scores", c->token_scores, "Write the log probability of each token");
  command->add_flag("--alignments", c->alignments, "Write which words of the source each word attends to most");
  command->add_flag("--json", c->json, "For programs: an object for each line");
  add_search(*command, *c);
}

}  // namespace attune::cli

// attune classify: text in, labels out.

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/skipped_lines.h"
#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/inference/classifier.h"

namespace attune::cli {
namespace {

struct ClassifyCommand {
  std::string model, file, output, precision, device, on_error = "stop";
  std::vector<std::string> text;
  std::optional<int64_t> top;
  int64_t batch_texts = 64, threads = 0;
  bool json = false, pair = false;
};

// The two texts of a line. Throws DataError naming `place`.
TextPair pair_of(const std::string& line, const std::string& place) {
  const size_t tab = line.find('\t');
  if (tab == std::string::npos || line.find('\t', tab + 1) != std::string::npos)
    fail<DataError>("{}: needs two texts with one TAB between them", place);
  return {line.substr(0, tab), line.substr(tab + 1)};
}

void write_labels(TextOutput& output, const Classification& result, const Classifier& classifier) {
  std::string line;
  for (size_t i = 0; i < result.labels.size(); ++i) {
    const LabelProbability& l = result.labels[i];
    line += fmt::format("{}{}\t{:.4f}", i > 0 ? "\t" : "", one_line(classifier.labels()[static_cast<size_t>(l.label)]),
                        l.probability);
  }
  output.line(line);
}

void write_json(TextOutput& output, const std::string& text, const Classification& result,
                const Classifier& classifier) {
  const auto label = [&](const LabelProbability& l) { return classifier.labels()[static_cast<size_t>(l.label)]; };
  Json::object_t labels;  // added at the end: a search by name would take quadratic time
  for (const LabelProbability& l : result.labels) labels.emplace_back(label(l), l.probability);
  Json json = {{"text", text},
               {"label", label(result.labels.front())},
               {"probability", result.labels.front().probability},
               {"labels", std::move(labels)}};
  if (result.cut_tokens > 0) json["cut_tokens"] = result.cut_tokens;
  output.line(show(json));
}

int classify(ClassifyCommand command) {
  find_model(command.model, command.text, "attune classify MODEL TEXT");
  check_output(command.output, {command.model, command.file});
  const ThreadScope threads = use_threads(command.threads);
  const Device device = device_of(command.device);
  const Classifier classifier = Classifier::load(command.model, precision_of(command.precision, device), device);
  if (command.top && *command.top < 1) fail<ConfigError>("--top {}: needs a number from 1", *command.top);
  if (command.batch_texts < 1) fail<ConfigError>("--batch-size {}: needs a number from 1", command.batch_texts);
  ClassifyOptions options;
  options.top = command.top.value_or(command.json ? 0 : 1);
  options.batch_texts = command.batch_texts;

  InputLines source(command.text, command.file);
  SkippedLines skipped(command.on_error, source);
  TextOutput output(command.output);
  if (!command.output.empty() && !source.from_standard_input()) catch_stop_signals();
  FileProgress progress(command.file);
  options.progress = [&](int64_t of_piece, int64_t) { progress.show(of_piece); };
  options.interrupt = &stop_requested();
  options.skip = [&](size_t text, const std::string& what) {
    skipped.add(text, fmt::format("{}: {}", source.places()[text], what));
  };
  int64_t cut = 0;
  for (auto texts = source.next(); !texts.empty(); texts = source.next()) {
    skipped.add_read(source.places());
    const std::vector<Classification> results = classifier.classify_encoded(
        encode_lines(texts, source.places(), skipped,
                     [&](const std::string& line, const std::string& place) {
                       return command.pair ? classifier.encode(pair_of(line, place), options)
                                           : classifier.encode(line, options);
                     }),
        options);
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string error = skipped.next(output);
      cut += results[i].cut_tokens > 0 ? 1 : 0;
      if (!error.empty()) {
        output.line(command.json ? show(Json{{"text", texts[i]}, {"error", error}}) : "");
      } else if (command.json) {
        write_json(output, texts[i], results[i], classifier);
      } else {
        write_labels(output, results[i], classifier);
      }
    }
    progress.finish_piece(texts.size());
    output.flush();
  }
  output.finish();
  if (cut > 0)
    write_note(fmt::format("{} of {} texts {} cut: the model reads {} tokens, with bos and eos", cut, progress.done(),
                           cut == 1 ? "was" : "were", classifier.max_tokens()));
  return skipped.status();
}

}  // namespace

void add_classify(CLI::App& app) {
  const auto c = std::make_shared<ClassifyCommand>();
  CLI::App* command = add_command(
      app, "classify", "Give each text the label that a classifier finds likeliest",
      "  attune classify runs/reviews/model \"What a film!\" \"I left after ten minutes.\"\n"
      "  attune classify runs/reviews/model --file reviews.txt.gz --output labels.tsv\n"
      "  attune classify runs/topics/model --top 3 < headlines.txt\n"
      "  attune classify runs/topics/model --json < headlines.txt\n"
      "  attune classify reranker --pair < queries-and-documents.tsv\n"
      "Output, one line for each input line, in the same order:\n"
      "  label<TAB>probability  With --top several of them, likeliest first\n"
      "  {\"text\", \"label\", \"probability\", \"labels\"}  With --json; all labels unless --top says how many",
      [c] { return classify(*c); });
  add_model(*command, c->model)->required();
  add_texts(*command, "text", c->text, "Texts; without them --file, else standard input");
  command->add_option("--file", c->file, "Texts to classify, one a line, plain or gzip");
  command->add_option("--output", c->output, "File for the labels, written whole or not at all");
  add_on_error(*command, c->on_error,
               "A line that cannot be classified (not UTF-8, too long, no pair, or the model's numbers\n"
               "are not finite): stop, or skip it with an empty one, with --json {\"text\", \"error\"}");
  command->add_option("--top", c->top, "Labels for each text (default: 1, with --json all)");
  command->add_flag("--pair", c->pair, "Each text is two, with a TAB between them: a question and an answer, say");
  command->add_flag("--json", c->json, "For programs");
  command->add_option("--batch-size", c->batch_texts, "Texts classified at once")->capture_default_str();
  add_device(*command, c->device);
  add_precision(*command, c->precision);
  add_threads(*command, c->threads);
}

}  // namespace attune::cli

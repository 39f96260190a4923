// attune evaluate: how good translations, labels and predictions are.

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <optional>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/evaluate/evaluate_alignments.h"
#include "attune/cli/evaluate/evaluate_text.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/generation_options.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/precision_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_output.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/translation_requests.h"
#include "attune/metrics/bleu.h"
#include "attune/metrics/chrf.h"
#include "attune/metrics/ter.h"
#include "attune/ops/linear/precision.h"
#include "attune/text/text_file.h"
#include "attune/text/whitespace_tokenizer.h"
#include "attune/train/evaluate.h"

namespace attune::cli {
namespace {

using Lines = std::vector<std::string>;

struct EvaluateCommand {
  std::string model, source, hypotheses, output, alignments;
  std::vector<std::string> references;
  std::string bleu_tokenizer;  // "": the one that fits the model
  bool lowercase = false, json = false;
  GenerationOptions generation;
  TextEvaluation text;  // of a classifier or a language model
};

struct Evaluation {
  size_t sentences = 0, references = 0;
  BleuScore bleu;
  double chrf = 0;
  TerScore ter;
  std::string tokenizer;  // of BLEU
  bool lowercase = false;
  std::optional<CorpusLoss> loss;  // the rest is only known of a model
  int64_t output_tokens = 0;
  double translation_seconds = 0;
  std::optional<AlignmentEvaluation> alignments;  // on request

  double tokens_per_second() const {
    return translation_seconds > 0 ? static_cast<double>(output_tokens) / translation_seconds : 0;
  }
  /// As sacreBLEU writes what a score rests on, without its version.
  std::string bleu_signature() const {
    return fmt::format("nrefs:{}|case:{}|eff:no|tok:{}|smooth:exp", references, lowercase ? "lc" : "mixed", tokenizer);
  }
  std::string chrf_signature() const {
    return fmt::format("nrefs:{}|case:mixed|eff:yes|nc:6|nw:0|space:no", references);
  }
  std::string ter_signature() const {
    return fmt::format("nrefs:{}|case:lc|tok:tercom|norm:no|punct:yes|asian:no", references);
  }
};

BleuTokenizer tokenizer_of(const std::string& name) {
  if (name == "13a") return BleuTokenizer::v13a;
  if (name == "none") return BleuTokenizer::none;
  fail<ConfigError>("--bleu-tokenizer {}: needs one of 13a, none", name);
}

// The lines of each file of references, as many as `lines` of `file`.
std::vector<Lines> read_references(const EvaluateCommand& command, const std::string& file, const Lines& lines) {
  std::vector<Lines> references;
  for (const std::string& reference : command.references) {
    references.push_back(read_lines(reference));
    if (references.back().size() != lines.size())
      fail<DataError>("{} has {} lines but {} has {}", file, lines.size(), reference, references.back().size());
  }
  return references;
}

// References as translations are written: their subwords are joined too.
std::vector<Lines> joined_references(const Tokenizer& target, std::vector<Lines> references) {
  for (Lines& lines : references)
    for (std::string& line : lines) line = joined_text(target, line);
  return references;
}

// `special`: how many ids of a sentence are no tokens of its text.
void check_length(const std::vector<int32_t>& ids, size_t special, const std::string& file, size_t i,
                  int64_t most_tokens) {
  if (ids.size() > static_cast<size_t>(most_tokens) + special)
    fail<DataError>("{}:{}: has {} tokens, at most {} are accepted", file, i + 1, ids.size() - special, most_tokens);
}

void score(const EvaluateCommand& command, const Lines& hypotheses, const std::vector<Lines>& references,
           Evaluation& result) {
  result.sentences = hypotheses.size();
  result.references = references.size();
  result.lowercase = command.lowercase;
  result.bleu = corpus_bleu(hypotheses, references, tokenizer_of(result.tokenizer), command.lowercase);
  result.chrf = corpus_chrf(hypotheses, references);
  result.ter = corpus_ter(hypotheses, references);
}

Lines translate(const Translator& translator, TranslateOptions options, const Lines& sources, Evaluation& result) {
  LineProgress progress;
  options.progress = [&](int64_t done, int64_t total) {
    progress.set_total(total);
    progress.show(done);
  };
  const auto begin = std::chrono::steady_clock::now();
  Lines texts;
  for (const Translation& translation : translator.translate(sources, options)) {
    texts.push_back(written_text(translation.text(), "\t"));
    result.output_tokens += static_cast<int64_t>(translation.n_best.front().tokens.size());
  }
  result.translation_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return texts;
}

// What the decoder should predict, token by token.
std::vector<int32_t> target_of(const TranslationRequests& requests, const std::string& reference,
                               const std::string& place) {
  std::vector<int32_t> target = requests.decoder_input(reference, place);
  target.erase(target.begin());  // the start token
  target.push_back(requests.end_token());
  return target;
}

Evaluation evaluate_model(const EvaluateCommand& command, const OpenedFolder& model) {
  if (command.source.empty() || command.references.empty())
    fail<ConfigError>("a model that translates needs --source and --reference");
  std::vector<std::string> inputs = command.references;
  inputs.insert(inputs.end(), {command.model, command.source, command.alignments});
  check_output(command.output, inputs);
  check_writable(command.output);
  const Lines sources = read_lines(command.source);
  const std::vector<Lines> references = read_references(command, command.source, sources);
  if (sources.empty()) fail<DataError>("{}: has no line", command.source);

  const ThreadScope threads = use_threads(command.generation.threads);
  const Device device = device_of(command.generation.device);
  const ProductPrecision precision = precision_of(command.generation.precision, device);
  const Translator translator(model.load_model(weights_for(precision, device), {}, device),
                              {.precision = precision, .device = device});
  const Tokenizer& target_tokenizer = translator.target_tokenizer();
  TranslateOptions options = command.generation.for_model(translator);
  const TranslationRequests requests(translator, options);
  const size_t of_source = requests.read_by_encoder("").size();
  std::vector<ParallelExample> examples;
  for (size_t i = 0; i < sources.size(); ++i) {
    options.places.push_back(fmt::format("{}:{}", command.source, i + 1));
    examples.push_back({requests.read_by_encoder(sources[i]),
                        target_of(requests, references[0][i], fmt::format("{}:{}", command.references[0], i + 1))});
    check_length(examples[i].source, of_source, command.source, i, options.max_source_tokens);
  }

  Evaluation result;
  result.tokenizer =
      command.bleu_tokenizer.empty() ? name_of(bleu_tokenizer_for(target_tokenizer)) : command.bleu_tokenizer;
  tokenizer_of(result.tokenizer);  // before the work
  {
    const ProductPrecisionScope products(precision);
    result.loss = evaluate(translator.model(), examples, requests.start_token(),
                           {.place = [&](size_t i) { return options.places[i]; }});
    if (!command.alignments.empty())
      result.alignments = evaluate_alignments(translator, options, sources, references[0], command.alignments);
  }
  const Lines translations = translate(translator, options, sources, result);
  score(command, translations, joined_references(target_tokenizer, references), result);
  if (!command.output.empty()) {
    TextOutput out(command.output);
    for (const std::string& line : translations) out.line(line);
    out.finish();
  }
  return result;
}

Evaluation evaluate_hypotheses(const EvaluateCommand& command) {
  if (!command.model.empty() || !command.source.empty() || !command.output.empty() || !command.alignments.empty())
    fail<ConfigError>(
        "--hypotheses is scored without a model: leave out the model, --source, --alignments and --output");
  if (command.references.empty()) fail<ConfigError>("--hypotheses needs --reference");
  const Lines hypotheses = read_lines(command.hypotheses);
  const std::vector<Lines> references = read_references(command, command.hypotheses, hypotheses);
  Evaluation result;
  result.tokenizer = command.bleu_tokenizer.empty() ? name_of(BleuTokenizer::v13a) : command.bleu_tokenizer;
  score(command, hypotheses, references, result);
  return result;
}

Json to_json(const Evaluation& e) {
  Json json = {{"sentences", e.sentences},
               {"references", e.references},
               {"bleu", e.bleu.score},
               {"bleu_precisions", e.bleu.precisions},
               {"bleu_brevity_penalty", e.bleu.brevity_penalty},
               {"hypothesis_length", e.bleu.hypothesis_length},
               {"reference_length", e.bleu.reference_length},
               {"bleu_signature", e.bleu_signature()},
               {"chrf", e.chrf},
               {"chrf_signature", e.chrf_signature()},
               {"ter", e.ter.score},
               {"ter_edits", e.ter.edits},
               {"ter_reference_length", e.ter.reference_length},
               {"ter_signature", e.ter_signature()}};
  if (!e.loss) return json;
  json["nll"] = e.loss->nll;
  json["perplexity"] = e.loss->perplexity;
  json["accuracy"] = e.loss->accuracy;
  json["target_tokens"] = e.loss->tokens;
  json["output_tokens"] = e.output_tokens;
  json["translation_seconds"] = e.translation_seconds;
  json["tokens_per_second"] = e.tokens_per_second();
  if (!e.alignments) return json;
  json["aer"] = e.alignments->rate.score;
  json["alignment_precision"] = e.alignments->rate.precision;
  json["alignment_recall"] = e.alignments->rate.recall;
  json["alignment_origin"] = e.alignments->origin;
  json["aer_of_heads"] = e.alignments->heads;
  return json;
}

void write_table(TextOutput& out, const Evaluation& e) {
  const auto row = [&](const char* name, const std::string& value, const std::string& note) {
    out.line(fmt::format("{:<12}{:>9}{}{}", name, value, note.empty() ? "" : "  ", note));
  };
  const auto& p = e.bleu.precisions;
  row("BLEU", fmt::format("{:.2f}", e.bleu.score),
      fmt::format("precisions {:.1f} {:.1f} {:.1f} {:.1f}, brevity {:.3f}, {} tokens for {}", p[0], p[1], p[2], p[3],
                  e.bleu.brevity_penalty, e.bleu.hypothesis_length, e.bleu.reference_length));
  row("chrF2", fmt::format("{:.2f}", e.chrf), "");
  row("TER", fmt::format("{:.2f}", e.ter.score),
      fmt::format("{} edits for {:.0f} words; less is better", e.ter.edits, e.ter.reference_length));
  if (e.loss) {
    row("nll", fmt::format("{:.4f}", e.loss->nll),
        e.references > 1 ? "nats a token, given the first reference so far"
                         : "nats a token, given the reference so far");
    row("perplexity", fmt::format("{:.4g}", e.loss->perplexity), "");
    row("accuracy", fmt::format("{:.1f}%", 100 * e.loss->accuracy), "of the next token");
  }
  if (e.alignments)
    row("AER", fmt::format("{:.2f}", e.alignments->rate.score),
        fmt::format("alignment errors, {}: precision {:.1f}%, recall {:.1f}%; less is better", e.alignments->origin,
                    e.alignments->rate.precision, e.alignments->rate.recall));
  row("sentences", std::to_string(e.sentences), "");
  if (e.loss)
    row("time", fmt::format("{:.2f} s", e.translation_seconds),
        fmt::format("for {} tokens of translation, {} a second", e.output_tokens, format_count(e.tokens_per_second())));
  out.line("");
  out.line("BLEU   " + e.bleu_signature());
  out.line("chrF2  " + e.chrf_signature());
  out.line("TER    " + e.ter_signature());
}

/// A classifier or a language model.
int run_evaluate_text(const EvaluateCommand& command, const OpenedFolder& model) {
  check_can_be_evaluated(model);
  if (command.text.data.empty())
    fail<ConfigError>("a model of architecture \"{}\" needs --data", enum_name(model.config().model.architecture));
  if (!command.source.empty() || !command.references.empty() || !command.output.empty() || !command.alignments.empty())
    fail<ConfigError>("--source, --reference, --alignments and --output are for a model that translates");
  const ThreadScope threads = use_threads(command.generation.threads);
  TextEvaluation text = command.text;
  text.json = command.json;
  text.device = device_of(command.generation.device);
  text.precision = precision_of(command.generation.precision, text.device);
  TextOutput out;
  evaluate_text(text, model, out);
  out.finish();
  return 0;
}

/// Refuses options that would do nothing for what is evaluated.
void check_options(const CLI::App& app, const char* evaluated, std::vector<std::string> known) {
  known.insert(known.end(), {"model", "--json"});
  refuse_option_beside(app, known, evaluated);
}

void check_options(const CLI::App& app, Architecture architecture) {
  // Options with the files of a translator are known here, and refused later with a message of their own.
  std::vector<std::string> known = {"--data",   "--source", "--reference", "--alignments",
                                    "--output", "--device", "--precision", "--threads"};
  if (architecture == Architecture::encoder_classifier) {
    known.insert(known.end(), {"--format", "--label-field", "--text-field", "--second-text-field", "--confusion"});
    check_options(app, "a classifier", known);
  } else if (architecture == Architecture::decoder_lm) {
    known.emplace_back("--stride");
    check_options(app, "a language model", known);
  }
}

void check_options_of_hypotheses(const CLI::App& app) {
  // Options that name other files are known here, and refused later with messages of their own.
  check_options(
      app, "--hypotheses, which are scored without a model",
      {"--hypotheses", "--reference", "--bleu-tokenizer", "--lowercase", "--source", "--alignments", "--output",
       "--data", "--format", "--label-field", "--text-field", "--second-text-field", "--confusion", "--stride"});
}

int run_evaluate(const EvaluateCommand& command, const CLI::App& app) {
  if (command.model.empty() && command.hypotheses.empty())
    fail<ConfigError>("evaluate needs a model, or --hypotheses with translations");
  std::optional<OpenedFolder> model;
  if (command.hypotheses.empty()) {
    const Architecture architecture = model.emplace(command.model).config().model.architecture;
    check_options(app, architecture);
    if (architecture != Architecture::encoder_decoder) return run_evaluate_text(command, *model);
  } else {
    check_options_of_hypotheses(app);
  }
  if (!command.text.data.empty()) fail<ConfigError>("--data is for classifiers and language models");
  for (const char* other : {"--format", "--label-field", "--text-field", "--second-text-field", "--stride"})
    if (app.count(other) > 0) fail<ConfigError>("{} is for classifiers and language models", other);
  if (app.count("--confusion") > 0) fail<ConfigError>("--confusion is for classifiers");
  const Evaluation result = model ? evaluate_model(command, *model) : evaluate_hypotheses(command);
  TextOutput out;
  if (command.json) {
    out.line(show_indented(to_json(result)));
  } else {
    write_table(out, result);
  }
  out.finish();
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app) {
  const auto c = std::make_shared<EvaluateCommand>();
  CLI::App* command =
      add_command(app, "evaluate", "Measure a model on given text, or score translations: BLEU, chrF, TER",
                  "  attune evaluate runs/demo/model --source test.en --reference test.de\n"
                  "  attune evaluate runs/demo/model --source test.en --reference test.de --json --output test.out.de\n"
                  "  attune evaluate runs/demo/model --source test.en --reference test.de --alignments test.align\n"
                  "  attune evaluate --hypotheses test.out.de --reference test.de --bleu-tokenizer none\n"
                  "  attune evaluate --hypotheses test.out.de --reference test.a.de --reference test.b.de\n"
                  "  attune evaluate runs/reviews/model --data test.tsv --confusion labels.html\n"
                  "  attune evaluate runs/shakespeare/model --data valid.txt --stride 128\n"
                  "Of a model that translates: BLEU, chrF, TER, nll, perplexity, alignment errors. Of a classifier:\n"
                  "accuracy, precision, recall and F1 of each label, which label is taken for which. Of a regression:\n"
                  "mean squared error, Pearson's and Spearman's correlation. Of a language model: nll, perplexity,\n"
                  "bits per byte",
                  [c, &app] { return run_evaluate(*c, *app.get_subcommand("evaluate")); });
  add_model(*command, c->model);
  command->add_option("--source", c->source, "Text to translate, plain or gzip");
  command->add_option("--reference", c->references, "Its translation, line by line; may be given several times")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option(
      "--alignments", c->alignments,
      "Right word alignments of source and (first) reference, a line each: 0-0 1-2; for the error rate");
  command->add_option("--hypotheses", c->hypotheses, "Translations to score in place of a model's");
  command->add_option("--output", c->output, "File for the model's translations");
  command->add_option("--bleu-tokenizer", c->bleu_tokenizer,
                      "13a or none [13a, but none for a model with a whitespace vocabulary]");
  command->add_flag("--lowercase", c->lowercase, "BLEU without regard to case");
  command->add_option(
      "--data", c->text.data,
      "Labelled texts of a classifier, texts with numbers of a regression, or text of a language model");
  command->add_option("--format", c->text.format, "Of labelled texts: tsv, csv or jsonl [by the file's name]");
  command->add_option("--label-field", c->text.label_field, "Of csv and jsonl")->capture_default_str();
  command->add_option("--text-field", c->text.text_field, "Of csv and jsonl")->capture_default_str();
  command->add_option("--second-text-field", c->text.second_text_field,
                      "Of csv and jsonl: the second text, for models that read pairs");
  command->add_option("--confusion", c->text.confusion,
                      "File for a picture of which label is taken for which: .html with the numbers, or .svg");
  command->add_option("--stride", c->text.stride,
                      "Tokens from one window of a language model to the next: fewer give more context, and cost more "
                      "[the model's context]");
  command->add_flag("--json", c->json, "For programs");
  c->generation.add_to(*command);
}

}  // namespace attune::cli

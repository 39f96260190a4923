#include "attune/cli/evaluate/evaluate_text.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/evaluate/confusion.h"
#include "attune/data/labelled_corpus.h"
#include "attune/metrics/classification_scores.h"
#include "attune/metrics/regression_scores.h"
#include "attune/ops/linear/precision.h"
#include "attune/train/config.h"
#include "attune/train/evaluate.h"
#include "attune/train/evaluate_file.h"

namespace attune::cli {
namespace {

constexpr size_t most_labels_shown = 12;  // of the confusion matrix

void write_row(TextOutput& out, const char* name, const std::string& value, const std::string& note = "") {
  out.line(fmt::format("{:<12}{:>9}{}{}", name, value, note.empty() ? "" : "  ", note));
}

// The texts that were measured on.
struct MeasuredTexts {
  int64_t texts = 0, cut = 0, skipped_empty = 0;
  int64_t max_tokens = 0;  // of a text, bos and eos included

  std::string note() const {
    std::string note;
    if (cut > 0) note = fmt::format("{} cut to the {} tokens that the model reads", cut, max_tokens);
    if (skipped_empty > 0) note += fmt::format("{}{} empty, left out", note.empty() ? "" : ", ", skipped_empty);
    return note;
  }
  Json to_json() const {
    return {{"texts", texts}, {"cut_texts", cut}, {"empty_texts", skipped_empty}, {"max_tokens", max_tokens}};
  }
};

LabelledCorpus read_texts(const TextEvaluation& evaluation, const ClassifierFolder& files) {
  const TransformerConfig& config = files.model->config();
  const auto texts = read_labelled(evaluation.data, {.format = named<LabelledFormat>("--format", evaluation.format),
                                                     .label_field = evaluation.label_field,
                                                     .text_field = evaluation.text_field,
                                                     .second_text_field = evaluation.second_text_field,
                                                     .numbers = config.is_regression()});
  return naming({evaluation.data}, [&] {
    return encode_labelled(texts, config.labels, *files.tokenizer,
                           {.max_tokens = files.max_tokens,
                            .tokenizer_frames_texts = files.tokenizer_frames_texts,
                            .pairs = !evaluation.second_text_field.empty(),
                            .numbers = config.is_regression()});
  });
}

ClassifierEvaluation evaluate_texts(const TextEvaluation& evaluation, const ClassifierFolder& files,
                                    const LabelledCorpus& corpus) {
  const ProductPrecisionScope precision(evaluation.precision);
  const auto place = [&](size_t i) { return fmt::format("{}:{}", evaluation.data, corpus.examples[i].line); };
  return evaluate(*files.model, corpus.examples, {.place = place});
}

MeasuredTexts measured(const LabelledCorpus& corpus, const ClassifierFolder& files) {
  return {.texts = std::ssize(corpus.examples),
          .cut = corpus.cut,
          .skipped_empty = corpus.skipped_empty,
          .max_tokens = files.max_tokens};
}

struct LabelEvaluation {
  std::vector<std::string> labels;
  ClassificationScores scores;
  CorpusLoss loss;
  MeasuredTexts on;
};

LabelEvaluation evaluate_labels(const TextEvaluation& evaluation, const ClassifierFolder& files) {
  const std::vector<std::string>& labels = files.model->config().labels;
  if (!evaluation.confusion.empty()) check_confusion_file(evaluation.confusion, labels.size());
  check_writable(evaluation.confusion);
  const LabelledCorpus corpus = read_texts(evaluation, files);
  const ClassifierEvaluation result = evaluate_texts(evaluation, files, corpus);

  std::vector<int32_t> references;
  for (const LabelledExample& example : corpus.examples) references.push_back(example.label);
  return {.labels = labels,
          .scores = classification_scores(result.predictions, references, static_cast<int64_t>(labels.size())),
          .loss = result.loss,
          .on = measured(corpus, files)};
}

Json to_json(const LabelEvaluation& e) {
  Json::object_t labels;  // added at the end: a search by name would take quadratic time
  for (size_t i = 0; i < e.labels.size(); ++i) {
    const LabelScore& s = e.scores.labels[i];
    labels.emplace_back(e.labels[i],
                        Json{{"precision", s.precision}, {"recall", s.recall}, {"f1", s.f1}, {"support", s.support}});
  }
  Json json = e.on.to_json();
  json.update(Json{{"accuracy", e.scores.accuracy},
                   {"macro_f1", e.scores.macro_f1},
                   {"nll", e.loss.nll},
                   {"labels", std::move(labels)}});
  if (!e.scores.confusion.empty())
    json["confusion"] = {{"labels", e.labels}, {"rows", "right labels"}, {"matrix", e.scores.confusion}};
  return json;
}

void write_confusion(TextOutput& out, const LabelEvaluation& e) {
  out.line("Right label (row) and prediction (column), texts");
  const auto row = [&](const std::string& name, const auto& cell) {
    std::string line = "  " + column(name, 20);
    for (size_t i = 0; i < e.labels.size(); ++i) line += " " + cell(i);
    out.line(line);
  };
  row("", [&](size_t i) { return fmt::format("{:>8}", i + 1); });
  for (size_t r = 0; r < e.labels.size(); ++r)
    row(fmt::format("{} {}", r + 1, e.labels[r]),
        [&](size_t i) { return fmt::format("{:>8}", e.scores.confusion[r][i]); });
}

void write_table(TextOutput& out, const LabelEvaluation& e) {
  write_row(out, "accuracy", fmt::format("{:.1f}%", 100 * e.scores.accuracy));
  write_row(out, "macro F1", fmt::format("{:.4f}", e.scores.macro_f1), "mean of the labels'");
  write_row(out, "nll", fmt::format("{:.4f}", e.loss.nll), "nats a text");
  write_row(out, "texts", std::to_string(e.on.texts), e.on.note());
  out.line(fmt::format("  {}{:>10}{:>10}{:>10}{:>10}", column("Label", 20), "precision", "recall", "F1", "texts"));
  for (size_t i = 0; i < e.labels.size(); ++i) {
    const LabelScore& s = e.scores.labels[i];
    out.line(fmt::format("  {}{:>10.4f}{:>10.4f}{:>10.4f}{:>10}", column(fmt::format("{} {}", i + 1, e.labels[i]), 20),
                         s.precision, s.recall, s.f1, s.support));
  }
  if (e.labels.size() <= most_labels_shown) {
    write_confusion(out, e);
  } else if (!e.scores.confusion.empty()) {
    out.line(fmt::format("The confusion matrix of {} labels is in --json and --confusion", e.labels.size()));
  }
}

struct NumberEvaluation {
  RegressionScores scores;
  MeasuredTexts on;
};

NumberEvaluation evaluate_numbers(const TextEvaluation& evaluation, const ClassifierFolder& files) {
  if (!evaluation.confusion.empty())
    fail<ConfigError>("--confusion {}: the model gives texts numbers, no labels", evaluation.confusion);
  const LabelledCorpus corpus = read_texts(evaluation, files);
  const ClassifierEvaluation result = evaluate_texts(evaluation, files, corpus);
  std::vector<float> references;
  for (const LabelledExample& example : corpus.examples) references.push_back(example.value);
  return {.scores = regression_scores(result.values, references), .on = measured(corpus, files)};
}

Json to_json(const NumberEvaluation& e) {
  Json json = e.on.to_json();
  json.update(Json{{"mean_squared_error", e.scores.mean_squared_error},
                   {"pearson", e.scores.pearson},
                   {"spearman", e.scores.spearman}});
  return json;
}

void write_table(TextOutput& out, const NumberEvaluation& e) {
  write_row(out, "MSE", fmt::format("{:.4f}", e.scores.mean_squared_error), "mean squared error");
  write_row(out, "Pearson", fmt::format("{:.4f}", e.scores.pearson), "correlation with the right numbers");
  write_row(out, "Spearman", fmt::format("{:.4f}", e.scores.spearman), "of ranks");
  write_row(out, "texts", std::to_string(e.on.texts), e.on.note());
}

Json to_json(const FileEvaluation& e) {
  return {{"tokens", e.loss.tokens},
          {"documents", e.documents},
          {"text_unit", enum_name(e.text_unit)},
          {"bytes", e.bytes},
          {"nll", e.loss.nll},
          {"perplexity", e.loss.perplexity},
          {"bits_per_byte", e.bits_per_byte()},
          {"accuracy", e.loss.accuracy},
          {"context_length", e.context},
          {"stride", e.stride}};
}

void write_table(TextOutput& out, const FileEvaluation& e) {
  write_row(out, "nll", fmt::format("{:.4f}", e.loss.nll), "nats a token");
  write_row(out, "perplexity", fmt::format("{:.4g}", e.loss.perplexity),
            fmt::format("in windows of {} tokens that advance by {}", e.context, e.stride));
  write_row(out, "bits a byte", fmt::format("{:.4f}", e.bits_per_byte()), fmt::format("of {} bytes", e.bytes));
  write_row(out, "accuracy", fmt::format("{:.1f}%", 100 * e.loss.accuracy), "of the next token");
  write_row(
      out, "tokens", std::to_string(e.loss.tokens),
      e.text_unit == TextUnit::stream ? "one stream" : fmt::format("in {} {}s", e.documents, enum_name(e.text_unit)));
}

template <class Result>
void write_result(TextOutput& out, const Result& result, bool json) {
  if (json) {
    out.line(show_indented(to_json(result)));
  } else {
    write_table(out, result);
  }
}

}  // namespace

void check_can_be_evaluated(const OpenedFolder& model) {
  const Architecture architecture = model.config().model.architecture;
  if (architecture != Architecture::encoder && architecture != Architecture::encoder_masked_lm) return;
  fail<ConfigError>(
      "{}: evaluate measures models that translate, classify or continue texts, and this one is an \"{}\", which "
      "predicts no label and no next token; {}",
      model.path().string(), enum_name(architecture),
      "attune embed gives its vectors, attune train measures it on validation text");
}

void evaluate_text(const TextEvaluation& evaluation, const OpenedFolder& model, TextOutput& out) {
  switch (model.config().model.architecture) {
    case Architecture::encoder_classifier: {
      named<LabelledFormat>("--format", evaluation.format);  // before the work
      check_output(evaluation.confusion, {model.path().string(), evaluation.data});
      const ClassifierFolder files =
          model.load_classifier(weights_to_measure(model, evaluation.precision, evaluation.device), evaluation.device);
      if (files.model->config().is_regression())
        return write_result(out, evaluate_numbers(evaluation, files), evaluation.json);
      const LabelEvaluation result = evaluate_labels(evaluation, files);
      if (!evaluation.confusion.empty())
        write_file(evaluation.confusion, draw_confusion(evaluation.confusion, result.labels, result.scores.confusion));
      return write_result(out, result, evaluation.json);
    }
    case Architecture::decoder_lm:
      return write_result(
          out,
          evaluate_file(model, evaluation.data,
                        {.stride = evaluation.stride, .precision = evaluation.precision, .device = evaluation.device}),
          evaluation.json);
    default:
      check_can_be_evaluated(model);
  }
}

}  // namespace attune::cli

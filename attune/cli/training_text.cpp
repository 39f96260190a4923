#include "attune/cli/training_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/io/toml_config.h"

namespace attune::cli {
namespace {

struct Option {
  const char* name;
  const std::vector<std::string>* files;
};

std::vector<Option> options_of(const TrainingText& text) {
  return {{"--source", &text.source},
          {"--target", &text.target},
          {"--labelled", &text.labelled},
          {"--text", &text.text},
          {"--valid-source", &text.valid_source},
          {"--valid-target", &text.valid_target},
          {"--valid", &text.valid}};
}

void check_sides(const Option& source, const Option& target) {
  if (source.files->size() == target.files->size()) return;
  if (source.files->empty() || target.files->empty()) {
    const bool has_source = target.files->empty();
    fail<ConfigError>("{} needs {}: the lines of one translate those of the other",
                      has_source ? source.name : target.name, has_source ? target.name : source.name);
  }
  fail<ConfigError>("{} names {} files but {} names {}", source.name, source.files->size(), target.name,
                    target.files->size());
}

// The kinds of text, of which there is one.
void check_kind(const TrainingText& text) {
  const std::vector<Option> options = options_of(text);
  std::vector<Option> used;
  for (const size_t i : {size_t{0}, size_t{2}, size_t{3}})
    if (!options[i].files->empty()) used.push_back(options[i]);
  if (used.size() > 1) fail<ConfigError>("{} and {}: a run learns from one kind of text", used[0].name, used[1].name);
  if (used.empty())
    fail<ConfigError>("{}: there is no text to train on, needs --source and --target, --labelled or --text",
                      used_option(text));
}

}  // namespace

void add_training_text(CLI::App& command, TrainingText& text) {
  const auto add = [&](const char* name, std::vector<std::string>& files, const char* help) {
    command.add_option(name, files, help)->group("Text, in place of a configuration")->type_name("FILE");
  };
  add("--source", text.source, "Train a translator: sentences, one a line, plain or gzip");
  add("--target", text.target, "Their translations, line by line");
  add("--labelled", text.labelled, "Train a classifier: label<TAB>text lines (.tsv), .csv or .jsonl");
  add("--text", text.text, "Train a language model: plain text");
  add("--valid-source", text.valid_source, "Sentences to validate on; else some of the text is held out");
  add("--valid-target", text.valid_target, "Their translations");
  add("--valid", text.valid, "Files to validate on, with --labelled or --text");
}

std::string used_option(const TrainingText& text) {
  for (const Option& option : options_of(text))
    if (!option.files->empty()) return option.name;
  return "";
}

Json sections_of(const TrainingText& text) {
  check_sides({"--source", &text.source}, {"--target", &text.target});
  check_sides({"--valid-source", &text.valid_source}, {"--valid-target", &text.valid_target});
  check_kind(text);
  const bool pairs = !text.source.empty();
  if (pairs && !text.valid.empty())
    fail<ConfigError>("--valid: pairs are validated on --valid-source and --valid-target");
  if (!pairs && !text.valid_source.empty())
    fail<ConfigError>("--valid-source: is for --source; {} is validated on --valid", used_option(text));
  Json data = Json::object();
  const auto put = [&](const char* key, const std::vector<std::string>& files) {
    if (!files.empty()) data[key] = files;
  };
  const Architecture architecture = pairs                    ? Architecture::encoder_decoder
                                    : !text.labelled.empty() ? Architecture::encoder_classifier
                                                             : Architecture::decoder_lm;
  put("train_source", text.source);
  put("train_target", text.target);
  put("valid_source", text.valid_source);
  put("valid_target", text.valid_target);
  put("train_files", text.labelled.empty() ? text.text : text.labelled);
  put("valid_files", text.valid);
  Json sections;
  sections["model"]["architecture"] = enum_name(architecture);
  sections["data"] = std::move(data);
  return sections;
}

std::string choice_table(const std::vector<Choice>& choices) {
  std::string table;
  for (const Choice& choice : choices)
    table += fmt::format("  {:<42}{}\n", choice.key + " = " + write_toml_value(choice.value), choice.why);
  return table;
}

}  // namespace attune::cli

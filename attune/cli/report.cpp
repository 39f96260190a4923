// attune report: a run as one page.

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/draw/attention.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/cli/draw/metrics.h"
#include "attune/cli/draw/svg.h"
#include "attune/cli/run_metrics.h"
#include "attune/cli/text_output.h"
#include "attune/io/config_file.h"
#include "attune/models/presets.h"
#include "attune/train/config.h"
#include "attune/train/validation.h"

namespace attune::cli {
namespace {

namespace fs = std::filesystem;

struct ReportCommand {
  std::string run, out, text;
};

constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#1f2430;max-width:1000px;margin:2em auto;padding:0 1em}"
    "table{border-collapse:collapse}td,th{border:1px solid #e3e6eb;padding:2px 10px;text-align:left;vertical-align:top}"
    "svg{max-width:100%;height:auto}.other{font-weight:600}";

std::string section(const char* title, const std::string& content) {
  return fmt::format("<h2>{}</h2>\n{}\n", title, content);
}

std::string row(std::initializer_list<std::string> cells, const char* mark = "") {
  std::string text = fmt::format("<tr{}>", mark);
  for (const std::string& cell : cells) text += fmt::format("<td>{}</td>", escape_xml(cell));
  return text + "</tr>\n";
}

std::string summary_of(const std::vector<Json>& metrics) {
  std::string rows;
  for (const std::string& name : names_of(metrics)) {
    const auto best = best_of(metrics, name);
    if (name.starts_with("valid_") && best)
      rows += row({"best " + name, fmt::format("{:.4f} at step {}", best->value, best->step)});
    if (name.starts_with(kAveragedPrefix) && best) rows += row({name, fmt::format("{:.6g}", best->value)});
  }
  for (const char* name : {"parameters", "tokens", "seconds", "memory_mib"}) {
    const std::optional<double> value = largest(metrics, name);
    const bool whole = std::string(name) == "parameters";
    if (value) rows += row({name, whole ? fmt::format("{:.0f}", *value) : fmt::format("{:.6g}", *value)});
  }
  rows += row({"steps", std::to_string(metrics.back()["step"].get<int64_t>())});
  return "<table>" + rows + "</table>";
}

// Everything that is measured, one panel for each unit.
std::string curves_of(const std::string& run, const std::vector<Json>& metrics) {
  MetricsPicture picture{.runs = {run}, .values = {}};
  for (const std::string& name : names_of(metrics))
    if (name != "parameters" && name != "tokens" && name != "seconds" && !name.starts_with(kAveragedPrefix) &&
        best_of(metrics, name))
      picture.values.push_back(name);
  return picture.values.empty() ? "<p>Nothing has been measured yet.</p>" : draw_metrics(picture);
}

std::vector<Json> read_samples(const fs::path& run) {
  std::error_code ignored;
  const fs::path file = run / "samples.jsonl";
  if (!fs::exists(file, ignored)) return {};
  return read_json_lines(file, [](const Json& json, const std::string& where) {
    for (const char* name : {"source", "reference", "translation"})
      if (!json.is_object() || !json.contains(name) || !json[name].is_string() || !json.contains("step"))
        fail<DataError>("{}: needs an object with step, source, reference and translation", where);
  });
}

std::string samples_text(const std::vector<Json>& samples) {
  std::vector<std::string> sources;
  for (const Json& sample : samples)
    if (std::ranges::find(sources, sample["source"].get<std::string>()) == sources.end())
      sources.push_back(sample["source"].get<std::string>());
  std::string text;
  for (const std::string& source : sources) {
    text += fmt::format("<h3>{}</h3>\n<table>", escape_xml(source));
    std::string reference;
    for (const Json& sample : samples) {
      if (sample["source"] != source) continue;
      text += row({"step " + show(sample["step"]), sample["translation"].get<std::string>()});
      reference = sample["reference"].get<std::string>();
    }
    text += row({"reference", reference}, " class=\"other\"") + "</table>\n";
  }
  return text;
}

// Keys that are not the architecture's defaults stand out.
std::string configuration_of(const fs::path& run) {
  const RunConfig config = read_run_config(run / "config.toml");
  const Json found = write_fields(config), defaults = write_fields(default_config(config.model.architecture));
  const Json keys = flat_config(run);
  std::string rows;
  for (const auto& [key, value] : keys.items()) {
    const size_t dot = key.find('.');
    const std::string part = key.substr(0, dot), name = key.substr(dot + 1);
    const bool changed = found.at(part).at(name) != defaults.at(part).at(name);
    rows += row({key, show(value)}, changed ? " class=\"other\"" : "");
  }
  return "<p>Keys that are not the default are bold.</p>\n<table>" + rows + "</table>";
}

std::string attention_of(const ReportCommand& command, const std::vector<Json>& samples) {
  const auto model = model_of_run(command.run);
  std::string text = command.text;
  if (text.empty() && !samples.empty()) text = samples.front()["source"].get<std::string>();
  if (!model || text.empty())
    return fmt::format("<p>{}</p>", model ? "--text names a text to be read." : "There is no model yet.");
  if (read_model_config(*model).architecture == Architecture::encoder_masked_lm)
    return "<p>The attention of a masked language model is not drawn; that of a classifier fine-tuned from it is.</p>";
  const bool given = !command.text.empty();
  try {
    const AttentionPage page = view_attention({.folder = model->string(),
                                               .text = text,
                                               .target = "",
                                               .text_name = given ? "--text" : "the first sample",
                                               .most_tokens = kMostCells});
    if (page.maps.size() == 1) return draw_attention(page, "", {});
    std::string pictures;
    for (const char* kind : {"cross", "encoder", "decoder"}) pictures += draw_attention(page, kind, {}) + "\n";
    return pictures;
  } catch (const Error& error) {  // a sample that cannot be shown costs its picture, not the page
    if (given) throw;
    return fmt::format("<p>{}; --text names another text.</p>", escape_xml(error.what()));
  }
}

int report_run(const ReportCommand& command) {
  const std::vector<Json> metrics = read_metrics(command.run);
  const std::string file = command.out.empty() ? (fs::path(command.run) / "report.html").string() : command.out;
  check_output(file, {command.run});
  check_writable(file);
  const std::vector<Json> samples = read_samples(command.run);
  const std::string title = escape_xml("Run " + command.run);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>\n"
      "<body>\n<h1>{0}</h1>\n",
      title, kStyle);
  page += section("Figures", summary_of(metrics));
  page += section("Curves", curves_of(command.run, metrics));
  if (!samples.empty()) page += section("Translations by step", samples_text(samples));
  page += section("Attention", attention_of(command, samples));
  page += section("Configuration", configuration_of(command.run));
  page += "</body>\n</html>\n";
  write_file(file, page);
  TextOutput out;
  out.line("wrote " + one_line(file));
  out.finish();
  return 0;
}

}  // namespace

void add_report(CLI::App& app) {
  const auto c = std::make_shared<ReportCommand>();
  CLI::App* command =
      add_command(app, "report", "Write a run as one HTML page: curves, translations, attention, configuration",
                  "  attune report runs/demo                      # writes runs/demo/report.html\n"
                  "  attune report runs/lm --text \"Once upon a time\" --out lm.html\n"
                  "The page needs nothing from outside and has no scripts",
                  [c] { return report_run(*c); });
  command->add_option("run", c->run, "Folder of a run")->required();
  command->add_option("--out", c->out, "HTML file [report.html in the folder]");
  command->add_option("--text", c->text, "What the model reads for its attention [the first sample]");
}

}  // namespace attune::cli

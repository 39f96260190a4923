// attune draw metrics: the curves of training runs.

#include <fmt/format.h>
#include <cmath>
#include <limits>
#include <sstream>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/io/json_file.h"

namespace attune::cli {
namespace {

constexpr size_t kMostCurves = 24;

struct MetricsCommand {
  std::vector<std::string> runs;
  std::vector<std::string> values = {"loss", "valid_loss"};
  bool log_x = false, log_y = false;
};

/// The lines of a run's metrics.jsonl, the last one left out where a running process has not ended it.
std::vector<Json> read_metrics(const std::filesystem::path& run) {
  std::error_code ignored;
  const auto path = std::filesystem::is_directory(run, ignored) ? run / "metrics.jsonl" : run;
  std::istringstream text(read_file(path));
  std::vector<Json> lines;
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    if (text.eof()) break;
    const std::string where = fmt::format("{}:{}", path.string(), number);
    Json json = parse_json(line, where);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number())
      fail<DataError>("{}: needs an object with a \"step\"", where);
    lines.push_back(std::move(json));
  }
  if (lines.empty()) fail<DataError>("{}: has no metrics", path.string());
  return lines;
}

std::string names_of(const std::vector<Json>& lines) {
  std::vector<std::string> names;
  for (const Json& line : lines)
    for (const auto& [name, value] : line.items())
      if (name != "step" && name != "time" && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// null, which stands for what is not finite, parts the curve.
Series curve_of(const std::vector<Json>& lines, const std::string& value) {
  Series series{.name = value, .points = {}};
  for (const Json& line : lines) {
    const auto found = line.find(value);
    if (found == line.end()) continue;
    series.points.push_back({line["step"].get<double>(),
                             found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN()});
  }
  return series;
}

std::string draw_metrics(const MetricsCommand& c, bool values_given) {
  LineChart chart{.title = fmt::format("{}", fmt::join(c.values, ", ")),
                  .x = {.name = "step", .logarithmic = c.log_x},
                  .y = {.name = c.values.size() == 1 ? c.values.front() : "value", .logarithmic = c.log_y},
                  .series = {}};
  if (c.runs.size() * c.values.size() > kMostCurves)
    fail<ConfigError>("{} runs with {} values each are more than {} curves", c.runs.size(), c.values.size(),
                      kMostCurves);
  for (size_t r = 0; r < c.runs.size(); ++r) {
    const std::vector<Json> lines = read_metrics(c.runs[r]);
    for (size_t v = 0; v < c.values.size(); ++v) {
      Series series = curve_of(lines, c.values[v]);
      if (series.points.empty() && values_given)
        fail<ConfigError>("{}: has no {}, but {}", c.runs[r], in_quotes(c.values[v]), names_of(lines));
      if (series.points.empty()) continue;
      if (c.runs.size() > 1) {  // one colour for a run, one kind of line for a value
        series.name = c.runs[r] + " " + series.name;
        series.colour = colour_of_series(r);
        series.dashed = v % 2 == 1;
        series.marks = v >= 2;
      }
      chart.series.push_back(std::move(series));
    }
  }
  if (chart.series.empty()) fail<DataError>("no run has {}", fmt::join(c.values, " or "));
  return draw_line_chart(chart);
}

}  // namespace

void add_draw_metrics(CLI::App& draw) {
  const auto c = std::make_shared<MetricsCommand>();
  const auto values_given = std::make_shared<std::function<bool()>>();
  CLI::App* command = add_picture(draw, "metrics", "Curves of training runs, from their metrics.jsonl",
                                  "  attune draw metrics runs/demo --out loss.svg\n"
                                  "  attune draw metrics runs/a runs/b --values valid_nll --log-y --out runs.svg\n"
                                  "  attune draw metrics runs/demo --values valid_bleu --out bleu.svg",
                                  [c, values_given] { return draw_metrics(*c, (*values_given)()); });
  command->add_option("runs", c->runs, "Folders of runs")->required();
  CLI::Option* values = command->add_option("--values", c->values, "Names in metrics.jsonl [loss,valid_loss]");
  values->delimiter(',');
  *values_given = [values] { return values->count() > 0; };
  command->add_flag("--log-x", c->log_x, "Logarithmic steps");
  command->add_flag("--log-y", c->log_y, "Logarithmic values");
}

}  // namespace attune::cli

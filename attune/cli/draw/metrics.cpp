// attune draw metrics: the curves of training runs.

#include "attune/cli/draw/metrics.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/cli/run_metrics.h"
#include "attune/io/json_file.h"

namespace attune::cli {
namespace {

constexpr size_t kMostCurves = 24;

/// What a line has on the horizontal axis: step, minutes since the first line, or tokens. NaN where it has none.
double place_of(const Json& line, const std::string& axis, double begin) {
  const std::string name = axis == "step" ? "step" : axis == "time" ? "time" : "tokens";
  const auto found = line.find(name);
  if (found == line.end() || !found->is_number()) return std::numeric_limits<double>::quiet_NaN();
  return axis == "time" ? (found->get<double>() - begin) / 60 : found->get<double>();
}

// A null stands for a value that is not finite and interrupts the curve.
Series curve_of(const std::vector<Json>& lines, const std::string& value, const MetricsPicture& c) {
  Series series{.name = value, .points = {}};
  const double begin = first(lines, "time").value_or(0);
  double smoothed = std::numeric_limits<double>::quiet_NaN();
  for (const Json& line : lines) {
    const auto found = line.find(value);
    if (found == line.end()) continue;
    const double x = place_of(line, c.axis, begin);
    const double y = found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
    smoothed = std::isfinite(smoothed) && std::isfinite(y) ? c.smooth * smoothed + (1 - c.smooth) * y : y;
    if (std::isfinite(x)) series.points.push_back({x, smoothed});
  }
  return series;
}

const char* axis_name(const std::string& axis) {
  return axis == "time" ? "minutes" : axis == "tokens" ? "tokens" : "step";
}

// One chart for each unit, in the order of the values.
class Panels {
 public:
  explicit Panels(const MetricsPicture& c) : c_(c) {}

  void add(const std::string& unit, const std::string& value, Series series) {
    for (LineChart& chart : charts_) {
      if (chart.y.name != unit) continue;
      if ((", " + chart.title + ",").find(", " + value + ",") == std::string::npos) chart.title += ", " + value;
      chart.series.push_back(std::move(series));
      return;
    }
    charts_.push_back({.title = value,
                       .x = {.name = axis_name(c_.axis), .logarithmic = c_.log_x},
                       .y = {.name = unit, .logarithmic = c_.log_y},
                       .series = {std::move(series)}});
    if (c_.smooth > 0) charts_.back().note = fmt::format("smoothed: {} of the value before in each", c_.smooth);
  }
  const std::vector<LineChart>& charts() const { return charts_; }

 private:
  const MetricsPicture& c_;
  std::vector<LineChart> charts_;
};

}  // namespace

std::string draw_metrics(const MetricsPicture& c) {
  const bool values_given = !c.values.empty();
  const std::vector<std::string> values = values_given ? c.values : std::vector<std::string>{"loss", "valid_loss"};
  if (c.axis != "step" && c.axis != "time" && c.axis != "tokens")
    fail<ConfigError>("--x {}: needs one of step, time, tokens", c.axis);
  if (!(c.smooth >= 0 && c.smooth < 1)) fail<ConfigError>("--smooth {}: needs a number from 0 to below 1", c.smooth);
  if (c.runs.size() * values.size() > kMostCurves)
    fail<ConfigError>("{} runs with {} values each are more than {} curves", c.runs.size(), values.size(), kMostCurves);
  Panels panels(c);
  for (size_t r = 0; r < c.runs.size(); ++r) {
    const std::vector<Json> lines = read_metrics(c.runs[r]);
    std::map<std::string, size_t> of_unit;  // how many curves of this run a panel has
    for (const std::string& value : values) {
      Series series = curve_of(lines, value, c);
      const bool measured = std::ranges::any_of(lines, [&](const Json& line) { return line.contains(value); });
      if (!measured && values_given)
        fail<ConfigError>("{}: has no {}, but {}", c.runs[r], in_quotes(value), fmt::join(names_of(lines), ", "));
      if (measured && series.points.empty())
        fail<ConfigError>("{}: its metrics.jsonl has no \"{}\", which newer versions write: use --x step", c.runs[r],
                          c.axis);
      if (!measured) continue;
      const size_t v = of_unit[unit_of(value, lines)]++;
      if (c.runs.size() > 1) {  // one colour for a run, one kind of line for a value
        series.name = c.runs[r] + " " + series.name;
        series.colour = colour_of_series(r);
        series.dashed = v % 2 == 1;
        series.marks = v >= 2;
      }
      panels.add(unit_of(value, lines), value, std::move(series));
    }
  }
  if (panels.charts().empty()) fail<DataError>("no run has {}", fmt::join(values, " or "));
  return draw_line_charts(panels.charts());
}

void add_draw_metrics(CLI::App& draw) {
  const auto c = std::make_shared<MetricsPicture>();
  CLI::App* command =
      add_picture(draw, "metrics", "Curves of training runs, from their metrics.jsonl",
                  "  attune draw metrics runs/demo --out loss.svg\n"
                  "  attune draw metrics runs/a runs/b --values valid_nll --log-y --out runs.svg\n"
                  "  attune draw metrics runs/demo --values loss,valid_loss,valid_bleu --x time --out demo.svg\n"
                  "  attune draw metrics runs/a runs/b --x tokens --smooth 0.9 --out tokens.svg",
                  [c] { return draw_metrics(*c); });
  command->add_option("runs", c->runs, "Folders of runs")->required();
  command->add_option("--values", c->values, "Names in metrics.jsonl, one panel for each unit [loss,valid_loss]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--x", c->axis, "step, time (minutes since the first line) or tokens")->capture_default_str();
  command->add_option("--smooth", c->smooth, "Share of the value before in each, below 1: 0.9 smooths much")
      ->capture_default_str();
  command->add_flag("--log-x", c->log_x, "Logarithmic steps");
  command->add_flag("--log-y", c->log_y, "Logarithmic values");
}

}  // namespace attune::cli

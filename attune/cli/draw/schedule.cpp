// attune draw schedule: the learning rate as a function of the step.

#include <fmt/format.h>
#include <algorithm>
#include <set>

#include "attune/base/fail.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/optim/schedule.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

constexpr int64_t kPoints = 200;
constexpr int64_t kMostSteps = int64_t{1} << 40;

struct ScheduleCommand {
  std::vector<std::string> configs;
  std::vector<std::string> kinds;
  int64_t steps = 100000;
  int64_t warmup = 4000;
  int64_t d_model = 512;
  double learning_rate = 0, final_learning_rate = 0;
  bool log_x = false, log_y = false;
};

struct Curve {
  std::string name;
  ScheduleConfig schedule;
  int64_t steps, d_model;
};

std::vector<Curve> curves_of_options(const ScheduleCommand& c) {
  check_within("--steps", c.steps, 2, kMostSteps);
  check_within("--warmup", c.warmup, 1, kMostSteps);
  check_within("--d-model", c.d_model, 1, 1 << 24);
  if (c.learning_rate < 0 || c.final_learning_rate < 0)
    fail<ConfigError>("--learning-rate and --final need numbers that are not negative");
  std::vector<std::string> kinds = c.kinds;
  if (kinds.empty())
    for (const auto& [kind, name] : EnumNames<ScheduleKind>::values) kinds.emplace_back(name);
  std::vector<Curve> curves;
  for (const std::string& kind : kinds)
    curves.push_back({kind,
                      {.kind = named<ScheduleKind>("--schedules", kind),
                       .learning_rate = c.learning_rate,
                       .warmup_steps = c.warmup,
                       .final_learning_rate = c.final_learning_rate},
                      c.steps,
                      c.d_model});
  return curves;
}

// Whether the configuration leaves the number of steps open: how many steps an epoch has depends on the text.
bool needs_steps(const TrainConfig& train) {
  return train.epochs > 0 || train.steps <= 1;
}

// The steps of the run, which ends at train.steps or after train.epochs, whichever comes first. `steps`: of --steps.
int64_t steps_of_run(const TrainConfig& train, int64_t steps) {
  if (!needs_steps(train)) return train.steps;
  return train.epochs > 0 && train.steps > 1 ? std::min(train.steps, steps) : steps;
}

std::vector<Curve> curves_of_configs(const ScheduleCommand& c, const CLI::App& app) {
  refuse_option_beside(app, {"config", "--steps", "--log-x", "--log-y", "--out"},
                       c.configs[0] + ", which has a schedule of its own");
  std::vector<Curve> curves;
  const bool given = app.count("--steps") > 0;
  if (given) check_within("--steps", c.steps, 2, kMostSteps);
  bool uses_steps = false;
  for (const std::string& path : c.configs) {
    const RunConfig run = read_run_config(path);
    uses_steps = uses_steps || needs_steps(run.train);
    if (run.train.epochs > 0 && !given)
      fail<ConfigError>("{}: train.epochs = {}: how many steps these are depends on the text; --steps says it", path,
                        run.train.epochs);
    curves.push_back({fmt::format("{}: {}", path, enum_name(run.schedule.kind)), run.schedule,
                      steps_of_run(run.train, c.steps), run.model.d_model});
  }
  if (!uses_steps && given)
    fail<ConfigError>("--steps is not for {}, which has train.steps = {}", c.configs[0], curves[0].steps);
  return curves;
}

// Every step that is drawn: evenly on the axis, and where the warm-up ends.
std::vector<int64_t> steps_of(const Curve& curve, bool logarithmic) {
  std::set<int64_t> steps = {1, curve.steps, std::clamp(curve.schedule.warmup_steps, int64_t{1}, curve.steps)};
  for (int64_t i = 1; i < kPoints; ++i) {
    const double share = static_cast<double>(i) / kPoints, last = static_cast<double>(curve.steps);
    steps.insert(std::max(int64_t{1}, static_cast<int64_t>(logarithmic ? std::pow(last, share) : share * last)));
  }
  return {steps.begin(), steps.end()};
}

std::string draw_schedule(const ScheduleCommand& c, const CLI::App& app) {
  const std::vector<Curve> curves = c.configs.empty() ? curves_of_options(c) : curves_of_configs(c, app);
  LineChart chart{.title = "Learning rate",
                  .x = {.name = "step", .logarithmic = c.log_x},
                  .y = {.name = "learning rate", .logarithmic = c.log_y},
                  .series = {}};
  if (c.configs.empty()) chart.note = fmt::format("{} steps of warm-up; noam with d_model = {}", c.warmup, c.d_model);
  for (const Curve& curve : curves) {
    Series series{.name = curve.name, .points = {}};
    for (const int64_t step : steps_of(curve, c.log_x))
      series.points.push_back(
          {static_cast<double>(step), learning_rate(curve.schedule, step, curve.steps, curve.d_model)});
    chart.series.push_back(std::move(series));
  }
  return draw_line_chart(chart);
}

}  // namespace

void add_draw_schedule(CLI::App& draw) {
  const auto c = std::make_shared<ScheduleCommand>();
  CLI::App* command = add_picture(draw, "schedule", "The learning rate as a function of the step",
                                  "  attune draw schedule --out schedules.svg\n"
                                  "  attune draw schedule --schedules noam,inverse_sqrt --warmup 4000 --steps 50000\n"
                                  "  attune draw schedule examples/demo.toml --out demo.svg",
                                  [c, &draw] { return draw_schedule(*c, *draw.get_subcommand("schedule")); });
  command->add_option("config", c->configs, "Configurations (TOML) of runs, in place of what follows");
  command->add_option("--schedules", c->kinds, "noam, inverse_sqrt, cosine, linear, constant [all]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--steps", c->steps, "Of the whole run, also of a configuration with train.epochs")
      ->capture_default_str();
  command->add_option("--warmup", c->warmup, "Steps of warm-up")->capture_default_str();
  command->add_option("--learning-rate", c->learning_rate, "At the peak, for noam a factor [1e-3, for noam 1]");
  command->add_option("--final", c->final_learning_rate, "cosine, linear: at the last step")->capture_default_str();
  command->add_option("--d-model", c->d_model, "noam")->capture_default_str();
  command->add_flag("--log-x", c->log_x, "Logarithmic steps");
  command->add_flag("--log-y", c->log_y, "Logarithmic rates");
}

}  // namespace attune::cli

// attune draw positions: how a model knows where a token stands.

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "attune/base/fail.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/cli/draw/line_chart.h"
#include "attune/nn/positional_encoding.h"
#include "attune/ops/attention/attention.h"
#include "attune/ops/attention/rotary.h"
#include "attune/tensor/host_view.h"

namespace attune::cli {

enum class PositionView { sinusoidal, rotary, alibi, relative };

}  // namespace attune::cli

namespace attune {

template <>
struct EnumNames<cli::PositionView> {
  static constexpr std::pair<cli::PositionView, const char*> values[] = {{cli::PositionView::sinusoidal, "sinusoidal"},
                                                                         {cli::PositionView::rotary, "rotary"},
                                                                         {cli::PositionView::alibi, "alibi"},
                                                                         {cli::PositionView::relative, "relative"}};
};

}  // namespace attune

namespace attune::cli {
namespace {

struct PositionsCommand {
  std::string kind = "sinusoidal";
  int64_t length = 64;
  int64_t d_model = 128;
  int64_t d_head = 64;
  int64_t heads = 8;
  int64_t clip = 8;
  double base = 10000;
};

std::string draw_sinusoids(const PositionsCommand& c) {
  check_within("--length", c.length, 1, kMostCells);
  check_within("--d-model", c.d_model, 2, kMostCells);
  const HostView table(sinusoidal_positions(c.length, c.d_model, c.base));
  const auto values = table.as<float>();
  return draw_heat_maps({.title = fmt::format("Sinusoidal positions, d_model = {}", c.d_model),
                         .note = fmt::format("PE(pos, 2i) = sin(pos / {0}^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / "
                                             "{0}^(2i / d_model))",
                                             c.base),
                         .row_name = "position",
                         .column_name = "dimension",
                         .scale = ColourScale::diverging,
                         .low = -1,
                         .high = 1,
                         .maps = {{.rows = c.length, .columns = c.d_model, .values = {values.begin(), values.end()}}}});
}

std::string draw_rotary(const PositionsCommand& c) {
  check_within("--length", c.length, 1, kMostCells);
  check_within("--d-head", c.d_head, 2, 2 * kMostCells);
  const RotaryFrequencies rotary = rotary_frequencies({.base = c.base}, c.d_head);
  const auto pairs = static_cast<int64_t>(rotary.frequencies.size());
  HeatMap map{.rows = c.length, .columns = pairs};
  for (int64_t t = 0; t < c.length; ++t)
    for (const double frequency : rotary.frequencies)
      map.values.push_back(std::cos(static_cast<double>(t) * frequency));
  return draw_heat_maps(
      {.title = fmt::format("Rotary positions, {} dimensions of a head", c.d_head),
       .note = fmt::format("cos of the angle by which pair i is turned at place t: t / {}^(2i / {})", c.base, c.d_head),
       .row_name = "place t",
       .column_name = "pair i",
       .scale = ColourScale::diverging,
       .low = -1,
       .high = 1,
       .maps = {std::move(map)}});
}

std::string draw_alibi(const PositionsCommand& c) {
  check_within("--length", c.length, 2, 1 << 20);
  check_within("--heads", c.heads, 1, 64);
  LineChart chart{.title = fmt::format("ALiBi, {} heads", c.heads),
                  .note = "what is added to the scaled score of a query and a key: -slope_h |i - j|",
                  .x = {.name = "distance |i - j|"},
                  .y = {.name = "bias"},
                  .series = {}};
  const std::vector<double> slopes = alibi_slopes(c.heads);
  for (size_t h = 0; h < slopes.size(); ++h) {
    const double share = slopes.size() > 1 ? static_cast<double>(h) / static_cast<double>(slopes.size() - 1) : 1;
    const double end = static_cast<double>(c.length - 1);
    chart.series.push_back({.name = fmt::format("head {}: slope {:.3g}", h + 1, slopes[h]),
                            .points = {{0, 0}, {end, -slopes[h] * end}},
                            .colour = colour_of(ColourScale::sequential, 1 - 0.65 * share)});
  }
  return draw_line_chart(chart);
}

std::string draw_relative(const PositionsCommand& c) {
  check_within("--length", c.length, 1, kMostCells);
  check_within("--clip", c.clip, 1, 1 << 20);
  HeatMap map{.rows = c.length, .columns = c.length};
  for (int64_t i = 0; i < c.length; ++i)
    for (int64_t j = 0; j < c.length; ++j)
      map.values.push_back(static_cast<double>(std::clamp(j - i, -c.clip, c.clip)));
  return draw_heat_maps({.title = fmt::format("Relative positions, clipped at {}", c.clip),
                         .note = "which of the learned vectors a query i and a key j share: clamp(j - i, -clip, clip)",
                         .row_name = "query i",
                         .column_name = "key j",
                         .scale = ColourScale::diverging,
                         .low = -static_cast<double>(c.clip),
                         .high = static_cast<double>(c.clip),
                         .maps = {std::move(map)}});
}

void check_options(const CLI::App& app, PositionView view) {
  std::vector<std::string> known = {"--kind", "--length", "--out"};
  if (view == PositionView::sinusoidal) known.insert(known.end(), {"--d-model", "--base"});
  if (view == PositionView::rotary) known.insert(known.end(), {"--d-head", "--base"});
  if (view == PositionView::alibi) known.emplace_back("--heads");
  if (view == PositionView::relative) known.emplace_back("--clip");
  refuse_option_beside(app, known, fmt::format("--kind {}", enum_name(view)));
}

std::string draw_positions(const PositionsCommand& c, const CLI::App& app) {
  const PositionView view = named<PositionView>("--kind", c.kind);
  check_options(app, view);
  if (!(c.base > 1)) fail<ConfigError>("--base {}: needs a number above 1", c.base);
  switch (view) {
    case PositionView::sinusoidal:
      return draw_sinusoids(c);
    case PositionView::rotary:
      return draw_rotary(c);
    case PositionView::alibi:
      return draw_alibi(c);
    default:
      return draw_relative(c);
  }
}

}  // namespace

void add_draw_positions(CLI::App& draw) {
  const auto c = std::make_shared<PositionsCommand>();
  CLI::App* command = add_picture(draw, "positions", "Encodings and biases of positions",
                                  "  attune draw positions --length 64 --d-model 128 --out sinusoidal.svg\n"
                                  "  attune draw positions --kind rotary --d-head 64 --out rotary.svg\n"
                                  "  attune draw positions --kind alibi --heads 8 --length 128 --out alibi.svg\n"
                                  "  attune draw positions --kind relative --clip 8 --length 32 --out relative.svg",
                                  [c, &draw] { return draw_positions(*c, *draw.get_subcommand("positions")); });
  command->add_option("--kind", c->kind, "sinusoidal, rotary, alibi or relative")->capture_default_str();
  command->add_option("--length", c->length, "Positions")->capture_default_str();
  command->add_option("--d-model", c->d_model, "sinusoidal: dimensions, even")->capture_default_str();
  command->add_option("--d-head", c->d_head, "rotary: dimensions of a head, even")->capture_default_str();
  command->add_option("--heads", c->heads, "alibi")->capture_default_str();
  command->add_option("--clip", c->clip, "relative: distances beyond count as this one")->capture_default_str();
  command->add_option("--base", c->base, "sinusoidal, rotary: of the wavelengths")->capture_default_str();
}

}  // namespace attune::cli

#include "attune/cli/draw/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/fail.h"

namespace attune::cli {
namespace {

constexpr double kMargin = 18, kPlotWidth = 560, kPlotHeight = 320, kLeft = 62, kBottom = 44;
constexpr size_t kMostPoints = 600;  // of a curve: more cannot be told apart
constexpr size_t kMostName = 42;     // characters

/// Where values lie between the two ends of an axis.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool logarithmic = false;

  bool has(double value) const { return std::isfinite(value) && (!logarithmic || value > 0); }
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  double share(double value) const {
    if (logarithmic) return std::log(value / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
  // An axis of one value alone, and some air above and below the curves.
  void widen(double air) {
    if (!(high > low)) {
      const double half = logarithmic ? 0 : std::max(std::abs(low) / 2, 0.5);
      low = logarithmic ? low / 2 : low - half;
      high = logarithmic ? high * 2 : high + half;
    } else if (logarithmic) {
      const double factor = std::pow(high / low, air);
      low /= factor;
      high *= factor;
    } else {
      const double length = high - low;
      low = air > 0 && low >= 0 && low < length / 3 ? 0 : low - length * air;
      high += length * air;
    }
  }
};

std::vector<Point> thinned(const std::vector<Point>& points) {
  if (points.size() <= kMostPoints) return points;
  std::vector<Point> kept;
  for (size_t i = 0; i < kMostPoints; ++i) kept.push_back(points[i * (points.size() - 1) / (kMostPoints - 1)]);
  return kept;
}

struct Plot {
  Range x, y;
  Point corner;  // upper left
  Point place(const Point& p) const {
    return {corner.x + kPlotWidth * x.share(p.x), corner.y + kPlotHeight * (1 - y.share(p.y))};
  }
};

void draw_axes(Svg& svg, const LineChart& chart, const Plot& plot) {
  const Point corner = plot.corner;
  const auto ticks_of = [](const Axis& axis, const Range& range) {
    std::vector<double> inside;
    for (const double t : axis.ticks.empty() ? round_ticks(range.low, range.high, axis.logarithmic) : axis.ticks)
      if (range.has(t) && range.share(t) > -1e-9 && range.share(t) < 1 + 1e-9) inside.push_back(t);
    return inside;
  };
  for (const double t : ticks_of(chart.x, plot.x)) {
    const double x = corner.x + kPlotWidth * plot.x.share(t);
    svg.line({{x, corner.y}, {x, corner.y + kPlotHeight}}, {.colour = ink::faint});
    svg.text({x, corner.y + kPlotHeight + 15}, number_text(t), {.size = 11, .anchor = "middle"});
  }
  for (const double t : ticks_of(chart.y, plot.y)) {
    const double y = corner.y + kPlotHeight * (1 - plot.y.share(t));
    svg.line({{corner.x, y}, {corner.x + kPlotWidth, y}}, {.colour = ink::faint});
    svg.text({corner.x - 6, y + 4}, number_text(t), {.size = 11, .anchor = "end"});
  }
  svg.rectangle(corner, kPlotWidth, kPlotHeight, {.fill = ink::none, .stroke = "#b9bfca"});
  svg.text({corner.x + kPlotWidth / 2, corner.y + kPlotHeight + 34}, chart.x.name,
           {.anchor = "middle", .colour = ink::soft});
  svg.text({corner.x - kLeft + 12, corner.y + kPlotHeight / 2}, chart.y.name,
           {.anchor = "middle", .colour = ink::soft, .turn = -90});
}

void draw_series(Svg& svg, const Series& series, const std::string& colour, const Plot& plot) {
  std::vector<Point> piece;
  const LineStyle style = {.colour = colour, .width = 2, .dashed = series.dashed};
  const auto end_piece = [&] {
    if (piece.size() > 1) svg.line(piece, style);
    if (piece.size() == 1 && !series.marks) svg.circle(piece.front(), 2.5, {.fill = colour});
    piece.clear();
  };
  for (const Point& p : thinned(series.points)) {
    if (!plot.x.has(p.x) || !plot.y.has(p.y)) {
      end_piece();
      continue;
    }
    piece.push_back(plot.place(p));
    if (series.marks) svg.circle(piece.back(), 3, {.fill = colour});
  }
  end_piece();
}

std::string colour_of_line(const LineChart& chart, size_t i) {
  return chart.series[i].colour.empty() ? colour_of_series(i) : chart.series[i].colour;
}

// Curves beyond the number of colours are dashed, so that the seventh is not taken for the first.
Series distinguished(const LineChart& chart, size_t i) {
  Series series = chart.series[i];
  if (series.colour.empty() && i >= 6) series.dashed = true;
  return series;
}

struct ChartLayout {
  Plot plot;
  double top = 0, bottom = 0, width = 0;
  double legend = 0;  // its left edge
};

// Throws DataError when there is no point.
ChartLayout layout_of(const LineChart& chart, double top) {
  const double head = 26 + (chart.note.empty() ? 0 : 18);
  Plot plot{.x = {.logarithmic = chart.x.logarithmic},
            .y = {.logarithmic = chart.y.logarithmic},
            .corner = {kMargin + kLeft, top + kMargin + head}};
  double legend = 0;
  for (const Series& series : chart.series) {
    legend = std::max(legend, text_width(shortened(series.name, kMostName), 12));
    for (const Point& p : series.points) {
      if (!plot.x.has(p.x) || !plot.y.has(p.y)) continue;
      plot.x.include(p.x);
      plot.y.include(p.y);
    }
  }
  if (plot.x.low > plot.x.high) fail<DataError>("{}: there is no point to draw", chart.title);
  plot.x.widen(0);
  plot.y.widen(0.05);
  const double right = plot.corner.x + kPlotWidth + 18;
  const double rows = 20 * static_cast<double>(chart.series.size());
  return {.plot = plot,
          .top = top,
          .bottom = plot.corner.y + std::max(kPlotHeight + kBottom, rows) + kMargin,
          .width = std::max({right + 34 + legend + kMargin, text_width(chart.title, 15) + 2 * kMargin,
                             text_width(chart.note, 11) + 2 * kMargin}),
          .legend = right};
}

void draw_chart(Svg& svg, const LineChart& chart, const ChartLayout& layout) {
  const double top = layout.top + kMargin;
  svg.text({kMargin, top + 14}, chart.title, {.size = 15, .bold = true});
  if (!chart.note.empty()) svg.text({kMargin, top + 33}, chart.note, {.size = 11, .colour = ink::soft});
  draw_axes(svg, chart, layout.plot);
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series series = distinguished(chart, i);
    draw_series(svg, series, colour_of_line(chart, i), layout.plot);
    const double y = layout.plot.corner.y + 8 + 20 * static_cast<double>(i);
    svg.line({{layout.legend, y}, {layout.legend + 24, y}},
             {.colour = colour_of_line(chart, i), .width = 2, .dashed = series.dashed});
    svg.text({layout.legend + 32, y + 4}, shortened(series.name, kMostName));
  }
}

}  // namespace

std::vector<double> round_ticks(double low, double high, bool logarithmic) {
  std::vector<double> ticks;
  if (logarithmic) {
    const int first = static_cast<int>(std::floor(std::log10(low))),
              last = static_cast<int>(std::ceil(std::log10(high)));
    const bool few = last - first <= 3;
    const int step = std::max(1, (last - first) / 8);
    for (int power = first; power <= last; power += step)
      for (const double factor : {1.0, 2.0, 5.0})
        if (const double t = factor * std::pow(10.0, power); (few || factor < 2) && t >= low && t <= high)
          ticks.push_back(t);
    return ticks;
  }
  const double rough = (high - low) / 6;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0})
    if (factor * power >= rough * 0.999) step = factor * power;
  for (double i = std::ceil(low / step); i <= std::floor(high / step) + 1e-9 && ticks.size() < 20; ++i)
    ticks.push_back(i * step);
  return ticks;
}

std::string draw_line_chart(const LineChart& chart) {
  return draw_line_charts({chart});
}

std::string draw_line_charts(const std::vector<LineChart>& charts) {
  std::vector<ChartLayout> layouts;
  double width = 0, height = 0;
  for (const LineChart& chart : charts) {
    layouts.push_back(layout_of(chart, height));
    width = std::max(width, layouts.back().width);
    height = layouts.back().bottom;
  }
  Svg svg(width, height, charts.front().title);
  for (size_t i = 0; i < charts.size(); ++i) draw_chart(svg, charts[i], layouts[i]);
  return svg.finish();
}

}  // namespace attune::cli

#pragma once
// Curves as pictures.

#include <string>
#include <vector>

#include "attune/cli/draw/svg.h"

namespace attune::cli {

struct Series {
  std::string name;
  std::vector<Point> points;  // in the order in which they are joined; a point that is not finite interrupts the curve
  std::string colour = {};    // "": see colour_of_series()
  bool dashed = false;
  bool marks = false;  // a dot at every point
};

struct Axis {
  std::string name;
  bool logarithmic = false;        // then only values above 0 are drawn
  std::vector<double> ticks = {};  // none: round numbers
};

struct LineChart {
  std::string title;
  std::string note = {};  // one line below the title
  Axis x, y;
  std::vector<Series> series;
};

/// The picture as SVG, with a legend on the right. A curve of very many points is drawn with fewer, as many as can be
/// seen. Throws DataError when no point can be drawn.
std::string draw_line_chart(const LineChart& chart);

/// Several charts below one another; at least one. A curve of a single point is a dot.
std::string draw_line_charts(const std::vector<LineChart>& charts);

/// Between the smallest and the largest value: round numbers at equal distances, or 1, 2 and 5 times powers of ten.
std::vector<double> round_ticks(double low, double high, bool logarithmic);

}  // namespace attune::cli

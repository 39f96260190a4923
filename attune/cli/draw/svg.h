#pragma once
// Pictures as SVG 1.1 (https://www.w3.org/TR/SVG11): one file, no scripts, no fonts, nothing from outside.

#include <string>
#include <string_view>
#include <vector>

namespace attune::cli {

struct Point {
  double x = 0, y = 0;  // y grows downwards
};

namespace ink {  // the colours of every picture
inline constexpr const char* text = "#1f2430";
inline constexpr const char* soft = "#6b7280";   // axes, notes
inline constexpr const char* faint = "#e3e6eb";  // grid lines
inline constexpr const char* none = "none";
}  // namespace ink

struct LabelStyle {
  double size = 12;
  const char* anchor = "start";  // the point is the text's start, middle or end
  std::string colour = ink::text;
  bool bold = false;
  double turn = 0;  // degrees, clockwise about the point
};

struct LineStyle {
  std::string colour = ink::text;
  double width = 1;
  bool dashed = false;
  bool arrow = false;  // a head at the last point
};

struct FillStyle {
  std::string fill = "#ffffff";
  std::string stroke = ink::none;
  double radius = 0;  // of the corners
  bool dashed = false;
};

/// A drawing on a white background, to which shapes are added. The same calls give the same bytes.
class Svg {
 public:
  Svg(double width, double height, std::string_view title);

  /// Writes a line of text whose baseline goes through `at`. The text is escaped.
  void text(Point at, std::string_view text, const LabelStyle& style = {});
  /// At least two points, all finite.
  void line(const std::vector<Point>& points, const LineStyle& style = {});
  void rectangle(Point corner, double width, double height, const FillStyle& style = {});
  void circle(Point centre, double radius, const FillStyle& style = {});
  /// Draws a grid of square cells, row by row; `colour_of_cell` has the index in `colours` of each. Neighbours of one
  /// colour become one stroke, all of them across or all of them down, whichever takes fewer strokes. All strokes of a
  /// colour are one path: ten thousand cells take some ten kilobytes.
  void cells(Point corner, double cell_size, int64_t columns, const std::vector<int>& colour_of_cell,
             const std::vector<std::string>& colours);

  std::string finish() const;

 private:
  std::string text_;
};

/// The text with markup escaped. Control characters and bytes that are not UTF-8, which XML 1.0 does not allow, become
/// U+FFFD.
std::string escape_xml(std::string_view text);

/// The approximate width of a text; fonts differ.
double text_width(std::string_view text, double size);

/// The text, cut to `most` characters with an ellipsis.
std::string shortened(std::string_view text, size_t most);

/// A number for people: "0.001", "4k", "1.5M".
std::string number_text(double value);

enum class ColourScale {
  sequential,  // white to dark blue
  diverging,   // blue, white, red
};

/// The colour at `share` of a scale, 0 to 1, as "#rrggbb".
std::string colour_of(ColourScale scale, double share);

/// Colours that can be told apart, for the lines of a chart; the seventh is the first again, see LineChart.
std::string colour_of_series(size_t index);

}  // namespace attune::cli

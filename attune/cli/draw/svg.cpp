#include "attune/cli/draw/svg.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "attune/cli/text_output.h"
#include "attune/text/unicode.h"

namespace attune::cli {
namespace {

constexpr const char* kReplacement = "\xEF\xBF\xBD";

// At most two places after the point, without zeros at the end.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

bool allowed_in_xml(char32_t c) {
  if (c < 0x20) return c == '\t' || c == '\n' || c == '\r';
  return c != 0x7F && !(c >= 0xD800 && c <= 0xDFFF) && c != 0xFFFE && c != 0xFFFF;
}

// Ideographs, kana, Hangul, full-width forms and pictographs are as wide as they are high (Unicode Standard Annex 11).
bool is_wide(char32_t c) {
  struct Block {
    char32_t first, last;
  };
  constexpr Block kWide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},  {0x3041, 0xA4CF}, {0xAC00, 0xD7A3},
                             {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF01, 0xFF60}, {0xFFE0, 0xFFE6},
                             {0x1F300, 0x1FAFF}, {0x20000, 0x3FFFD}};
  return std::ranges::any_of(kWide, [c](const Block& block) { return c >= block.first && c <= block.last; });
}

using Colour = std::array<double, 3>;

std::string hexadecimal(const Colour& c) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(c[0]), std::lround(c[1]), std::lround(c[2]));
}

// Between stops that lie at equal distances.
Colour interpolated(std::span<const Colour> stops, double share) {
  const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const size_t below = std::min(static_cast<size_t>(at), stops.size() - 2);
  const double t = at - static_cast<double>(below);
  Colour c;
  for (size_t i = 0; i < 3; ++i) c[i] = stops[below][i] + t * (stops[below + 1][i] - stops[below][i]);
  return c;
}

constexpr std::array<Colour, 5> kSequential = {
    {{247, 250, 253}, {198, 219, 239}, {107, 174, 214}, {33, 113, 181}, {8, 48, 107}}};
constexpr std::array<Colour, 5> kDiverging = {
    {{33, 84, 160}, {137, 180, 219}, {250, 250, 250}, {240, 152, 114}, {178, 34, 46}}};
constexpr std::array<const char*, 6> kSeries = {"#1f6fb4", "#d1495b", "#2a9d6f", "#e08e2b", "#7b5ea7", "#4d4d4d"};

std::string arrow_head(const std::vector<Point>& points, const LineStyle& style) {
  const Point tip = points.back(), from = points[points.size() - 2];
  const double length = std::max(std::hypot(tip.x - from.x, tip.y - from.y), 1e-9);
  const double x = (tip.x - from.x) / length, y = (tip.y - from.y) / length;
  constexpr double kLong = 7, kWide = 3.2;
  return fmt::format(R"(<path d="M{} {}L{} {}L{} {}z" fill="{}"/>)"
                     "\n",
                     number(tip.x), number(tip.y), number(tip.x - kLong * x - kWide * y),
                     number(tip.y - kLong * y + kWide * x), number(tip.x - kLong * x + kWide * y),
                     number(tip.y - kLong * y - kWide * x), style.colour);
}

/// Cells of one colour that follow one another in a row, or in a column.
struct Run {
  int64_t line, begin, length;
  int colour;
};

/// How a grid is read: `lines` of `length` cells, and how far apart lines and cells are.
struct Reading {
  int64_t lines, length, line_step, cell_step;
};

std::vector<Run> runs_of(const std::vector<int>& colours, const Reading& r) {
  std::vector<Run> runs;
  for (int64_t line = 0; line < r.lines; ++line) {
    for (int64_t i = 0; i < r.length; ++i) {
      const int colour = colours[static_cast<size_t>(line * r.line_step + i * r.cell_step)];
      if (i > 0 && runs.back().colour == colour) {
        ++runs.back().length;
      } else {
        runs.push_back({line, i, 1, colour});
      }
    }
  }
  return runs;
}

}  // namespace

Svg::Svg(double width, double height, std::string_view title) {
  text_ = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" role="img" )"
      R"(font-family="system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">)"
      "\n<title>{2}</title>\n"
      R"(<rect width="{0}" height="{1}" fill="#ffffff"/>)"
      "\n",
      number(std::ceil(width)), number(std::ceil(height)), escape_xml(title));
}

void Svg::text(Point at, std::string_view text, const LabelStyle& style) {
  text_ += fmt::format(R"(<text x="{}" y="{}" font-size="{}" fill="{}")", number(at.x), number(at.y),
                       number(style.size), style.colour);
  if (std::string_view(style.anchor) != "start") text_ += fmt::format(R"( text-anchor="{}")", style.anchor);
  if (style.bold) text_ += R"( font-weight="600")";
  if (style.turn != 0)
    text_ += fmt::format(R"svg( transform="rotate({} {} {})")svg", number(style.turn), number(at.x), number(at.y));
  text_ += ">" + escape_xml(text) + "</text>\n";
}

void Svg::line(const std::vector<Point>& points, const LineStyle& style) {
  std::string path;
  for (const Point& p : points) path += fmt::format("{}{} {}", path.empty() ? 'M' : 'L', number(p.x), number(p.y));
  text_ += fmt::format(R"(<path d="{}" fill="none" stroke="{}" stroke-width="{}" stroke-linejoin="round"{}/>)"
                       "\n",
                       path, style.colour, number(style.width), style.dashed ? R"( stroke-dasharray="5 4")" : "");
  if (style.arrow) text_ += arrow_head(points, style);
}

void Svg::rectangle(Point corner, double width, double height, const FillStyle& style) {
  text_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" fill="{}" stroke="{}")", number(corner.x),
                       number(corner.y), number(width), number(height), style.fill, style.stroke);
  if (style.radius > 0) text_ += fmt::format(R"( rx="{}")", number(style.radius));
  if (style.dashed) text_ += R"( stroke-dasharray="5 4")";
  text_ += "/>\n";
}

void Svg::circle(Point centre, double radius, const FillStyle& style) {
  text_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" fill="{}" stroke="{}"/>)"
                       "\n",
                       number(centre.x), number(centre.y), number(radius), style.fill, style.stroke);
}

void Svg::cells(Point corner, double cell_size, int64_t columns, const std::vector<int>& colour_of_cell,
                const std::vector<std::string>& colours) {
  const int64_t rows = static_cast<int64_t>(colour_of_cell.size()) / columns;
  const std::vector<Run> across = runs_of(colour_of_cell, {rows, columns, columns, 1});
  const std::vector<Run> down = runs_of(colour_of_cell, {columns, rows, 1, columns});
  const bool upright = down.size() < across.size();
  std::vector<std::string> paths(colours.size());
  for (const Run& run : upright ? down : across)
    paths[static_cast<size_t>(run.colour)] += upright ? fmt::format("M{} {}v{}", run.line, run.begin, run.length)
                                                      : fmt::format("M{} {}h{}", run.begin, run.line, run.length);
  // A stroke of width 1 that runs through the middle of a cell.
  const double half = cell_size / 2;
  text_ +=
      fmt::format(R"svg(<g transform="translate({} {}) scale({})" shape-rendering="crispEdges" fill="none">)svg"
                  "\n",
                  number(corner.x + (upright ? half : 0)), number(corner.y + (upright ? 0 : half)), number(cell_size));
  for (size_t c = 0; c < colours.size(); ++c)
    if (!paths[c].empty()) text_ += fmt::format("<path stroke=\"{}\" d=\"{}\"/>\n", colours[c], paths[c]);
  text_ += "</g>\n";
}

std::string Svg::finish() const {
  return text_ + "</svg>\n";
}

std::string escape_xml(std::string_view text) {
  std::string escaped;
  for (size_t at = 0; at < text.size();) {
    const char32_t c = next_code_point(text, at);
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '>') {
      escaped += "&gt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else if (allowed_in_xml(c)) {
      append_utf8(escaped, c);
    } else {
      escaped += kReplacement;
    }
  }
  return escaped;
}

double text_width(std::string_view text, double size) {
  size_t wide = 0, narrow = 0;
  for (size_t at = 0; at < text.size();) ++(is_wide(next_code_point(text, at)) ? wide : narrow);
  return size * (static_cast<double>(wide) + 0.56 * static_cast<double>(narrow));
}

std::string shortened(std::string_view text, size_t most) {
  if (characters_of(text) <= most) return std::string(text);
  size_t at = 0;
  for (size_t i = 0; i + 1 < most; ++i) next_code_point(text, at);
  return std::string(text.substr(0, at)) + "…";
}

std::string number_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e6 && size < 1e12)
    return size >= 1e9 ? fmt::format("{:.4g}G", value / 1e9) : fmt::format("{:.4g}M", value / 1e6);
  if (size >= 1e4) return fmt::format("{:.4g}k", value / 1e3);
  return fmt::format("{:.4g}", value);
}

std::string colour_of(ColourScale scale, double share) {
  return hexadecimal(interpolated(scale == ColourScale::sequential ? kSequential : kDiverging, share));
}

std::string colour_of_series(size_t index) {
  return kSeries[index % kSeries.size()];
}

}  // namespace attune::cli

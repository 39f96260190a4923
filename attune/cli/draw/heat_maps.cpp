#include "attune/cli/draw/heat_maps.h"

#include <algorithm>
#include <cmath>

#include "attune/base/fail.h"

namespace attune::cli {
namespace {

constexpr int kLevels = 48;  // of colour: what lies between two of them looks alike
constexpr const char* kGrey = "#d9dce2";
constexpr double kMargin = 18, kLabelSize = 10, kTitleSize = 12, kGap = 26;
constexpr size_t kMostLabel = 18;  // characters

struct Layout {
  double cell = 0;
  double left = 0, top = 0;      // room for labels and names around the cells
  double width = 0, height = 0;  // of a whole map
  int64_t across = 1;
};

double widest(const std::vector<std::string>& labels) {
  double width = 0;
  for (const std::string& label : labels) width = std::max(width, text_width(shortened(label, kMostLabel), kLabelSize));
  return width;
}

Layout layout_of(const HeatMaps& picture) {
  Layout layout;
  int64_t rows = 1, columns = 1;
  double row_labels = 22, column_labels = 14, titles = 0;
  bool words = false;
  for (const HeatMap& map : picture.maps) {
    rows = std::max(rows, map.rows);
    columns = std::max(columns, map.columns);
    row_labels = std::max(row_labels, widest(map.row_labels));
    column_labels = std::max(column_labels, widest(map.column_labels));
    titles = std::max(titles, text_width(map.title, kTitleSize));
    words = words || !map.row_labels.empty() || !map.column_labels.empty();
  }
  const double room = picture.maps.size() == 1 ? 440 : 230;
  layout.cell = std::clamp(std::floor(2 * room / static_cast<double>(std::max(rows, columns))) / 2, 2.0, 18.0);
  if (words) layout.cell = std::max(layout.cell, 12.0);
  layout.left = row_labels + 28;
  layout.top = column_labels + (titles > 0 ? 30 : 8);
  layout.width = layout.left + std::max(layout.cell * static_cast<double>(columns), titles);
  layout.height = layout.top + layout.cell * static_cast<double>(rows) + kGap;
  const double fitting = std::floor((1000 + kGap) / (layout.width + kGap));
  layout.across = std::clamp(static_cast<int64_t>(fitting), int64_t{1}, static_cast<int64_t>(picture.maps.size()));
  return layout;
}

// Every how many cells a number stands.
int64_t label_step(int64_t cells, double cell, double room) {
  for (const int64_t step : {1, 2, 5, 10, 20, 50})
    if (static_cast<double>(step) * cell >= room || step >= cells) return step;
  return 100;
}

void draw_labels(Svg& svg, const HeatMap& map, Point corner, double cell) {
  const LabelStyle right = {.size = kLabelSize, .anchor = "end"};
  const bool rows_named = !map.row_labels.empty(), columns_named = !map.column_labels.empty();
  for (int64_t i = 0; i < map.rows; i += rows_named ? 1 : label_step(map.rows, cell, 14))
    svg.text({corner.x - 5, corner.y + cell * (static_cast<double>(i) + 0.5) + 3.5},
             rows_named ? shortened(map.row_labels[static_cast<size_t>(i)], kMostLabel) : std::to_string(i), right);
  for (int64_t j = 0; j < map.columns; j += columns_named ? 1 : label_step(map.columns, cell, 22)) {
    const Point at = {corner.x + cell * (static_cast<double>(j) + 0.5), corner.y - 5};
    if (columns_named) {
      svg.text({at.x + 3.5, at.y}, shortened(map.column_labels[static_cast<size_t>(j)], kMostLabel),
               {.size = kLabelSize, .turn = -90});
    } else {
      svg.text(at, std::to_string(j), {.size = kLabelSize, .anchor = "middle"});
    }
  }
}

double share_of(const HeatMaps& picture, double value) {
  return picture.high > picture.low ? (value - picture.low) / (picture.high - picture.low) : 0.0;
}

void draw_map(Svg& svg, const HeatMaps& picture, const HeatMap& map, Point corner, const Layout& layout) {
  const Point cells = {corner.x + layout.left, corner.y + layout.top};
  const double width = layout.cell * static_cast<double>(map.columns);
  const double height = layout.cell * static_cast<double>(map.rows);
  if (!map.title.empty()) svg.text({cells.x, corner.y + 11}, map.title, {.size = kTitleSize, .bold = true});
  draw_labels(svg, map, cells, layout.cell);
  svg.text({corner.x + 11, cells.y + height / 2}, picture.row_name,
           {.size = kLabelSize, .anchor = "middle", .colour = ink::soft, .turn = -90});
  svg.text({cells.x + width / 2, cells.y + height + 14}, picture.column_name,
           {.size = kLabelSize, .anchor = "middle", .colour = ink::soft});

  std::vector<std::string> colours;
  for (int level = 0; level < kLevels; ++level)
    colours.push_back(colour_of(picture.scale, static_cast<double>(level) / (kLevels - 1)));
  colours.emplace_back(kGrey);
  std::vector<int> levels;
  for (const double value : map.values)
    levels.push_back(std::isfinite(value)
                         ? static_cast<int>(std::lround(std::clamp(share_of(picture, value), 0.0, 1.0) * (kLevels - 1)))
                         : kLevels);
  svg.cells(cells, layout.cell, map.columns, levels, colours);
  svg.rectangle(cells, width, height, {.fill = ink::none, .stroke = "#b9bfca"});
}

void draw_meaning(Svg& svg, Point& at, const std::string& colour, const std::string& meaning) {
  svg.rectangle({at.x, at.y - 9}, 11, 11, {.fill = colour, .stroke = "#b9bfca"});
  svg.text({at.x + 16, at.y}, meaning, {.size = 11});
  at.x += 16 + text_width(meaning, 11) + 22;
}

// Returns the x where it ends.
double draw_legend(Svg& svg, const HeatMaps& picture, Point at) {
  for (const auto& [value, meaning] : picture.meanings)
    draw_meaning(svg, at, colour_of(picture.scale, share_of(picture, value)), meaning);
  if (!picture.grey_meaning.empty()) draw_meaning(svg, at, kGrey, picture.grey_meaning);
  if (!picture.meanings.empty()) return at.x;
  constexpr double kStep = 3;
  svg.text(at, number_text(picture.low), {.size = 11});
  at.x += text_width(number_text(picture.low), 11) + 8;
  for (int level = 0; level < kLevels; ++level)
    svg.rectangle({at.x + kStep * level, at.y - 9}, kStep + 0.3, 11,
                  {.fill = colour_of(picture.scale, static_cast<double>(level) / (kLevels - 1))});
  at.x += kStep * kLevels + 8;
  const std::string high = number_text(picture.high) + (picture.value_name.empty() ? "" : "   " + picture.value_name);
  svg.text(at, high, {.size = 11});
  return at.x + text_width(high, 11);
}

void check(const HeatMaps& picture) {
  if (picture.maps.empty()) fail<ConfigError>("there is nothing to draw");
  for (const HeatMap& map : picture.maps)
    if (map.rows < 1 || map.columns < 1 || map.rows > kMostCells || map.columns > kMostCells)
      fail<ConfigError>("{} rows by {} columns cannot be drawn, needs 1 to {} of each", map.rows, map.columns,
                        kMostCells);
}

}  // namespace

std::string draw_heat_maps(const HeatMaps& picture) {
  check(picture);
  const Layout layout = layout_of(picture);
  const auto count = static_cast<int64_t>(picture.maps.size());
  const int64_t down = (count + layout.across - 1) / layout.across;
  const double head = 24 + (picture.note.empty() ? 0 : 18) + 26;
  Svg legend(0, 0, "");  // drawn once for its width alone
  const double width = std::max(
      {layout.width * static_cast<double>(layout.across) + kGap * static_cast<double>(layout.across - 1),
       text_width(picture.title, 15), text_width(picture.note, 11), draw_legend(legend, picture, {0, 0}), 360.0});
  Svg svg(2 * kMargin + width, 2 * kMargin + head + layout.height * static_cast<double>(down), picture.title);
  svg.text({kMargin, kMargin + 14}, picture.title, {.size = 15, .bold = true});
  if (!picture.note.empty()) svg.text({kMargin, kMargin + 33}, picture.note, {.size = 11, .colour = ink::soft});
  draw_legend(svg, picture, {kMargin, kMargin + head - 12});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t row = i / layout.across, column = i % layout.across;
    draw_map(svg, picture, picture.maps[static_cast<size_t>(i)],
             {kMargin + (layout.width + kGap) * static_cast<double>(column),
              kMargin + head + layout.height * static_cast<double>(row)},
             layout);
  }
  return svg.finish();
}

}  // namespace attune::cli

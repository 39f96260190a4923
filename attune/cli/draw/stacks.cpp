#include "attune/cli/draw/stacks.h"

#include <algorithm>
#include <sstream>

namespace attune::cli {
namespace {

constexpr double kMargin = 18, kGap = 20;  // from part to part
constexpr double kBoxWidth = 236, kPathRoom = 26, kFrameRoom = 44;
constexpr double kColumn = kBoxWidth + 2 * (kPathRoom + kFrameRoom) + 30;

constexpr double kDetailSize = 10.5, kDetailLine = 12;

/// The detail of a box in lines that fit into it.
std::vector<std::string> lines_of(const std::string& detail) {
  std::vector<std::string> lines;
  std::istringstream words(detail);
  for (std::string word; words >> word;) {
    const bool fits = !lines.empty() && text_width(lines.back() + " " + word, kDetailSize) <= kBoxWidth - 12;
    if (fits) {
      lines.back() += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

double height_of(const StackPart& part) {
  switch (part.kind) {
    case StackPart::Kind::text:
      return 16;
    case StackPart::Kind::box:
      return 30 + kDetailLine * static_cast<double>(lines_of(part.detail).size());
    case StackPart::Kind::branch:
      return 4;
    case StackPart::Kind::add:
      return 20;
    default:
      return 6;  // air at the ends of a frame
  }
}

bool takes_part(const StackPart& part) {  // in the flow of the data
  return part.kind != StackPart::Kind::frame_begin && part.kind != StackPart::Kind::frame_end;
}

/// The lower and the upper edge of each part, from 0 upwards, that is towards negative numbers.
struct Edges {
  std::vector<double> low, high;
};

Edges edges_of(const Stack& stack) {
  Edges edges;
  double at = 0;
  for (size_t i = 0; i < stack.size(); ++i) {
    edges.low.push_back(at);
    at -= height_of(stack[i]);
    edges.high.push_back(at);
    if (takes_part(stack[i])) at -= stack[i].kind == StackPart::Kind::branch ? kGap - 6 : kGap;
  }
  return edges;
}

struct Column {
  double centre, bottom;
  bool mirrored;  // residual paths on the right
  Point at(double x, double y) const { return {centre + (mirrored ? -x : x), bottom + y}; }
};

// The name of a box and below it its detail.
void draw_label(Svg& svg, const StackPart& part, Point middle) {
  const std::vector<std::string> lines = lines_of(part.detail);
  double y = middle.y + 4 - (lines.empty() ? 0 : 7 + kDetailLine / 2 * static_cast<double>(lines.size() - 1));
  svg.text({middle.x, y}, part.name, {.anchor = "middle", .bold = true});
  y += 4;
  for (const std::string& line : lines)
    svg.text({middle.x, y += kDetailLine}, line, {.size = kDetailSize, .anchor = "middle", .colour = "#3d4452"});
}

void draw_part(Svg& svg, const StackPart& part, const Column& column, double low, double high) {
  const Point middle = column.at(0, (low + high) / 2);
  switch (part.kind) {
    case StackPart::Kind::text:
      svg.text({middle.x, middle.y + 4}, part.name, {.anchor = "middle", .bold = true});
      break;
    case StackPart::Kind::box:
      svg.rectangle({column.centre - kBoxWidth / 2, column.bottom + high}, kBoxWidth, low - high,
                    {.fill = part.fill, .stroke = "#5b6472", .radius = 5});
      draw_label(svg, part, middle);
      break;
    case StackPart::Kind::branch:
      svg.circle(middle, 2.5, {.fill = ink::text});
      break;
    case StackPart::Kind::add:
      svg.circle(middle, 9, {.fill = "#ffffff", .stroke = ink::text});
      svg.line({{middle.x - 5, middle.y}, {middle.x + 5, middle.y}}, {.width = 1.4});
      svg.line({{middle.x, middle.y - 5}, {middle.x, middle.y + 5}}, {.width = 1.4});
      break;
    default:
      break;
  }
}

// From the branch around what lies between to the circle that adds.
void draw_residual(Svg& svg, const Column& column, double from, double to) {
  const double side = -(kBoxWidth / 2 + kPathRoom - 8);
  svg.line({column.at(0, from), column.at(side, from), column.at(side, to), column.at(-10, to)},
           {.width = 1.4, .arrow = true});
}

void draw_frame(Svg& svg, const Column& column, double low, double high, const std::string& name) {
  const double half = kBoxWidth / 2 + kPathRoom + 4;
  svg.rectangle({column.centre - half, column.bottom + high}, 2 * half, low - high,
                {.fill = "#f6f7f9", .stroke = "#9aa2b1", .radius = 9});
  const Point beside = column.at(-half - 8, (low + high) / 2);
  svg.text({beside.x, beside.y + 4}, name, {.size = 13, .anchor = column.mirrored ? "start" : "end", .bold = true});
}

// Frames lie below everything else.
void draw_frames(Svg& svg, const Stack& stack, const Edges& edges, const Column& column) {
  for (size_t i = 0, begin = 0; i < stack.size(); ++i) {
    if (stack[i].kind == StackPart::Kind::frame_begin) begin = i;
    if (stack[i].kind == StackPart::Kind::frame_end)
      draw_frame(svg, column, edges.low[begin], edges.high[i] + kGap / 2, stack[begin].name);
  }
}

void draw_stack(Svg& svg, const Stack& stack, const Edges& edges, const Column& column) {
  double branch = 0, before = 0;
  bool first = true;
  for (size_t i = 0; i < stack.size(); ++i) {
    const StackPart& part = stack[i];
    if (!takes_part(part)) continue;
    const double middle = (edges.low[i] + edges.high[i]) / 2;
    const bool head = part.kind != StackPart::Kind::branch;
    const double end = part.kind == StackPart::Kind::add ? middle + 9 : head ? edges.low[i] : middle;
    if (!first) svg.line({column.at(0, before), column.at(0, end)}, {.width = 1.4, .arrow = head});
    before = part.kind == StackPart::Kind::add ? middle - 9 : head ? edges.high[i] : middle;
    first = false;
    if (part.kind == StackPart::Kind::branch) branch = middle;
    if (part.kind == StackPart::Kind::add) draw_residual(svg, column, branch, middle);
    draw_part(svg, part, column, edges.low[i], edges.high[i]);
  }
}

// From the end of the left stack over its top to every box of the right one that reads it.
void draw_memory(Svg& svg, const std::vector<Stack>& stacks, const std::vector<Edges>& edges,
                 const std::vector<Column>& columns) {
  size_t last = stacks[0].size() - 1;
  while (last > 0 && !takes_part(stacks[0][last])) --last;
  const double top = edges[0].high.back() - 14, between = (columns[0].centre + columns[1].centre) / 2;
  for (size_t i = 0; i < stacks[1].size(); ++i) {
    if (!stacks[1][i].reads_neighbour) continue;
    const double y = columns[1].bottom + (edges[1].low[i] + edges[1].high[i]) / 2;
    svg.line({{columns[0].centre, columns[0].bottom + edges[0].high[last]},
              {columns[0].centre, columns[0].bottom + top},
              {between, columns[0].bottom + top},
              {between, y},
              {columns[1].centre - kBoxWidth / 2, y}},
             {.colour = "#1f6fb4", .width = 1.6, .arrow = true});
    svg.text({between + 6, y - 6}, "keys, values", {.size = 10.5, .colour = "#1f6fb4"});
  }
}

}  // namespace

std::string draw_stacks(const StackPicture& picture) {
  std::vector<Edges> edges;
  double highest = 0;
  for (const Stack& stack : picture.stacks) {
    edges.push_back(edges_of(stack));
    highest = std::max(highest, -edges.back().high.back());
  }
  highest += picture.stacks.size() > 1 ? 20 : 0;  // for the arrow over the left stack
  const double head = 30 + 16 * static_cast<double>(picture.notes.size());
  double width = kColumn * static_cast<double>(picture.stacks.size());
  for (const std::string& note : picture.notes) width = std::max(width, text_width(note, 11));
  width = std::max(width, text_width(picture.title, 15));
  Svg svg(2 * kMargin + width, 2 * kMargin + head + highest, picture.title);
  svg.text({kMargin, kMargin + 14}, picture.title, {.size = 15, .bold = true});
  for (size_t i = 0; i < picture.notes.size(); ++i)
    svg.text({kMargin, kMargin + 33 + 16 * static_cast<double>(i)}, picture.notes[i],
             {.size = 11, .colour = ink::soft});

  std::vector<Column> columns;
  for (size_t s = 0; s < picture.stacks.size(); ++s) {
    columns.push_back({kMargin + kColumn * (static_cast<double>(s) + 0.5), kMargin + head + highest, s > 0});
    draw_frames(svg, picture.stacks[s], edges[s], columns[s]);
  }
  if (picture.stacks.size() > 1) draw_memory(svg, picture.stacks, edges, columns);
  for (size_t s = 0; s < picture.stacks.size(); ++s) draw_stack(svg, picture.stacks[s], edges[s], columns[s]);
  return svg.finish();
}

}  // namespace attune::cli

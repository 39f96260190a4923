#include "attune/metrics/edit_distance.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attune/base/fail.h"

namespace attune {

EditDistance::EditDistance(std::u32string reference, std::size_t length)
    : reference_(std::move(reference)), length_(length), rows_(length + 1) {
  for (std::size_t column = 0; column <= reference_.size(); ++column)
    rows_[0].cells.push_back({static_cast<int32_t>(column), Step::only_reference});
}

EditDistance::Cell EditDistance::cell(std::size_t row, std::size_t column) const {
  const Row& of = rows_[row];
  return column < of.begin || column - of.begin >= of.cells.size() ? Cell{} : of.cells[column - of.begin];
}

// The columns around the diagonal. Tercom's beam is 25 wide; where the reference is so much longer that two rows would
// have no column in common, it is wider.
EditDistance::Row EditDistance::empty_row(std::size_t row) const {
  constexpr double beam = 25;
  const double ratio = static_cast<double>(reference_.size()) / static_cast<double>(length_);
  const auto width = static_cast<std::size_t>(beam < ratio / 2 ? std::ceil(ratio / 2 + beam) : beam);
  const auto diagonal = static_cast<std::size_t>(std::floor(static_cast<double>(row) * ratio));
  const std::size_t end = row == length_ ? reference_.size() + 1 : std::min(reference_.size() + 1, diagonal + width);
  const std::size_t begin = diagonal < width ? 0 : std::min(diagonal - width, end);
  return {begin, std::vector<Cell>(end - begin)};
}

void EditDistance::fill(std::size_t row, char32_t word) {
  Row next = empty_row(row);
  Cell left;
  for (std::size_t i = 0; i < next.cells.size(); ++i) {
    const std::size_t column = next.begin + i;
    Cell best;
    const auto offer = [&](int32_t cost, Step step) {
      if (cost < best.cost) best = {cost, step};
    };
    // The first of several that cost the same is taken: in Tercom's order, seen from the text.
    if (column > 0) {
      const bool same = word == reference_[column - 1];
      offer(cell(row - 1, column - 1).cost + (same ? 0 : 1), same ? Step::same : Step::substitute);
    }
    offer(cell(row - 1, column).cost + 1, Step::only_text);
    if (column > 0) offer(left.cost + 1, Step::only_reference);
    next.cells[i] = left = best;
  }
  rows_[row] = std::move(next);
}

int32_t EditDistance::operator()(const std::u32string& text) {
  if (text.size() != length_)
    fail<ShapeError>("edit distance: the text has {} words, the table is for {}", text.size(), length_);
  std::size_t row = 0;
  while (row < filled_ && text_[row] == text[row]) ++row;
  text_ = text;
  for (; row < length_; ++row) fill(row + 1, text[row]);
  filled_ = length_;
  return cell(length_, reference_.size()).cost;
}

std::vector<EditDistance::Step> EditDistance::steps() const {
  std::vector<Step> steps;
  for (std::size_t row = length_, column = reference_.size(); row > 0 || column > 0;) {
    const Step step = cell(row, column).step;
    steps.push_back(step);
    if (step != Step::only_reference) --row;
    if (step != Step::only_text) --column;
  }
  std::reverse(steps.begin(), steps.end());
  return steps;
}

}  // namespace attune

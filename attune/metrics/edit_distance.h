#pragma once
// The edit distance that TER is made of.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attune {

/// Insertions, deletions and substitutions that turn texts into one reference, all of cost 1. Cells of the table that
/// are further than a beam from its diagonal are left out, so that memory and time are linear in the text's length
/// where it is about as long as the reference.
class EditDistance {
 public:
  /// What happened to a word of the text and a word of the reference; `only_*`: the other has no such word.
  enum class Step : uint8_t { none, same, substitute, only_text, only_reference };

  /// Words are numbers: equal ones for equal words. Every text has `length` words.
  EditDistance(std::u32string reference, std::size_t length);

  /// The distance of `text`. What the text before had in common with this one, from the front, is not computed again.
  /// Throws ShapeError unless it has `length` words.
  int32_t operator()(const std::u32string& text);

  /// The steps of the last text, from the front.
  std::vector<Step> steps() const;

 private:
  static constexpr int32_t kFar = int32_t{1} << 30;  // of a cell outside the beam
  struct Cell {
    int32_t cost = kFar;
    Step step = Step::none;
  };
  struct Row {
    std::size_t begin = 0;  // the first column
    std::vector<Cell> cells;
  };
  Cell cell(std::size_t row, std::size_t column) const;
  Row empty_row(std::size_t row) const;
  void fill(std::size_t row, char32_t word);

  std::u32string reference_, text_;
  std::size_t length_;
  std::vector<Row> rows_;   // [1 + length], of text_ as far as `filled_`
  std::size_t filled_ = 0;  // rows after the first that are those of text_
};

}  // namespace attune

#include "attune/inference/incremental_decoder.h"

#include <algorithm>
#include <utility>

namespace attune {
namespace {

constexpr size_t kLongWindow = 64;      // tokens; decoding is linear in them
constexpr size_t kLongestWindow = 256;  // the same, of text that is blank
constexpr size_t kShortWindow = 8;      // what is kept to decide about spaces and ends of words

// Tokenizers put U+FFFD in place of each byte that is in no character. The first three bytes of a character may still
// become one.
size_t certain_bytes(const std::string& text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  size_t size = text.size();
  for (int i = 0; i < 3 && std::string_view(text).substr(0, size).ends_with(kReplacement); ++i)
    size -= kReplacement.size();
  return size;
}

// How many bytes two texts have in common at their beginning, in whole characters. What was returned may not be how the
// text begins: a character that was cut becomes whole, a space goes before a comma.
size_t common_bytes(std::string_view a, std::string_view b) {
  auto n = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
  while (n > 0 && n < b.size() && (b[n] & 0xC0) == 0x80) --n;
  return n;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \n\t\r") == std::string::npos;
}

}  // namespace

IncrementalDecoder::IncrementalDecoder(const Tokenizer& tokenizer, std::span<const int32_t> before,
                                       bool eos_is_line_end)
    : tokenizer_(tokenizer), eos_is_line_end_(eos_is_line_end) {
  const auto begins_text = [&](int32_t id) { return id == tokenizer.bos_id() || id == tokenizer.eos_id(); };
  const auto last = std::find_if(before.rbegin(), before.rend(), begins_text);
  window_.assign(last.base(), before.end());
  returned_ = tokenizer_.decode(window_);
  shorten(0);
}

// "<0xE2>", a byte of a text. In Hugging Face's tokenizers a run of them is text only as a whole: one that is no
// character makes U+FFFD of all. Others decode a run character by character.
bool IncrementalDecoder::is_in_run(int32_t token) const {
  const std::string piece = tokenizer_.piece(token);
  return piece.size() == 6 && piece.starts_with("<0x") && piece.ends_with('>') && tokenizer_.kind() == "Hugging Face";
}

// Whether token i of the window continues a run of bytes.
bool IncrementalDecoder::is_within_run(size_t i) const {
  return i > 0 && is_in_run(window_[i]) && is_in_run(window_[i - 1]);
}

std::string IncrementalDecoder::push(int32_t token) {
  if (eos_is_line_end_ && token == tokenizer_.eos_id()) return finish() + "\n";
  const bool in_run = is_in_run(token);
  window_.push_back(token);
  if (in_run) return "";  // until all bytes of the run are there
  const std::string text = tokenizer_.decode(window_);
  const size_t certain = certain_bytes(text), same = common_bytes(returned_, std::string_view(text).substr(0, certain));
  std::string added;
  if (certain > same) {
    added = text.substr(same, certain - same);
    returned_ = text.substr(0, certain);
  }
  if (window_.size() > kLongWindow && returned_.size() == certain) shorten(text.size() - certain);
  return added;
}

std::string IncrementalDecoder::finish() {
  const std::string text = tokenizer_.decode(window_);
  std::string rest = text.substr(common_bytes(returned_, text));
  window_.clear();
  returned_.clear();
  return rest;
}

// Makes `tokens` the window and returns true, if their text ends as that of the window does: with `uncertain` bytes
// that are not returned yet. Returns false for a blank text unless it may be blank.
bool IncrementalDecoder::take_window(std::vector<int32_t> tokens, size_t uncertain, bool may_be_blank) {
  const std::string text = tokenizer_.decode(tokens);
  if (uncertain > 0 && text.size() - certain_bytes(text) != uncertain) return false;
  std::string returned = text.substr(0, text.size() - uncertain);
  if (!may_be_blank && is_blank(returned)) return false;
  window_ = std::move(tokens);
  returned_ = std::move(returned);
  return true;
}

// Keeps only the last tokens of the window. A tokenizer may drop spaces at the start of a text, so that their text must
// not be blank. They do not begin within a run of bytes either. Of a long blank text, the first and the last tokens
// stay.
void IncrementalDecoder::shorten(size_t uncertain) {
  for (size_t length = kShortWindow; length < window_.size(); length *= 2) {
    const auto begin = window_.end() - static_cast<std::ptrdiff_t>(length);
    if (is_within_run(window_.size() - length)) continue;
    if (take_window({begin, window_.end()}, uncertain, false)) return;
  }
  if (window_.size() <= kLongestWindow) return;
  size_t head = kShortWindow, tail = window_.size() - kShortWindow;
  while (head > 0 && is_in_run(window_[head - 1])) --head;  // no run goes on where the two meet
  if (is_within_run(tail)) return;
  std::vector<int32_t> ends(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(head));
  ends.insert(ends.end(), window_.begin() + static_cast<std::ptrdiff_t>(tail), window_.end());
  take_window(std::move(ends), uncertain, true);
}

}  // namespace attune

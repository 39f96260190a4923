#include "attune/text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/text/unicode.h"

namespace attune::jinja {
namespace {

constexpr std::array<std::string_view, 26> kOperations = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "*",
                                                          "/",  "%",  "~",  ">",  "<",  "=",  ".", ":", "|",
                                                          ",",  ";",  "(",  ")",  "[",  "]",  "{", "}"};

constexpr size_t kLongestName = 256;  // to look a name up and to keep it counts as one step

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

// Every line end as "\n", without the last one.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      text += source[i];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// The position behind the white space at `position`.
size_t skip_spaces(std::string_view text, size_t position) {
  for (size_t next = position; position < text.size(); position = next)
    if (!is_space(next_code_point(text, next))) break;
  return position;
}

std::string_view without_spaces_at_end(std::string_view text) {
  size_t end = 0;  // of the last character that is no space
  for (size_t position = 0; position < text.size();)
    if (!is_space(next_code_point(text, position))) end = position;
  return text.substr(0, end);
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : source_(with_plain_lines(source)), where_(where) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) read_data();
    add(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail_here(const std::string& message) const { fail_at(where_, line_, message); }

  void add(TokenKind kind, std::string text) {
    Token token;
    token.kind = kind;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }
  void advance(size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<ptrdiff_t>(position_),
                                         source_.begin() + static_cast<ptrdiff_t>(to), '\n'));
    position_ = to;
  }
  bool at(std::string_view text) const { return std::string_view(source_).substr(position_).starts_with(text); }

  // Text up to the next tag, and that tag.
  void read_data() {
    size_t tag = position_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) break;
      const char next = tag + 1 < source_.size() ? source_[tag + 1] : ' ';
      if (next == '{' || next == '%' || next == '#') break;
    }
    const bool line_starting = position_ == 0 || source_[position_ - 1] == '\n';
    if (tag == std::string::npos) {
      add_data(std::string_view(source_).substr(position_));
      return advance(source_.size());
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : ' ';
    std::string_view data = std::string_view(source_).substr(position_, tag - position_);
    if (sign == '-') {
      data = without_spaces_at_end(data);
    } else if (sign != '+' && kind != '{') {
      const size_t line = data.rfind('\n') + 1;  // 0 where there is none
      if ((line > 0 || line_starting) && line < data.size() && skip_spaces(data, line) == data.size())
        data = data.substr(0, line);
    }
    add_data(data);
    advance(tag + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') return skip_comment();
    add(kind == '{' ? TokenKind::output_begin : TokenKind::block_begin, "");
    read_tag(kind == '{' ? "}}" : "%}");
  }

  void add_data(std::string_view data) {
    if (!data.empty()) add(TokenKind::data, std::string(data));
  }

  void skip_comment() {
    const size_t end = source_.find("#}", position_);
    if (end == std::string::npos) fail_here("a comment has no end");
    const char sign = source_[std::max(end, size_t{1}) - 1];
    advance(end + 2);
    skip_behind(sign, true);
  }

  // Skips what a tag that ends with `sign` takes of the text behind it.
  void skip_behind(char sign, bool is_block) {
    if (sign == '-')
      advance(skip_spaces(source_, position_));
    else if (is_block && sign != '+' && at("\n"))
      advance(position_ + 1);
  }

  void read_tag(const std::string& end) {
    const bool is_block = end == "%}";
    int open = 0;  // brackets
    for (;;) {
      advance(skip_spaces(source_, position_));
      if (position_ >= source_.size()) fail_here("a tag has no \"" + end + "\"");
      const char c = source_[position_];
      if (open == 0) {
        const bool signed_end = (c == '-' || (c == '+' && is_block)) && source_.compare(position_ + 1, 2, end) == 0;
        if (signed_end || at(end)) {
          add(is_block ? TokenKind::block_end : TokenKind::output_end, "");
          advance(position_ + (signed_end ? 3 : 2));
          return skip_behind(signed_end ? c : ' ', is_block);
        }
      }
      if (c == '(' || c == '[' || c == '{') ++open;
      if ((c == ')' || c == ']' || c == '}') && --open < 0) fail_here(std::string("found \"") + c + "\"");
      read_token(c);
    }
  }

  void read_token(char c) {
    if (is_digit(c)) return read_number();
    if (is_name(c)) {
      size_t end = position_;
      while (end < source_.size() && is_name(source_[end])) ++end;
      if (end - position_ > kLongestName) fail_here("a name has more than " + std::to_string(kLongestName) + " bytes");
      add(TokenKind::name, source_.substr(position_, end - position_));
      return advance(end);
    }
    if (c == '"' || c == '\'') return read_text(c);
    for (const std::string_view operation : kOperations) {
      if (!at(operation)) continue;
      add(TokenKind::operation, std::string(operation));
      return advance(position_ + operation.size());
    }
    fail_here("found " + show(Json(std::string(1, c))));
  }

  void read_number() {
    size_t end = position_;
    std::string digits;
    bool real = false;
    const auto take_digits = [&] {
      for (; end < source_.size() && (is_digit(source_[end]) || source_[end] == '_'); ++end)
        if (source_[end] != '_') digits += source_[end];
    };
    take_digits();
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      real = true;
      digits += source_[end++];
      take_digits();
    }
    const auto at_end = [&](size_t ahead) { return end + ahead < source_.size() ? source_[end + ahead] : ' '; };
    if (at_end(0) == 'e' || at_end(0) == 'E') {
      const bool sign = at_end(1) == '-' || at_end(1) == '+';
      if (is_digit(at_end(sign ? 2 : 1))) {
        real = true;
        digits += 'e';
        if (at_end(1) == '-') digits += '-';
        end += sign ? 2 : 1;
        take_digits();
      }
    }
    if (is_name(at_end(0))) fail_here("a number is followed by a letter");
    add(real ? TokenKind::real : TokenKind::integer, digits);
    const char* last = digits.data() + digits.size();
    const auto result = real ? std::from_chars(digits.data(), last, tokens_.back().real)
                             : std::from_chars(digits.data(), last, tokens_.back().integer);
    if (result.ec != std::errc()) fail_here("number " + digits.substr(0, 40) + " is too large");
    advance(end);
  }

  void read_text(char quote) {
    std::string text;
    size_t i = position_ + 1;
    for (; i < source_.size() && source_[i] != quote; ++i) {
      if (source_[i] != '\\' || i + 1 >= source_.size())
        text += source_[i];
      else
        i = read_escape(i + 1, text);
    }
    if (i >= source_.size()) fail_here("a text has no end");
    add(TokenKind::text, std::move(text));
    advance(i + 1);
  }

  // The character behind a backslash; returns the position of the last one that belongs to it. As in Python.
  size_t read_escape(size_t i, std::string& text) const {
    constexpr std::string_view kLetters = "abfnrtv\\'\"", kMeanings = "\a\b\f\n\r\t\v\\'\"";
    const char c = source_[i];
    if (c == '\n') return i;
    if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
      text += kMeanings[at];
      return i;
    }
    if (c == 'x' || c == 'u' || c == 'U') {
      const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = 0;
      const std::string hex = source_.substr(std::min(i + 1, source_.size()), digits);
      const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
      if (hex.size() != digits || end != hex.data() + digits || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        fail_here(std::string("the escape \\") + c + " is no character");
      append_utf8(text, code);
      return i + digits;
    }
    if (is_digit(c) || c == 'N') fail_here(std::string("the escape \\") + c + " is not supported");
    text += '\\';
    text += c;
    return i;
  }

  std::string source_;
  const std::string& where_;
  std::vector<Token> tokens_;
  size_t position_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source, const std::string& where) {
  return Lexer(source, where).run();
}

void fail_at(const std::string& where, int line, const std::string& message) {
  fail<ConfigError>("{}:{}: {}", where, line, message);
}

}  // namespace attune::jinja

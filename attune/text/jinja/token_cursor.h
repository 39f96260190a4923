#pragma once
// The tokens of a template, read from the first to the last.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/cut_text.h"
#include "attune/base/json.h"
#include "attune/text/jinja/lexer.h"

namespace attune::jinja {

inline constexpr int kMaxDepth = 200;  // of expressions and of blocks in each other

/// The text as a JSON string, for messages.
inline std::string quoted(const std::string& text) {
  return show(Json(cut_text(text, 80)));
}

/// All functions that expect something throw ConfigError "WHERE:LINE: found ..., needs ..." when it is not there.
class TokenCursor {
 public:
  TokenCursor(std::vector<Token> tokens, const std::string& where) : tokens_(std::move(tokens)), where_(where) {}

  /// Counts how deep the parser is: lives as long as a block or an expression is read.
  class Level {
   public:
    explicit Level(TokenCursor& cursor) : cursor_(cursor) {
      if (++cursor_.depth_ > kMaxDepth) cursor_.fail_here("is nested more than " + std::to_string(kMaxDepth) + " deep");
    }
    ~Level() { --cursor_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TokenCursor& cursor_;
  };

  /// Past the last token, returns the last token again.
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[std::min(next_++, tokens_.size() - 1)]; }
  [[noreturn]] void fail_here(const std::string& message) const { fail_at(where_, peek().line, message); }
  [[noreturn]] void fail_at_line(int line, const std::string& message) const { fail_at(where_, line, message); }
  [[noreturn]] void unexpected(const std::string& needed = "") const {
    const Token& token = peek();
    std::string found = quoted(token.text);
    if (token.kind == TokenKind::end) found = "the end of the template";
    if (token.kind == TokenKind::block_end || token.kind == TokenKind::output_end) found = "the end of the tag";
    fail_here("found " + found + (needed.empty() ? "" : ", needs " + needed));
  }
  bool is(TokenKind kind, std::string_view text, size_t ahead = 0) const {
    return peek(ahead).kind == kind && peek(ahead).text == text;
  }
  bool is_operation(std::string_view text) const { return is(TokenKind::operation, text); }
  bool is_word(std::string_view text) const { return is(TokenKind::name, text); }
  bool skip_operation(std::string_view text) {
    const bool found = is_operation(text);
    if (found) ++next_;
    return found;
  }
  bool skip_word(std::string_view text) {
    const bool found = is_word(text);
    if (found) ++next_;
    return found;
  }
  void expect_operation(std::string_view text) {
    if (!skip_operation(text)) unexpected("\"" + std::string(text) + "\"");
  }
  void expect_word(std::string_view text) {
    if (!skip_word(text)) unexpected("\"" + std::string(text) + "\"");
  }
  void expect(TokenKind kind) {
    if (peek().kind != kind) unexpected("the end of the tag");
    ++next_;
  }
  /// The name that comes next.
  std::string name() {
    if (peek().kind != TokenKind::name) unexpected("a name");
    return take().text;
  }

 private:
  std::vector<Token> tokens_;
  const std::string& where_;
  size_t next_ = 0;
  int depth_ = 0;
};

}  // namespace attune::jinja

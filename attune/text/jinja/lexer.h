#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::jinja {

enum class TokenKind {
  data,
  name,
  integer,
  real,
  text,
  operation,
  block_begin,
  block_end,
  output_begin,
  output_end,
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;  // what data or a text stands for; anything else as it is written
  int64_t integer = 0;
  double real = 0;
  int line = 0;
};

/// Splits a template as Jinja does with trim_blocks and lstrip_blocks: the line end behind a block tag goes, white
/// space between the beginning of a line and a block tag goes, "-" takes all white space on its side, "+" keeps it.
/// Comments are left out, and so is one line end at the template's end. Throws ConfigError that begins with
/// "WHERE:LINE: ".
std::vector<Token> tokenize(std::string_view source, const std::string& where);

/// Throws ConfigError "WHERE:LINE: MESSAGE".
[[noreturn]] void fail_at(const std::string& where, int line, const std::string& message);

}  // namespace attune::jinja

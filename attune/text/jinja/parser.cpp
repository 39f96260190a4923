#include "attune/text/jinja/parser.h"

#include <algorithm>

#include "attune/text/jinja/expressions.h"
#include "attune/text/jinja/lexer.h"

namespace attune::jinja {
namespace {

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& where) : tokens_(std::move(tokens), where) {}

  Block run() {
    Block block = statements({});
    if (tokens_.peek().kind != TokenKind::end) tokens_.unexpected();
    return block;
  }

 private:
  // Up to a block tag that begins with one of `ends`, which is left with its name as the next token.
  Block statements(const std::vector<std::string_view>& ends) {
    const TokenCursor::Level level(tokens_);
    Block block;
    for (;;) {
      if (tokens_.peek().kind == TokenKind::end) {
        if (!ends.empty()) tokens_.unexpected("\"" + std::string(ends.back()) + "\"");
        return block;
      }
      const Token& token = tokens_.take();
      Statement statement;
      statement.line = token.line;
      if (token.kind == TokenKind::data) {
        statement.text = token.text;
      } else if (token.kind == TokenKind::output_begin) {
        statement.kind = StatementKind::output;
        statement.expression = parse_tuple(tokens_);
        tokens_.expect(TokenKind::output_end);
      } else {
        if (tokens_.peek().kind == TokenKind::name && std::ranges::find(ends, tokens_.peek().text) != ends.end())
          return block;
        parse_tag(statement);
      }
      block.push_back(std::move(statement));
    }
  }

  // What begins with a tag, the end of its last tag included.
  void parse_tag(Statement& statement) {
    const Token& token = tokens_.peek();
    const std::string tag = tokens_.name();
    if (tag == "if") return parse_if(statement);
    if (tag == "for") return parse_for(statement);
    if (tag == "set") return parse_set(statement);
    if (tag == "macro") return parse_macro(statement);
    if (tag == "generation") {  // marks what the model said, for training
      statement.kind = StatementKind::scope;
      statement.body = body("endgeneration");
      return;
    }
    if ((tag == "break" || tag == "continue") && loops_ > 0) {
      statement.kind = tag == "break" ? StatementKind::break_loop : StatementKind::continue_loop;
      return tokens_.expect(TokenKind::block_end);
    }
    tokens_.fail_at_line(token.line, "tag " + quoted(tag) + " is not supported here");
  }

  // From the end of a tag to the end of {% end %}.
  Block body(std::string_view end) {
    tokens_.expect(TokenKind::block_end);
    Block block = statements({end});
    tokens_.take();
    tokens_.expect(TokenKind::block_end);
    return block;
  }

  void parse_if(Statement& statement) {
    statement.kind = StatementKind::if_chain;
    for (std::string tag = "if"; tag != "endif";) {
      Statement::Branch branch;
      const bool last = tag == "else";
      if (!last) branch.condition = parse_expression(tokens_);
      tokens_.expect(TokenKind::block_end);
      branch.body = last ? statements({"endif"}) : statements({"elif", "else", "endif"});
      statement.branches.push_back(std::move(branch));
      tag = tokens_.take().text;
    }
    tokens_.expect(TokenKind::block_end);
  }

  void parse_for(Statement& statement) {
    statement.kind = StatementKind::for_loop;
    statement.names = targets();
    tokens_.expect_word("in");
    statement.expression = parse_tuple(tokens_, false);
    if (tokens_.skip_word("if")) statement.condition = parse_expression(tokens_);
    if (tokens_.is_word("recursive")) tokens_.fail_here("a recursive loop is not supported");
    tokens_.expect(TokenKind::block_end);
    ++loops_;
    statement.body = statements({"else", "endfor"});
    --loops_;
    if (tokens_.take().text == "else") {
      tokens_.expect(TokenKind::block_end);
      statement.otherwise = statements({"endfor"});
      tokens_.take();
    }
    tokens_.expect(TokenKind::block_end);
  }

  void parse_set(Statement& statement) {
    statement.names = targets();
    if (tokens_.skip_operation("=")) {
      statement.kind = StatementKind::set;
      statement.expression = parse_tuple(tokens_);
      return tokens_.expect(TokenKind::block_end);
    }
    if (statement.names.size() != 1) tokens_.unexpected("\"=\"");
    if (tokens_.is_operation("|")) tokens_.fail_here("filters of {% set %} blocks are not supported");
    statement.kind = StatementKind::set_block;
    statement.body = body("endset");
  }

  void parse_macro(Statement& statement) {
    if (loops_ > 0 || in_macro_) tokens_.fail_here("a macro in a loop or in another macro is not supported");
    statement.kind = StatementKind::macro;
    auto macro = std::make_shared<Macro>();
    macro->name = tokens_.name();
    tokens_.expect_operation("(");
    while (!tokens_.skip_operation(")")) {
      Parameter parameter;
      parameter.name = tokens_.name();
      if (tokens_.skip_operation("=")) parameter.value = parse_expression(tokens_);
      macro->parameters.push_back(std::move(parameter));
      if (!tokens_.is_operation(")")) tokens_.expect_operation(",");
    }
    in_macro_ = true;
    macro->body = body("endmacro");
    in_macro_ = false;
    statement.macro = std::move(macro);
  }

  // "a", "a, b" or "a.b"
  std::vector<std::string> targets() {
    std::vector<std::string> names;
    const bool bracket = tokens_.skip_operation("(");
    do {
      names.push_back(tokens_.name());
      if (tokens_.skip_operation(".")) names.back() += "." + tokens_.name();
    } while (tokens_.skip_operation(","));
    if (bracket) tokens_.expect_operation(")");
    return names;
  }

  TokenCursor tokens_;
  int loops_ = 0;  // that are open
  bool in_macro_ = false;
};

}  // namespace

Block parse(std::string_view source, const std::string& where) {
  return Parser(tokenize(source, where), where).run();
}

}  // namespace attune::jinja

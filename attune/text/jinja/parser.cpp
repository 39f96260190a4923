#include "attune/text/jinja/parser.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/text/jinja/lexer.h"

namespace attune::jinja {
namespace {

constexpr int kMaxDepth = 200;  // of expressions and of blocks in each other

std::string quoted(const std::string& text) {
  return show(Json(text.substr(0, 80)));
}

class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& where, const KnownNames& known)
      : tokens_(std::move(tokens)), where_(where), known_(known) {}

  Block run() {
    Block block = statements({});
    if (peek().kind != TokenKind::end) unexpected();
    return block;
  }

 private:
  struct Level {  // counts how deep the parser is
    explicit Level(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kMaxDepth) parser_.fail_here("is nested more than " + std::to_string(kMaxDepth) + " deep");
    }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Parser& parser_;
  };

  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(next_ + ahead, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[std::min(next_++, tokens_.size() - 1)]; }
  [[noreturn]] void fail_here(const std::string& message) const { fail_at(where_, peek().line, message); }
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
  std::string name() {
    if (peek().kind != TokenKind::name) unexpected("a name");
    return take().text;
  }

  // Statements.

  // Up to a block tag that begins with one of `ends`, which is left with its name as the next token.
  Block statements(const std::vector<std::string_view>& ends) {
    const Level level(*this);
    Block block;
    for (;;) {
      const Token& token = peek();
      if (token.kind == TokenKind::end) {
        if (!ends.empty()) unexpected("\"" + std::string(ends.back()) + "\"");
        return block;
      }
      Statement statement;
      statement.line = token.line;
      ++next_;
      if (token.kind == TokenKind::data) {
        statement.text = token.text;
      } else if (token.kind == TokenKind::output_begin) {
        statement.kind = StatementKind::output;
        statement.expression = tuple_or_expression();
        expect(TokenKind::output_end);
      } else {
        if (peek().kind == TokenKind::name && std::ranges::find(ends, peek().text) != ends.end()) return block;
        parse_tag(statement);
      }
      block.push_back(std::move(statement));
    }
  }

  // What begins with a tag, the end of its last tag included.
  void parse_tag(Statement& statement) {
    const Token& token = peek();
    const std::string tag = name();
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
      return expect(TokenKind::block_end);
    }
    fail_at(where_, token.line, "tag " + quoted(tag) + " is not supported here");
  }

  // From the end of a tag to the end of {% end %}.
  Block body(std::string_view end) {
    expect(TokenKind::block_end);
    Block block = statements({end});
    ++next_;
    expect(TokenKind::block_end);
    return block;
  }

  void parse_if(Statement& statement) {
    statement.kind = StatementKind::if_chain;
    for (bool more = true; more;) {
      Statement::Branch branch;
      const bool last = !statement.branches.empty() && tokens_[next_ - 1].text == "else";
      if (!last) branch.condition = expression();
      expect(TokenKind::block_end);
      branch.body = last ? statements({"endif"}) : statements({"elif", "else", "endif"});
      statement.branches.push_back(std::move(branch));
      more = take().text != "endif";
    }
    expect(TokenKind::block_end);
  }

  void parse_for(Statement& statement) {
    statement.kind = StatementKind::for_loop;
    statement.names = targets();
    expect_word("in");
    statement.expression = tuple_or_expression(false);
    if (skip_word("if")) statement.condition = expression();
    if (is_word("recursive")) fail_here("a recursive loop is not supported");
    expect(TokenKind::block_end);
    ++loops_;
    statement.body = statements({"else", "endfor"});
    --loops_;
    if (take().text == "else") {
      expect(TokenKind::block_end);
      statement.otherwise = statements({"endfor"});
      ++next_;
    }
    expect(TokenKind::block_end);
  }

  void parse_set(Statement& statement) {
    statement.names = targets();
    if (skip_operation("=")) {
      statement.kind = StatementKind::set;
      statement.expression = tuple_or_expression();
      return expect(TokenKind::block_end);
    }
    if (statement.names.size() != 1) unexpected("\"=\"");
    if (is_operation("|")) fail_here("filters of {% set %} blocks are not supported");
    statement.kind = StatementKind::set_block;
    statement.body = body("endset");
  }

  void parse_macro(Statement& statement) {
    if (loops_ > 0 || in_macro_) fail_here("a macro in a loop or in another macro is not supported");
    statement.kind = StatementKind::macro;
    auto macro = std::make_shared<Macro>();
    macro->name = name();
    expect_operation("(");
    while (!skip_operation(")")) {
      Parameter parameter;
      parameter.name = name();
      if (skip_operation("=")) parameter.value = expression();
      macro->parameters.push_back(std::move(parameter));
      if (!is_operation(")")) expect_operation(",");
    }
    in_macro_ = true;
    macro->body = body("endmacro");
    in_macro_ = false;
    statement.macro = std::move(macro);
  }

  // "a", "a, b" or "a.b"
  std::vector<std::string> targets() {
    std::vector<std::string> names;
    const bool bracket = skip_operation("(");
    do {
      names.push_back(name());
      if (skip_operation(".")) names.back() += "." + name();
    } while (skip_operation(","));
    if (bracket) expect_operation(")");
    return names;
  }

  // Expressions, from what binds least.

  ExpressionPtr make(ExpressionKind kind, int line, std::string text = "") const {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->text = std::move(text);
    return node;
  }
  void add(Expression& node, ExpressionPtr argument) const {
    if (argument != nullptr) node.depth = std::max(node.depth, argument->depth + 1);
    if (node.depth > kMaxDepth) fail_here("an expression is nested more than " + std::to_string(kMaxDepth) + " deep");
    node.arguments.push_back(std::move(argument));
  }
  template <class... Arguments>
  ExpressionPtr make_with(ExpressionKind kind, int line, std::string text, Arguments... arguments) const {
    ExpressionPtr node = make(kind, line, std::move(text));
    (add(*node, std::move(arguments)), ...);
    return node;
  }

  bool ends_tuple() const {
    return peek().kind == TokenKind::block_end || peek().kind == TokenKind::output_end || is_operation(")");
  }
  // "a" or "a, b"; `with_condition`: "a if b else c" too, which a loop's "in" does not take
  ExpressionPtr tuple_or_expression(bool with_condition = true) {
    const int line = peek().line;
    ExpressionPtr first = with_condition ? expression() : disjunction();
    if (!is_operation(",")) return first;
    ExpressionPtr tuple = make_with(ExpressionKind::tuple, line, "", std::move(first));
    while (skip_operation(",") && !ends_tuple()) add(*tuple, with_condition ? expression() : disjunction());
    return tuple;
  }

  ExpressionPtr expression() {
    const Level level(*this);
    ExpressionPtr node = disjunction();
    while (is_word("if")) {
      const int line = take().line;
      ExpressionPtr condition = disjunction();
      ExpressionPtr otherwise = skip_word("else") ? expression() : nullptr;
      node =
          make_with(ExpressionKind::conditional, line, "", std::move(node), std::move(condition), std::move(otherwise));
    }
    return node;
  }

  ExpressionPtr disjunction() {
    ExpressionPtr node = conjunction();
    while (is_word("or")) {
      const int line = take().line;
      node = make_with(ExpressionKind::binary, line, "or", std::move(node), conjunction());
    }
    return node;
  }
  ExpressionPtr conjunction() {
    ExpressionPtr node = negation();
    while (is_word("and")) {
      const int line = take().line;
      node = make_with(ExpressionKind::binary, line, "and", std::move(node), negation());
    }
    return node;
  }
  ExpressionPtr negation() {
    if (!is_word("not")) return comparison();
    const Level level(*this);
    const int line = take().line;
    return make_with(ExpressionKind::unary, line, "not", negation());
  }

  std::string comparison_operator() {
    for (const char* text : {"==", "!=", "<", "<=", ">", ">="})
      if (skip_operation(text)) return text;
    if (skip_word("in")) return "in";
    if (is_word("not") && is(TokenKind::name, "in", 1)) {
      next_ += 2;
      return "not in";
    }
    return "";
  }
  ExpressionPtr comparison() {
    const int line = peek().line;
    ExpressionPtr node = sum();
    std::string operation = comparison_operator();
    if (operation.empty()) return node;
    node = make_with(ExpressionKind::comparison, line, "", std::move(node));
    for (; !operation.empty(); operation = comparison_operator()) {
      node->operators.push_back(operation);
      add(*node, sum());
    }
    return node;
  }

  // A row of operands of one level of precedence.
  template <class Next>
  ExpressionPtr row(std::initializer_list<const char*> operations, Next next) {
    ExpressionPtr node = next();
    for (;;) {
      const auto found = std::ranges::find_if(operations, [&](const char* text) { return is_operation(text); });
      if (found == operations.end()) return node;
      const int line = take().line;
      node = make_with(ExpressionKind::binary, line, *found, std::move(node), next());
    }
  }
  ExpressionPtr sum() {
    return row({"+", "-"}, [&] { return concatenation(); });
  }
  ExpressionPtr concatenation() {
    return row({"~"}, [&] { return product(); });
  }
  ExpressionPtr product() {
    return row({"*", "/", "//", "%"}, [&] { return power(); });
  }
  ExpressionPtr power() {
    return row({"**"}, [&] { return unary(true); });
  }

  ExpressionPtr unary(bool with_filters) {
    const Level level(*this);
    const int line = peek().line;
    ExpressionPtr node;
    if (skip_operation("-"))
      node = make_with(ExpressionKind::unary, line, "-", unary(false));
    else if (skip_operation("+"))
      node = make_with(ExpressionKind::unary, line, "+", unary(false));
    else
      node = primary();
    node = postfix(std::move(node));
    return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
  }

  ExpressionPtr primary() {
    const Token& token = take();
    switch (token.kind) {
      case TokenKind::name:
        return word(token);
      case TokenKind::text: {
        ExpressionPtr node = make(ExpressionKind::text, token.line, token.text);
        while (peek().kind == TokenKind::text) node->text += take().text;
        return node;
      }
      case TokenKind::integer: {
        ExpressionPtr node = make(ExpressionKind::integer, token.line);
        node->integer = token.integer;
        return node;
      }
      case TokenKind::real: {
        ExpressionPtr node = make(ExpressionKind::real, token.line);
        node->real = token.real;
        return node;
      }
      default:
        break;
    }
    if (token.kind == TokenKind::operation && token.text == "(") return in_parentheses(token.line);
    if (token.kind == TokenKind::operation && token.text == "[") return list(token.line);
    if (token.kind == TokenKind::operation && token.text == "{") return dict(token.line);
    --next_;
    unexpected("an expression");
  }

  ExpressionPtr word(const Token& token) const {
    const std::string& text = token.text;
    if (text == "true" || text == "True") return make(ExpressionKind::constant, token.line, "true");
    if (text == "false" || text == "False") return make(ExpressionKind::constant, token.line, "false");
    if (text == "none" || text == "None") return make(ExpressionKind::constant, token.line, "none");
    return make(ExpressionKind::name, token.line, text);
  }
  ExpressionPtr in_parentheses(int line) {
    if (skip_operation(")")) return make(ExpressionKind::tuple, line);
    ExpressionPtr node = tuple_or_expression();
    expect_operation(")");
    return node;
  }
  ExpressionPtr list(int line) {
    ExpressionPtr node = make(ExpressionKind::list, line);
    while (!skip_operation("]")) {
      add(*node, expression());
      if (!is_operation("]")) expect_operation(",");
    }
    return node;
  }
  ExpressionPtr dict(int line) {
    ExpressionPtr node = make(ExpressionKind::dict, line);
    while (!skip_operation("}")) {
      add(*node, expression());
      expect_operation(":");
      add(*node, expression());
      if (!is_operation("}")) expect_operation(",");
    }
    return node;
  }

  ExpressionPtr postfix(ExpressionPtr node) {
    for (;;) {
      const int line = peek().line;
      if (skip_operation(".")) {
        if (peek().kind != TokenKind::integer) {
          node = make_with(ExpressionKind::attribute, line, name(), std::move(node));
          continue;
        }
        ExpressionPtr index = primary();
        node = make_with(ExpressionKind::subscript, line, "", std::move(node), std::move(index));
      } else if (skip_operation("[")) {
        node = subscript(std::move(node), line);
      } else if (is_operation("(")) {
        ExpressionPtr call = make_with(ExpressionKind::call, line, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr node, int line) {
    std::vector<ExpressionPtr> parts(1);
    while (!is_operation("]")) {
      if (skip_operation(":"))
        parts.emplace_back();
      else if (parts.back() == nullptr)
        parts.back() = expression();
      else
        unexpected("\"]\"");
    }
    ++next_;
    if (parts.size() > 3) fail_here("a slice has more than three parts");
    if (parts.size() == 1 && parts[0] == nullptr) fail_here("[] needs an index");
    ExpressionPtr result =
        make_with(parts.size() == 1 ? ExpressionKind::subscript : ExpressionKind::slice, line, "", std::move(node));
    if (parts.size() > 1) parts.resize(3);
    for (ExpressionPtr& part : parts) add(*result, std::move(part));
    return result;
  }

  // "(a, b=c)", from its bracket on
  void arguments(Expression& call) {
    expect_operation("(");
    while (!skip_operation(")")) {
      if (peek().kind == TokenKind::name && is(TokenKind::operation, "=", 1)) {
        const std::string key = name();
        ++next_;
        ExpressionPtr value = expression();
        call.depth = std::max(call.depth, value->depth + 1);
        call.named.emplace_back(key, std::move(value));
      } else {
        if (!call.named.empty()) unexpected("a named argument");
        add(call, expression());
      }
      if (!is_operation(")")) expect_operation(",");
    }
  }

  ExpressionPtr filters_and_tests(ExpressionPtr node) {
    for (;;) {
      const int line = peek().line;
      if (skip_operation("|")) {
        const std::string filter = name();
        if (!known_.filters.contains(filter)) fail_at(where_, line, "filter " + quoted(filter) + " is not supported");
        node = make_with(ExpressionKind::filter, line, filter, std::move(node));
        if (is_operation("(")) arguments(*node);
      } else if (skip_word("is")) {
        node = test(std::move(node), line);
      } else if (is_operation("(")) {
        ExpressionPtr call = make_with(ExpressionKind::call, line, "", std::move(node));
        arguments(*call);
        node = std::move(call);
      } else {
        return node;
      }
    }
  }

  ExpressionPtr test(ExpressionPtr node, int line) {
    const bool negated = skip_word("not");
    const std::string test = is_word("in") ? take().text : name();
    if (!known_.tests.contains(test)) fail_at(where_, line, "test " + quoted(test) + " is not supported");
    node = make_with(ExpressionKind::test, line, test, std::move(node));
    if (is_operation("(")) {
      arguments(*node);
    } else if (begins_argument()) {
      add(*node, postfix(primary()));
    }
    return negated ? make_with(ExpressionKind::unary, line, "not", std::move(node)) : std::move(node);
  }
  bool begins_argument() const {
    const Token& token = peek();
    if (token.kind == TokenKind::name)
      return token.text != "else" && token.text != "or" && token.text != "and" && token.text != "is" &&
             token.text != "if" && token.text != "not" && token.text != "in";
    return token.kind == TokenKind::text || token.kind == TokenKind::integer || token.kind == TokenKind::real ||
           is_operation("[") || is_operation("{");
  }

  std::vector<Token> tokens_;
  const std::string& where_;
  const KnownNames& known_;
  size_t next_ = 0;
  int depth_ = 0, loops_ = 0;
  bool in_macro_ = false;
};

}  // namespace

Block parse(std::string_view source, const std::string& where, const KnownNames& known) {
  return Parser(tokenize(source, where), where, known).run();
}

}  // namespace attune::jinja

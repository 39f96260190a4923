#include "attune/text/jinja/expressions.h"

#include "attune/text/jinja/builtins.h"

namespace attune::jinja {
namespace {

class ExpressionParser {
 public:
  explicit ExpressionParser(TokenCursor& tokens) : tokens_(tokens) {}

  // "a" or "a, b"; `with_condition`: "a if b else c" too, which a loop's "in" does not take
  ExpressionPtr tuple_or_expression(bool with_condition = true) {
    const int line = tokens_.peek().line;
    ExpressionPtr first = with_condition ? expression() : disjunction();
    if (!tokens_.is_operation(",")) return first;
    ExpressionPtr tuple = make_with(ExpressionKind::tuple, line, "", std::move(first));
    while (tokens_.skip_operation(",") && !ends_tuple()) add(*tuple, with_condition ? expression() : disjunction());
    return tuple;
  }

  ExpressionPtr expression() {
    const TokenCursor::Level level(tokens_);
    ExpressionPtr node = disjunction();
    while (tokens_.is_word("if")) {
      const int line = tokens_.take().line;
      ExpressionPtr condition = disjunction();
      ExpressionPtr otherwise = tokens_.skip_word("else") ? expression() : nullptr;
      node =
          make_with(ExpressionKind::conditional, line, "", std::move(node), std::move(condition), std::move(otherwise));
    }
    return node;
  }

 private:
  ExpressionPtr make(ExpressionKind kind, int line, std::string text = "") const {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    node->text = std::move(text);
    return node;
  }
  void add(Expression& node, ExpressionPtr argument) const {
    if (argument != nullptr) node.depth = std::max(node.depth, argument->depth + 1);
    if (node.depth > kMaxDepth)
      tokens_.fail_here("an expression is nested more than " + std::to_string(kMaxDepth) + " deep");
    node.arguments.push_back(std::move(argument));
  }
  template <class... Arguments>
  ExpressionPtr make_with(ExpressionKind kind, int line, std::string text, Arguments... arguments) const {
    ExpressionPtr node = make(kind, line, std::move(text));
    (add(*node, std::move(arguments)), ...);
    return node;
  }

  bool ends_tuple() const {
    return tokens_.peek().kind == TokenKind::block_end || tokens_.peek().kind == TokenKind::output_end ||
           tokens_.is_operation(")");
  }
  ExpressionPtr disjunction() {
    ExpressionPtr node = conjunction();
    while (tokens_.is_word("or")) {
      const int line = tokens_.take().line;
      node = make_with(ExpressionKind::binary, line, "or", std::move(node), conjunction());
    }
    return node;
  }
  ExpressionPtr conjunction() {
    ExpressionPtr node = negation();
    while (tokens_.is_word("and")) {
      const int line = tokens_.take().line;
      node = make_with(ExpressionKind::binary, line, "and", std::move(node), negation());
    }
    return node;
  }
  ExpressionPtr negation() {
    if (!tokens_.is_word("not")) return comparison();
    const TokenCursor::Level level(tokens_);
    const int line = tokens_.take().line;
    return make_with(ExpressionKind::unary, line, "not", negation());
  }

  std::string comparison_operator() {
    for (const char* text : {"==", "!=", "<", "<=", ">", ">="})
      if (tokens_.skip_operation(text)) return text;
    if (tokens_.skip_word("in")) return "in";
    if (tokens_.is_word("not") && tokens_.is(TokenKind::name, "in", 1)) {
      tokens_.take();
      tokens_.take();
      return "not in";
    }
    return "";
  }
  ExpressionPtr comparison() {
    const int line = tokens_.peek().line;
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
      const auto found = std::ranges::find_if(operations, [&](const char* text) { return tokens_.is_operation(text); });
      if (found == operations.end()) return node;
      const int line = tokens_.take().line;
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
    const TokenCursor::Level level(tokens_);
    const int line = tokens_.peek().line;
    ExpressionPtr node;
    if (tokens_.skip_operation("-"))
      node = make_with(ExpressionKind::unary, line, "-", unary(false));
    else if (tokens_.skip_operation("+"))
      node = make_with(ExpressionKind::unary, line, "+", unary(false));
    else
      node = primary();
    node = postfix(std::move(node));
    return with_filters ? filters_and_tests(std::move(node)) : std::move(node);
  }

  ExpressionPtr primary() {
    const Token& token = tokens_.peek();
    const bool is_bracket =
        token.kind == TokenKind::operation && (token.text == "(" || token.text == "[" || token.text == "{");
    const bool is_value = token.kind == TokenKind::name || token.kind == TokenKind::text ||
                          token.kind == TokenKind::integer || token.kind == TokenKind::real;
    if (!is_bracket && !is_value) tokens_.unexpected("an expression");
    tokens_.take();
    switch (token.kind) {
      case TokenKind::name:
        return word(token);
      case TokenKind::text: {
        ExpressionPtr node = make(ExpressionKind::text, token.line, token.text);
        while (tokens_.peek().kind == TokenKind::text) node->text += tokens_.take().text;
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
    if (token.text == "(") return in_parentheses(token.line);
    return token.text == "[" ? list(token.line) : dict(token.line);
  }

  ExpressionPtr word(const Token& token) const {
    const std::string& text = token.text;
    if (text == "true" || text == "True") return make(ExpressionKind::constant, token.line, "true");
    if (text == "false" || text == "False") return make(ExpressionKind::constant, token.line, "false");
    if (text == "none" || text == "None") return make(ExpressionKind::constant, token.line, "none");
    return make(ExpressionKind::name, token.line, text);
  }
  ExpressionPtr in_parentheses(int line) {
    if (tokens_.skip_operation(")")) return make(ExpressionKind::tuple, line);
    ExpressionPtr node = tuple_or_expression();
    tokens_.expect_operation(")");
    return node;
  }
  ExpressionPtr list(int line) {
    ExpressionPtr node = make(ExpressionKind::list, line);
    while (!tokens_.skip_operation("]")) {
      add(*node, expression());
      if (!tokens_.is_operation("]")) tokens_.expect_operation(",");
    }
    return node;
  }
  ExpressionPtr dict(int line) {
    ExpressionPtr node = make(ExpressionKind::dict, line);
    while (!tokens_.skip_operation("}")) {
      add(*node, expression());
      tokens_.expect_operation(":");
      add(*node, expression());
      if (!tokens_.is_operation("}")) tokens_.expect_operation(",");
    }
    return node;
  }

  ExpressionPtr postfix(ExpressionPtr node) {
    for (;;) {
      const int line = tokens_.peek().line;
      if (tokens_.skip_operation(".")) {
        if (tokens_.peek().kind != TokenKind::integer) {
          node = make_with(ExpressionKind::attribute, line, tokens_.name(), std::move(node));
          continue;
        }
        ExpressionPtr index = primary();
        node = make_with(ExpressionKind::subscript, line, "", std::move(node), std::move(index));
      } else if (tokens_.skip_operation("[")) {
        node = subscript(std::move(node), line);
      } else if (tokens_.is_operation("(")) {
        node = call_of(std::move(node));
      } else {
        return node;
      }
    }
  }

  ExpressionPtr subscript(ExpressionPtr node, int line) {
    std::vector<ExpressionPtr> parts(1);
    while (!tokens_.is_operation("]")) {
      if (tokens_.skip_operation(":"))
        parts.emplace_back();
      else if (parts.back() == nullptr)
        parts.back() = expression();
      else
        tokens_.unexpected("\"]\"");
    }
    tokens_.take();
    if (parts.size() > 3) tokens_.fail_here("a slice has more than three parts");
    if (parts.size() == 1 && parts[0] == nullptr) tokens_.fail_here("[] needs an index");
    ExpressionPtr result =
        make_with(parts.size() == 1 ? ExpressionKind::subscript : ExpressionKind::slice, line, "", std::move(node));
    if (parts.size() > 1) parts.resize(3);
    for (ExpressionPtr& part : parts) add(*result, std::move(part));
    return result;
  }

  ExpressionPtr call_of(ExpressionPtr function) {
    ExpressionPtr call = make_with(ExpressionKind::call, tokens_.peek().line, "", std::move(function));
    arguments(*call);
    return call;
  }

  // "(a, b=c)", from its bracket on
  void arguments(Expression& call) {
    tokens_.expect_operation("(");
    while (!tokens_.skip_operation(")")) {
      if (tokens_.peek().kind == TokenKind::name && tokens_.is(TokenKind::operation, "=", 1)) {
        const std::string key = tokens_.name();
        tokens_.take();
        ExpressionPtr value = expression();
        call.depth = std::max(call.depth, value->depth + 1);
        call.named.emplace_back(key, std::move(value));
      } else {
        if (!call.named.empty()) tokens_.unexpected("a named argument");
        add(call, expression());
      }
      if (!tokens_.is_operation(")")) tokens_.expect_operation(",");
    }
  }

  ExpressionPtr filters_and_tests(ExpressionPtr node) {
    for (;;) {
      const int line = tokens_.peek().line;
      if (tokens_.skip_operation("|")) {
        const std::string filter = tokens_.name();
        if (!has_filter(filter)) tokens_.fail_at_line(line, "filter " + quoted(filter) + " is not supported");
        node = make_with(ExpressionKind::filter, line, filter, std::move(node));
        if (tokens_.is_operation("(")) arguments(*node);
      } else if (tokens_.skip_word("is")) {
        node = test(std::move(node), line);
      } else if (tokens_.is_operation("(")) {
        node = call_of(std::move(node));
      } else {
        return node;
      }
    }
  }

  ExpressionPtr test(ExpressionPtr node, int line) {
    const bool negated = tokens_.skip_word("not");
    const std::string test = tokens_.is_word("in") ? tokens_.take().text : tokens_.name();
    if (!has_test(test)) tokens_.fail_at_line(line, "test " + quoted(test) + " is not supported");
    node = make_with(ExpressionKind::test, line, test, std::move(node));
    if (tokens_.is_operation("(")) {
      arguments(*node);
    } else if (begins_argument()) {
      add(*node, postfix(primary()));
    }
    return negated ? make_with(ExpressionKind::unary, line, "not", std::move(node)) : std::move(node);
  }
  bool begins_argument() const {
    const Token& token = tokens_.peek();
    if (token.kind == TokenKind::name)
      return token.text != "else" && token.text != "or" && token.text != "and" && token.text != "is" &&
             token.text != "if" && token.text != "not" && token.text != "in";
    return token.kind == TokenKind::text || token.kind == TokenKind::integer || token.kind == TokenKind::real ||
           tokens_.is_operation("[") || tokens_.is_operation("{");
  }

  TokenCursor& tokens_;
};

}  // namespace

ExpressionPtr parse_expression(TokenCursor& tokens) {
  return ExpressionParser(tokens).expression();
}

ExpressionPtr parse_tuple(TokenCursor& tokens, bool with_condition) {
  return ExpressionParser(tokens).tuple_or_expression(with_condition);
}

}  // namespace attune::jinja

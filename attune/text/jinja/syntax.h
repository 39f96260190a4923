#pragma once
// The syntax tree of a template. Source: Jinja 3.1, "Template Designer Documentation".

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace attune::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<Statement>;

enum class ExpressionKind {
  text,         // text
  integer,      // integer
  real,         // real
  constant,     // text: "true", "false" or "none"
  name,         // text
  list,         // arguments
  tuple,        // arguments
  dict,         // arguments: key, value, key, value, ...
  attribute,    // arguments[0] . text
  subscript,    // arguments[0] [ arguments[1] ]
  slice,        // arguments[0] [ arguments[1] : arguments[2] : arguments[3] ]; those that are missing are null
  call,         // arguments[0] ( the other arguments, named )
  filter,       // arguments[0] | text ( the other arguments, named )
  test,         // arguments[0] is text ( the other arguments )
  unary,        // text: "-", "+", "not"
  binary,       // text: "+", "-", "*", "/", "//", "%", "**", "~", "and", "or"
  comparison,   // arguments[0] operators[0] arguments[1] operators[1] arguments[2] ...
  conditional,  // arguments[0] if arguments[1] else arguments[2], which may be null
};

struct Expression {
  ExpressionKind kind = ExpressionKind::text;
  int line = 0;
  int depth = 1;  // of the tree
  std::string text;
  int64_t integer = 0;
  double real = 0;
  std::vector<ExpressionPtr> arguments;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<std::string> operators;
};

struct Parameter {
  std::string name;
  ExpressionPtr value;  // the default, may be null
};

struct Macro {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
};

enum class StatementKind {
  text,           // text
  output,         // expression
  if_chain,       // branches; the last one may have no condition
  for_loop,       // names in expression [if condition]: body, else: otherwise
  set,            // names = expression; "name.attribute" sets an attribute of a namespace
  set_block,      // names[0] = what body writes
  macro,          // macro
  scope,          // body
  break_loop,     //
  continue_loop,  //
};

struct Statement {
  struct Branch {
    ExpressionPtr condition;
    Block body;
  };
  StatementKind kind = StatementKind::text;
  int line = 0;
  std::string text;
  ExpressionPtr expression, condition;
  std::vector<std::string> names;
  std::vector<Branch> branches;
  Block body, otherwise;
  std::shared_ptr<const Macro> macro;
};

}  // namespace attune::jinja

#include "attune/text/jinja/interpreter.h"

#include <algorithm>
#include <array>
#include <memory>

#include "attune/base/fail.h"
#include "attune/text/jinja/operators.h"

namespace attune::jinja {
namespace {

constexpr size_t kMostOutputBytes = size_t{16} << 20;
constexpr int kDeepest = 1000;  // expressions, blocks and calls in each other

constexpr std::array<std::string_view, 5> kFunctions = {"range", "dict", "namespace", "raise_exception",
                                                        "strftime_now"};

/// The names of a block. A name that it does not have is looked up in the block around it.
struct Scope {
  std::map<std::string, Value, std::less<>> names;
  const Scope* outer = nullptr;
  const Value* find(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer)
      if (const auto found = scope->names.find(name); found != scope->names.end()) return &found->second;
    return nullptr;
  }
};

/// What is done after a statement.
enum class Flow { next, break_loop, continue_loop };

class Interpreter {
 public:
  explicit Interpreter(int64_t now) : now_(now) {
    for (const std::string_view name : kFunctions) functions_.names.emplace(name, Value(Function{name}));
    top_.outer = &functions_;
  }

  std::string run(const Block& block, std::map<std::string, Value> variables) {
    for (auto& [name, value] : variables) top_.names.insert_or_assign(name, std::move(value));
    std::string output;
    execute(block, top_, output);
    return output;
  }
  int line() const { return line_; }  // that was reached last

 private:
  class Level {
   public:
    explicit Level(Interpreter& interpreter) : depth_(interpreter.depth_) {
      if (++depth_ > kDeepest) {
        --depth_;
        fail<DataError>("the template is nested more than {} levels deep", kDeepest);
      }
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  // Statements.

  void write(std::string& output, std::string_view text) {
    meter_.charge(text.size());
    if (output.size() + text.size() > kMostOutputBytes)
      fail<DataError>("the template writes more than {} bytes", kMostOutputBytes);
    output += text;
  }

  Flow execute(const Block& block, Scope& scope, std::string& output) {
    const Level level(*this);
    for (const Statement& statement : block)
      if (const Flow flow = execute(statement, scope, output); flow != Flow::next) return flow;
    return Flow::next;
  }

  Flow execute(const Statement& statement, Scope& scope, std::string& output) {
    line_ = statement.line;
    meter_.charge(int64_t{1});
    switch (statement.kind) {
      case StatementKind::text:
        write(output, statement.text);
        return Flow::next;
      case StatementKind::output:
        write(output, written(evaluate(*statement.expression, scope), meter_));
        return Flow::next;
      case StatementKind::if_chain:
        for (const Statement::Branch& branch : statement.branches)
          if (branch.condition == nullptr || evaluate(*branch.condition, scope).truth())
            return execute(branch.body, scope, output);
        return Flow::next;
      case StatementKind::for_loop:
        return loop(statement, scope, output);
      case StatementKind::set:
        assign(statement.names, evaluate(*statement.expression, scope), scope);
        return Flow::next;
      case StatementKind::set_block: {
        Scope inner{{}, &scope};
        std::string text;
        if (const Flow flow = execute(statement.body, inner, text); flow != Flow::next) return flow;
        assign(statement.names, Value(std::move(text)), scope);
        return Flow::next;
      }
      case StatementKind::macro:
        scope.names.insert_or_assign(statement.macro->name, Value(statement.macro.get()));
        return Flow::next;
      case StatementKind::scope: {
        Scope inner{{}, &scope};
        return execute(statement.body, inner, output);
      }
      case StatementKind::break_loop:
        return Flow::break_loop;
      case StatementKind::continue_loop:
        return Flow::continue_loop;
    }
    return Flow::next;
  }

  Flow loop(const Statement& statement, Scope& scope, std::string& output) {
    std::vector<Value> items = items_of(evaluate(*statement.expression, scope), meter_);
    if (statement.condition != nullptr) {
      std::vector<Value> kept;
      for (Value& item : items) {
        Scope inner{{}, &scope};
        assign(statement.names, item, inner);
        if (evaluate(*statement.condition, inner).truth()) kept.push_back(std::move(item));
      }
      items = std::move(kept);
    }
    const Value whole = Value::list(std::move(items));
    const auto list = *whole.get<std::shared_ptr<const List>>();
    if (list->items.empty()) {
      Scope inner{{}, &scope};
      return execute(statement.otherwise, inner, output);
    }
    for (size_t i = 0; i < list->items.size(); ++i) {
      meter_.charge(int64_t{8});
      Scope inner{{}, &scope};
      inner.names.emplace("loop", Value(std::make_shared<const Loop>(Loop{list, i})));
      assign(statement.names, list->items[i], inner);
      if (execute(statement.body, inner, output) == Flow::break_loop) break;
    }
    return Flow::next;
  }

  void assign(const std::vector<std::string>& names, const Value& value, Scope& scope) {
    if (names.size() == 1) return assign(names[0], value, scope);
    const std::vector<Value> parts = items_of(value, meter_);
    if (parts.size() != names.size()) fail<DataError>("{} names cannot have {} values", names.size(), parts.size());
    for (size_t i = 0; i < names.size(); ++i) assign(names[i], parts[i], scope);
  }
  void assign(const std::string& name, const Value& value, Scope& scope) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      scope.names.insert_or_assign(name, value);
      return;
    }
    const Value* target = scope.find(std::string_view(name).substr(0, dot));
    if (target == nullptr || !target->is<Namespace*>())
      fail<DataError>("{} cannot be set: only a namespace has attributes that can be", name);
    (*target->get<Namespace*>())->attributes.insert_or_assign(name.substr(dot + 1), value);
  }

  // Expressions.

  Value evaluate(const Expression& e, const Scope& scope) {
    const Level level(*this);
    meter_.charge(int64_t{1});
    line_ = e.line;
    const auto argument = [&](size_t i) { return evaluate(*e.arguments[i], scope); };
    switch (e.kind) {
      case ExpressionKind::text:
        meter_.charge(e.text.size());
        return Value(e.text);
      case ExpressionKind::integer:
        return Value(e.integer);
      case ExpressionKind::real:
        return Value(e.real);
      case ExpressionKind::constant:
        return e.text == "none" ? Value() : Value(e.text == "true");
      case ExpressionKind::name: {
        const Value* found = scope.find(e.text);
        if (found == nullptr) meter_.charge(e.text.size());
        return found != nullptr ? *found : Value(Undefined{e.text});
      }
      case ExpressionKind::list:
      case ExpressionKind::tuple:
        return Value::list(all(e, 0, scope), e.kind == ExpressionKind::tuple);
      case ExpressionKind::dict:
        return dict(e, scope);
      case ExpressionKind::attribute: {
        const Value object = argument(0);
        meter_.charge(e.text.size());
        if (const Dict* dict = object.dict()) meter_.charge(dict->entries.size());
        return attribute(object, e.text);
      }
      case ExpressionKind::subscript: {
        const Value object = argument(0);
        return subscript(object, argument(1), meter_);
      }
      case ExpressionKind::slice: {
        const Value object = argument(0);
        const auto bound = [&](size_t i) { return e.arguments[i] != nullptr ? argument(i) : Value(); };
        const Value begin = bound(1), end = bound(2), step = bound(3);
        line_ = e.line;
        return slice(object, {begin, end, step}, meter_);
      }
      case ExpressionKind::call:
        return call(e, scope);
      case ExpressionKind::filter: {
        const Value value = argument(0);
        return apply_filter(e.text, value, arguments(e, scope), meter_);
      }
      case ExpressionKind::test: {
        const Value value = argument(0);
        return Value(apply_test(e.text, value, arguments(e, scope), meter_));
      }
      case ExpressionKind::unary:
        return unary(e.text, argument(0));
      case ExpressionKind::binary:
        return binary(e, scope);
      case ExpressionKind::comparison:
        return comparison(e, scope);
      case ExpressionKind::conditional:
        if (argument(1).truth()) return argument(0);
        return e.arguments[2] != nullptr ? argument(2) : Value(Undefined{"the else of an if"});
    }
    return Value();
  }

  std::vector<Value> all(const Expression& e, size_t first, const Scope& scope) {
    meter_.charge_items(e.arguments.size());
    std::vector<Value> values;
    for (size_t i = first; i < e.arguments.size(); ++i) values.push_back(evaluate(*e.arguments[i], scope));
    return values;
  }
  Arguments arguments(const Expression& e, const Scope& scope) {
    Arguments result;
    result.positional = all(e, 1, scope);
    for (const auto& [name, value] : e.named) result.named.emplace_back(name, evaluate(*value, scope));
    return result;
  }

  Value dict(const Expression& e, const Scope& scope) {
    std::map<std::string, size_t> places;
    std::vector<std::pair<std::string, Value>> entries;
    meter_.charge_items(2 * e.arguments.size());
    for (size_t i = 0; i < e.arguments.size(); i += 2) {
      const Value key = evaluate(*e.arguments[i], scope);
      if (key.text() == nullptr) fail<DataError>("a dict's key is of type {}, needs a text", key.type_name());
      const auto [place, is_new] = places.emplace(*key.text(), entries.size());
      if (is_new) entries.emplace_back(*key.text(), Value());
      entries[place->second].second = evaluate(*e.arguments[i + 1], scope);
    }
    return Value::dict(std::move(entries));
  }

  // Calls.

  Value call(const Expression& e, const Scope& scope) {
    const Expression& callee = *e.arguments[0];
    Value function;
    if (callee.kind == ExpressionKind::attribute) {
      const Value object = evaluate(*callee.arguments[0], scope);
      const Arguments given = arguments(e, scope);
      line_ = e.line;
      if (std::optional<Value> result = call_method(object, callee.text, given, meter_)) return *result;
      if (object.is<std::shared_ptr<const Loop>>() && callee.text == "cycle") return cycle(object, given);
      function = attribute(object, callee.text);
      if (function.is<Undefined>())
        fail<DataError>("a value of type {} has no method {} here", object.type_name(), callee.text);
      return call_value(function, given);
    }
    function = evaluate(callee, scope);
    if (const auto* undefined = function.get<Undefined>()) fail<DataError>("{} is not defined", undefined->name);
    return call_value(function, arguments(e, scope));
  }

  Value call_value(const Value& function, const Arguments& given) {
    if (const auto* macro = function.get<const Macro*>()) return call_macro(**macro, given);
    if (const auto* method = function.get<std::shared_ptr<const Method>>()) return call_bound(**method, given);
    const auto* known = function.get<Function>();
    if (known == nullptr) fail<DataError>("a value of type {} cannot be called", function.type_name());
    if (known->name == "raise_exception") {
      given.check("raise_exception", 1, {"message"});
      fail<DataError>("the template refuses this: {}", given.text(0, "message", ""));
    }
    if (known->name == "range") return range(given, meter_);
    if (known->name == "strftime_now") return time_text(given, now_);
    if (!given.positional.empty()) fail<DataError>("{}: takes named arguments alone", known->name);
    if (known->name == "dict") return Value::dict(given.named);
    namespaces_.push_back(std::make_unique<Namespace>());
    meter_.charge(int64_t{256});
    for (const auto& [name, value] : given.named) namespaces_.back()->attributes.emplace(name, value);
    return Value(namespaces_.back().get());
  }

  Value call_bound(const Method& method, const Arguments& given) {
    if (std::optional<Value> result = call_method(Value(method.dict), method.name, given, meter_)) return *result;
    fail<DataError>("a value of type dict has no method {} here", method.name);
  }

  static Value cycle(const Value& loop, const Arguments& given) {
    if (given.positional.empty()) fail<DataError>("loop.cycle: needs arguments");
    const Loop& place = **loop.get<std::shared_ptr<const Loop>>();
    return given.positional[place.index % given.positional.size()];
  }

  Value call_macro(const Macro& macro, const Arguments& given) {
    const Level level(*this);
    meter_.charge_items(macro.parameters.size());
    meter_.charge(given.named.size() * macro.parameters.size());
    if (given.positional.size() > macro.parameters.size())
      fail<DataError>("macro {} takes {} arguments, found {}", macro.name, macro.parameters.size(),
                      given.positional.size());
    for (const auto& [name, value] : given.named)
      if (std::ranges::find(macro.parameters, name, &Parameter::name) == macro.parameters.end())
        fail<DataError>("macro {} has no argument {}", macro.name, name);
    Scope inner{{}, &top_};
    for (size_t i = 0; i < macro.parameters.size(); ++i) {
      const Parameter& parameter = macro.parameters[i];
      const Value* value = given.find(i, parameter.name);
      Value otherwise(Undefined{parameter.name});
      if (value == nullptr && parameter.value != nullptr) otherwise = evaluate(*parameter.value, inner);
      inner.names.insert_or_assign(parameter.name, value != nullptr ? *value : otherwise);
    }
    std::string text;
    execute(macro.body, inner, text);
    return Value(std::move(text));
  }

  Value binary(const Expression& e, const Scope& scope) {
    const std::string& operation = e.text;
    const Value a = evaluate(*e.arguments[0], scope);
    if (operation == "and" && !a.truth()) return a;
    if (operation == "or" && a.truth()) return a;
    const Value b = evaluate(*e.arguments[1], scope);
    line_ = e.line;
    return operation == "and" || operation == "or" ? b : jinja::binary(operation, a, b, meter_);
  }

  Value comparison(const Expression& e, const Scope& scope) {
    Value left = evaluate(*e.arguments[0], scope);
    for (size_t i = 0; i < e.operators.size(); ++i) {
      Value right = evaluate(*e.arguments[i + 1], scope);
      line_ = e.line;
      if (!compare(e.operators[i], left, right, meter_)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }
  int64_t now_;
  Meter meter_;
  Scope functions_, top_;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
  int depth_ = 0, line_ = 0;
};

}  // namespace

std::string render(const Block& block, const std::string& where, std::map<std::string, Value> variables, int64_t now) {
  Interpreter interpreter(now);
  try {
    return interpreter.run(block, std::move(variables));
  } catch (const DataError& error) {
    std::string message = error.what();  // a template's own message may have several lines
    std::ranges::replace_if(
        message, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    fail<DataError>("{}:{}: {}", where, interpreter.line(), message);
  }
}

}  // namespace attune::jinja

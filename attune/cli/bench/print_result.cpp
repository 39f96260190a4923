#include "attune/cli/bench/print_result.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

namespace attune::cli {
namespace {

std::string text_of_value(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_number_float()) return show(value);
  const auto number = value.get<double>();
  return std::abs(number) >= 1000 ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}

}  // namespace

void print_result(const Json& result, bool as_json) {
  if (as_json) {
    std::cout << show(result) << "\n";
    return;
  }
  for (const auto& [name, value] : result.items()) std::cout << fmt::format("{:<30}{}\n", name, text_of_value(value));
}

}  // namespace attune::cli

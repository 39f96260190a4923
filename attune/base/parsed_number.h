#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attune {

/// The number that a whole text is, "-12"; the nearest one where it is too large for the type. Nothing for other text.
inline std::optional<int64_t> parsed_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return text.starts_with('-') ? INT64_MIN : INT64_MAX;
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

}  // namespace attune

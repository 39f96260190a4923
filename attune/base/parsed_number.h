#pragma once

#include <charconv>
#include <cmath>
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

/// The finite number that a whole text is, "-12", "3.8" or "1e-3", as float32. Nothing for other text, for names of
/// what is no number ("nan", "inf") and for what is too large.
inline std::optional<float> parsed_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto narrow = static_cast<float>(value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(narrow) ? std::optional(narrow) : std::nullopt;
}

}  // namespace attune

#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace attune {

/// Parses a whole number, "-12". Returns INT64_MAX or INT64_MIN for a number beyond them, and nothing unless the whole
/// text is a number.
inline std::optional<int64_t> parsed_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return text.starts_with('-') ? INT64_MIN : INT64_MAX;
  return error == std::errc{} ? std::optional(value) : std::nullopt;
}

/// Parses a finite number, "-12", "3.8" or "1e-3", as float32. Returns nothing unless the whole text is a number, for
/// "nan" and "inf", and for a number that is too large.
inline std::optional<float> parsed_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto narrow = static_cast<float>(value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole && std::isfinite(narrow) ? std::optional(narrow) : std::nullopt;
}

}  // namespace attune

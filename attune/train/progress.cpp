#include "attune/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>

namespace attune {
namespace {

constexpr int shortest_bar = 5, longest_bar = 40;  // columns between the two ends
constexpr std::string_view gap = "  ";

int width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// The first `columns` code points.
std::string_view clip(std::string_view text, int columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if ((text[at] & 0xC0) != 0x80 && columns-- <= 0) break;
  return text.substr(0, at);
}

std::string join(const std::vector<std::string>& parts) {
  std::string line;
  for (const auto& part : parts) {
    if (part.empty()) continue;
    if (!line.empty()) line += gap;
    line += part;
  }
  return line;
}

bool has_end(const ProgressState& state) {
  return state.total > 0 || state.time_limit > 0;
}

/// Of the way to the end that is nearer.
double fraction(const ProgressState& state) {
  double most = 0;
  if (state.total > 0) most = static_cast<double>(state.done) / static_cast<double>(state.total);
  if (state.time_limit > 0) most = std::max(most, (state.earlier_seconds + state.seconds) / state.time_limit);
  return std::clamp(most, 0.0, 1.0);
}

/// Until the end that is nearer; infinite where nothing tells it.
double seconds_left(const ProgressState& state) {
  double left = std::numeric_limits<double>::infinity();
  if (state.time_limit > 0) left = state.time_limit - state.earlier_seconds - state.seconds;
  const double done = static_cast<double>(state.done) - static_cast<double>(state.start);
  if (state.total <= 0 || done <= 0) return left;
  const double to_do = static_cast<double>(state.total) - static_cast<double>(state.done);
  return std::min(left, state.seconds / done * to_do);
}

/// In eighths of a column, rounded down so that the bar is full only at the end.
std::string bar(double fraction_done, int columns) {
  constexpr std::array<std::string_view, 8> eighth = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int eighths = static_cast<int>(fraction_done * columns * 8);
  std::string text = "|";
  for (int i = 0; i < eighths / 8; ++i) text += "█";
  text += eighth[static_cast<std::size_t>(eighths % 8)];
  text.append(static_cast<std::size_t>(columns - (eighths + 7) / 8), ' ');
  return text += "|";
}

std::string time_text(const ProgressState& state) {
  if (!has_end(state) || fraction(state) >= 1) return format_duration(state.seconds);
  const double left = seconds_left(state);
  return std::isinf(left) ? "" : format_duration(left) + " left";
}

/// The number of what is counted: "step 430", "430".
std::string count_text(const ProgressState& state) {
  return state.name.empty() ? std::to_string(state.done) : fmt::format("{} {}", state.name, state.done);
}

/// `head`, fields, rate and time; an entry may be empty.
std::vector<std::string> parts_of(const ProgressState& state, std::string head) {
  std::vector<std::string> parts = {std::move(head)};
  for (const auto& [name, value] : state.fields) parts.push_back(fmt::format("{} {}", name, value));
  parts.push_back(state.rate > 0 ? fmt::format("{} {}/s", format_count(state.rate), state.unit) : "");
  parts.push_back(time_text(state));
  return parts;
}

}  // namespace

std::string format_progress(const ProgressState& state, int columns) {
  std::vector<std::string> parts =
      parts_of(state, has_end(state) ? fmt::format("{}%", static_cast<int>(fraction(state) * 100)) : count_text(state));
  if (has_end(state) && !state.name.empty()) parts.insert(parts.begin() + 1, count_text(state));
  // Fields are at 1 .. size - 3; behind them rate and time.
  for (std::size_t field = parts.size() - 3; field >= 1 && width(join(parts)) > columns; --field) parts[field].clear();
  for (const std::size_t last_resort : {parts.size() - 2, parts.size() - 1})
    if (width(join(parts)) > columns) parts[last_resort].clear();
  const std::string text = join(parts);
  if (!has_end(state)) return std::string(clip(text, columns));
  const std::string padding(std::string_view("100%").size() - parts[0].size(), ' ');  // for a bar of steady length
  const int room = columns - width(padding) - width(text) - 3;                        // its two ends and a space
  if (room < shortest_bar) return std::string(clip(text, columns));
  return fmt::format("{} {}{}", bar(fraction(state), std::min(room, longest_bar)), padding, text);
}

std::string format_progress_line(const ProgressState& state) {
  const char* between = state.name.empty() ? "/" : " of ";
  const std::string head = count_text(state) + (state.total > 0 ? between + std::to_string(state.total) : "");
  return join(parts_of(state, head));
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0 && seconds < 1e12)) return "-:--";
  const auto whole = static_cast<int64_t>(seconds);
  const int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60, rest = whole % 60;
  if (days > 0) return fmt::format("{}d {}:{:02}:{:02}", days, hours, minutes, rest);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
  return fmt::format("{}:{:02}", minutes, rest);
}

std::string format_count(double count) {
  if (std::abs(count) < 1000 && count == std::trunc(count)) return fmt::format("{:.0f}", count);
  if (std::abs(count) < 999.5 || !std::isfinite(count)) return fmt::format("{:.3g}", count);
  double scaled = count;
  std::size_t unit = 0;
  constexpr std::string_view units = "kMGT";
  for (scaled /= 1000; std::abs(scaled) >= 999.5 && unit + 1 < units.size(); ++unit) scaled /= 1000;
  const double size = std::abs(scaled);
  const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return fmt::format("{:.{}f}{}", scaled, decimals, units[unit]);
}

}  // namespace attune

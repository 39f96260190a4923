#include "attune/inference/stop_strings.h"

#include <algorithm>
#include <utility>

#include "attune/base/fail.h"

namespace attune {

StopStrings::StopStrings(std::vector<std::string> strings, bool keep) : strings_(std::move(strings)), keep_(keep) {
  constexpr size_t kLongest = 4096;
  for (const std::string& s : strings_) {
    if (s.empty() || s.size() > kLongest)
      fail<ConfigError>("stop: a stop string has {} bytes, needs 1 to {}", s.size(), kLongest);
  }
}

std::string StopStrings::push(std::string_view piece) {
  if (found_) return "";
  pending_ += piece;
  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& s : strings_) {
    const size_t at = pending_.find(s);
    if (at == std::string::npos) continue;
    if (at + s.size() > end || (at + s.size() == end && at > begin)) continue;
    begin = at;
    end = at + s.size();
  }
  found_ = begin != std::string::npos;
  size_t ready = pending_.size();
  if (found_ && !keep_) ready = begin;
  if (!found_) ready -= held_back();
  std::string text = pending_.substr(0, ready);
  pending_.erase(0, found_ ? pending_.size() : ready);
  return text;
}

std::string StopStrings::finish() {
  return std::exchange(pending_, "");
}

// The longest end of the text that a stop string begins with.
size_t StopStrings::held_back() const {
  size_t longest = 0;
  for (const std::string& s : strings_) {
    for (size_t n = std::min(s.size() - 1, pending_.size()); n > longest; --n) {
      if (pending_.ends_with(std::string_view(s).substr(0, n))) longest = n;
    }
  }
  return longest;
}

}  // namespace attune

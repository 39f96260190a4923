#pragma once
// Text up to the first of several strings, while it arrives in pieces.

#include <string>
#include <string_view>
#include <vector>

namespace attune {

/// Finds the stop string that is complete first; of several that end at the same byte, the longest. How the text is cut
/// into pieces makes no difference.
class StopStrings {
 public:
  /// `keep`: the stop string is text too, with the rest of its piece. Throws ConfigError when one is empty or longer
  /// than 4096 bytes.
  explicit StopStrings(std::vector<std::string> strings, bool keep = false);

  /// Adds a piece and returns the text that is certain to be before any stop string. Text that could still become one
  /// is held back. After a stop string everything is dropped, from its begin on unless it is kept.
  std::string push(std::string_view piece);
  /// Returns the text that was held back; call it at the end of the text.
  std::string finish();

  bool found() const { return found_; }
  bool keeps() const { return keep_; }

 private:
  size_t held_back() const;

  std::vector<std::string> strings_;
  bool keep_;
  std::string pending_;
  bool found_ = false;
};

}  // namespace attune

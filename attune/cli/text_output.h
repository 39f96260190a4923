#pragma once
// Where a command's result goes.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "attune/base/file.h"

namespace attune::cli {

/// Whoever read standard output has gone: nothing to tell anybody, and no reason to go on.
struct ReaderGone {};

/// Standard output, or a file that is replaced whole or not at all. Standard output gets whole lines at once, so that
/// what a killed program has written ends with one. Every function throws FileError when the text cannot be written,
/// and ReaderGone when it is for a pipe that nobody reads.
class TextOutput {
 public:
  explicit TextOutput(const std::filesystem::path& file = {});  // an empty path: standard output

  void write(std::string_view text);
  void line(std::string_view text);  // with a line break
  void flush();                      // hands over what was written so far, be it within a line
  void finish();                     // the end: without it a file stays as it was

 private:
  void hand_over(std::string_view text);
  std::string buffer_;
  std::unique_ptr<AtomicFile> file_;  // null: standard output
};

/// A line on standard error, for people.
void write_note(const std::string& text);

/// The text with line breaks as spaces, so that it stays one line of an output.
std::string one_line(std::string text);

}  // namespace attune::cli

#pragma once
// Where a command's result goes.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "attune/base/file.h"

namespace attune::cli {

/// Standard output, or a file that is replaced whole or not at all. Every function throws FileError when the text
/// cannot be written, for instance because the reader of a pipe has gone.
class TextOutput {
 public:
  explicit TextOutput(const std::filesystem::path& file = {});  // an empty path: standard output

  void write(std::string_view text);
  void line(std::string_view text);  // with a line break
  void flush();                      // hands over what was written so far
  void finish();                     // the end: without it a file stays as it was

 private:
  std::string buffer_;
  std::unique_ptr<AtomicFile> file_;  // null: standard output
};

/// A line on standard error, for people.
void write_note(const std::string& text);

/// The text with line breaks as spaces, so that it stays one line of an output.
std::string one_line(std::string text);

}  // namespace attune::cli

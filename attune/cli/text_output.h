#pragma once
// The output of a command.

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/descriptor.h"
#include "attune/base/file.h"

namespace attune::cli {

/// Thrown when the reader of standard output has gone: the command ends without a message.
struct ReaderGone {};

/// Standard output, a named pipe, or a file that is replaced whole or not at all. The first two get whole lines at
/// once, so that the output of a killed program ends with a whole line. Every function throws FileError when the text
/// cannot be written, ReaderGone when nobody reads standard output any more, and Interrupted when a stop was asked for
/// while the output waits for its reader.
class TextOutput {
 public:
  /// An empty path: standard output. A pipe waits here for its reader. Throws FileError for a path that leads to
  /// standard output or standard error.
  explicit TextOutput(const std::filesystem::path& file = {});

  void write(std::string_view text);
  void line(std::string_view text);  // with a line break
  void flush();                      // outputs what was written so far, even within a line
  void finish();                     // ends the output; without it a file stays as it was

 private:
  void hand_over(std::string_view text);
  std::string buffer_;
  std::filesystem::path path_;
  Descriptor pipe_;
  std::unique_ptr<AtomicFile> file_;  // without pipe and file: standard output
};

/// Checks the file `output`, which a command replaces; "": no file. Throws ConfigError where it is one of the command's
/// `inputs` or the file that standard input comes from, and where it exists within a folder among the inputs and has
/// the name of a part of a model or a run.
void check_output(const std::string& output, const std::vector<std::string>& inputs);

/// Throws FileError where a file cannot be made at `output`, before the work whose result is written there. A device or
/// a pipe is not opened. "": no file.
void check_writable(const std::string& output);

/// A line on standard error, for people.
void write_note(const std::string& text);

/// A label, a name or a message on one line that can neither break a table nor command a terminal: spaces for line
/// breaks, escapes such as "\t" and "\x1b" for other control characters (U+0000 to U+001F, U+007F to U+009F) and for
/// those that end a line or turn the direction of a text (U+2028 to U+202E, U+2066 to U+2069).
std::string one_line(std::string_view text);

/// The same for a text that a model writes. U+2028 to U+202E and U+2066 to U+2069 stay: languages from right to left
/// need the marks of direction among them. The characters in `kept` stay too.
std::string written_text(std::string_view text, std::string_view kept = {});

/// A duration for people: "12.3 seconds", "4.5 minutes".
std::string time_text(double seconds);

/// The characters of a text in UTF-8: the columns that it takes on a terminal, where none is wide.
size_t characters_of(std::string_view text);

/// one_line(text) in a column of so many characters: cut, or with spaces behind it.
std::string column(std::string_view text, size_t width);

}  // namespace attune::cli

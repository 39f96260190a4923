#pragma once
// Texts from the command line, a file or standard input.

#include <CLI/CLI.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/text/text_file.h"

namespace attune::cli {

/// Adds positional arguments that are not interpreted. CLI11's own vectors read "[a, b]" as two values and "{}" as
/// none.
void add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
               const std::string& description);

/// Adds an option that may be given several times, each with one text, which is not interpreted.
void add_repeated_text(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
                       const std::string& description);

/// Whether an option takes any text, an empty one too, as the options of the two functions above do.
bool takes_any_text(CLI::Option& option);
/// Lets an option take any text.
void take_any_text(CLI::Option& option);

/// "text 2 of the command line", for messages; `index` counts from 0. Throws DataError when the text is not UTF-8.
std::string place_of_text(const std::vector<std::string>& texts, size_t index);

/// Reads texts from the arguments, else from a file, else from standard input, some hundred lines at a time.
class InputLines {
 public:
  /// Throws ConfigError when there are both arguments and a file.
  InputLines(std::vector<std::string> arguments, const std::string& file);

  /// From now on, a line that cannot be read becomes an empty line, and `tell` gets the message.
  void skip_errors(std::function<void(const std::string& message)> tell) { tell_ = std::move(tell); }

  /// Returns the next lines; an empty result is the end of input. For a line that cannot be read, one call returns the
  /// lines before it and the next call throws. A line from a terminal or a pipe is returned without waiting for the
  /// line after it, so that its answer comes at once.
  std::vector<std::string> next() { return read_lines(true); }
  /// The same, but returns no lines where it would have to wait.
  std::vector<std::string> at_hand() { return read_lines(false); }
  /// Where the lines of the last call are from, for messages: "news.en:12".
  const std::vector<std::string>& places() const { return places_; }

  bool from_standard_input() const { return live_; }

 private:
  bool read(std::string& line);
  bool read_next(std::string& line);
  std::vector<std::string> read_lines(bool wait);
  bool more_at_hand(int patience);

  std::vector<std::string> arguments_, places_;
  std::function<void(const std::string&)> tell_;
  std::optional<LineReader> reader_;
  bool live_ = false;
  size_t taken_ = 0;  // of the arguments
  std::exception_ptr error_;
};

/// Returns the number of lines of a file; 0, unknown, when it can be read only once or is damaged.
int64_t count_lines(const std::string& file);

}  // namespace attune::cli

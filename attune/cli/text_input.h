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

/// Adds positional arguments that are taken as they are. CLI11's own vectors would take "[a, b]" for two values and
/// "{}" for none.
void add_texts(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
               const std::string& description);

/// Adds an option that may be given several times, with one text each, taken as it is.
void add_repeated_text(CLI::App& command, const std::string& name, std::vector<std::string>& texts,
                       const std::string& description);

/// "text 2 of the command line", for messages; `index` counts from 0. Throws DataError when the text is not UTF-8.
std::string place_of_text(const std::vector<std::string>& texts, size_t index);

/// Arguments, else the lines of a file, else those of standard input, some hundred at a time.
class InputLines {
 public:
  /// Throws ConfigError when there are both arguments and a file.
  InputLines(std::vector<std::string> arguments, const std::string& file);

  /// A line that cannot be read is from now on an empty line, and `tell` gets the message.
  void skip_errors(std::function<void(const std::string& message)> tell) { tell_ = std::move(tell); }

  /// The next lines, none at the end. A line that cannot be read is an error of the call after the one that returns the
  /// lines before it. Whoever types, or waits for an answer at the other end of a pipe, gets one without the next line.
  std::vector<std::string> next() { return read_lines(true); }
  /// The same, but none where it would have to wait for them.
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

/// How many lines a file has; 0, for unknown, where it can be read but once or will turn out to be damaged.
int64_t count_lines(const std::string& file);

}  // namespace attune::cli

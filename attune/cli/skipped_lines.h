#pragma once
// Lines that a command cannot answer.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attune/cli/text_input.h"
#include "attune/cli/text_output.h"
#include "attune/text/tokenizer.h"

namespace attune::cli {

/// Adds --on-error, "stop" or "skip".
void add_on_error(CLI::App& command, std::string& on_error, const std::string& description);

/// Keeps account of the lines that cannot be answered, and why. They end the command, or are skipped.
class SkippedLines {
 public:
  /// With "skip" as `on_error`, `source` passes over lines that cannot be read from now on. Throws ConfigError unless
  /// it is "stop" or "skip". `source` may not be read after this is gone.
  SkippedLines(const std::string& on_error, InputLines& source);
  SkippedLines(const SkippedLines&) = delete;
  SkippedLines& operator=(const SkippedLines&) = delete;

  bool skips() const { return skips_; }
  /// To be called after each reading: the places of the lines that were read, "" for a line that could not be read.
  void add_read(const std::vector<std::string>& places);
  /// Notes that line i of those that were read last cannot be answered. `what` says why and names its place.
  void add(size_t i, const std::string& what);
  /// To be called for each line in turn, before its answer is written. `error`: why it cannot be answered, where only
  /// the caller knows. Returns "" for a line with an answer. For a line without one, prints a note and returns why;
  /// with "stop", flushes `output` and throws DataError.
  std::string next(TextOutput& output, std::string error = {});
  /// Says how many were skipped. Returns the exit status: 1 when there was an answer to no line.
  int status() const;

 private:
  bool skips_;
  std::deque<std::string> unread_;         // messages whose lines are not yet counted
  std::map<int64_t, std::string> errors_;  // by line, from 0
  int64_t piece_ = 0;                      // the first line of those that were read last
  int64_t read_ = 0, written_ = 0, skipped_ = 0;
};

/// Encodes the lines that were read last. A line has no tokens when it is not UTF-8, is too long, or when `encode`,
/// which gets the line and its place, throws DataError; `skipped` is told why.
std::vector<Encoding> encode_lines(
    const std::vector<std::string>& lines, const std::vector<std::string>& places, SkippedLines& skipped,
    const std::function<Encoding(const std::string& line, const std::string& place)>& encode);

}  // namespace attune::cli

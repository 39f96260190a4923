#pragma once
// Text line by line, plain or gzip, from files that may be hostile.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/error.h"

namespace attune {

/// Whether `text` is well-formed UTF-8 (Unicode 15, table 3-7): no overlong forms, no surrogates, nothing above
/// U+10FFFF.
bool valid_utf8(std::string_view text);
/// Throws DataError naming `place`, for example "sentence 2", when `text` is not well-formed UTF-8.
void check_utf8(std::string_view text, std::string_view place);

/// The number of bytes, 1 to 4, of the well-formed character at the start of `text`; 0 when there is none.
size_t utf8_sequence(std::string_view text);

/// The limits of a text file. The defaults stop a decompression bomb; plain text may be as large as it is.
struct TextLimits {
  int64_t line_bytes = int64_t{1} << 20;
  int64_t total_bytes = INT64_MAX;        // after decompression
  int64_t gzip_bytes = int64_t{8} << 30;  // that gzip data may become, with 64 more for each byte of the file
  int64_t lines = INT64_MAX;
};

/// Called now and then with the bytes of the files, before decompression, that were read since the last call. An
/// exception ends the reading.
using ReadProgress = std::function<void(int64_t bytes)>;

class TextSource;  // bytes of a file or a pipe, decompressed

/// Reads UTF-8 lines ending in \n or \r\n; the last line may have no end. Drops a byte order mark at the start.
/// Recognises gzip by its first bytes. Returns a line as soon as it has arrived, so that a program can answer a pipe
/// line by line.
class LineReader {
 public:
  explicit LineReader(const std::filesystem::path& path, const TextLimits& limits = {});

  /// Reads from an open descriptor, standard input for instance, and leaves it open. `name` is for messages.
  LineReader(int descriptor, std::string name, const TextLimits& limits = {});
  ~LineReader();

  /// Reads the next line without its end; returns false at the end of the text. Throws DataError that names file and
  /// line when a line is too long or is not UTF-8; the next call then reads the line after it. Throws FileError when
  /// the file cannot be read, is cut off or is beyond the limits.
  bool next(std::string& line);

  /// Waits at most `patience_ms` milliseconds; a signal ends the waiting. Returns true when next() would not wait: a
  /// whole line, the end of the text or an error is there.
  bool at_hand(int patience_ms);

  int64_t line_number() const { return line_number_; }  // of the line last returned or refused, from 1
  int64_t bytes_read() const;                           // of the file as it is, before decompression
  const std::string& name() const { return name_; }

 private:
  bool append_until_newline(std::string& line);
  bool read_chunk();
  void skip_rest_of_line();

  std::string name_;
  TextLimits limits_;
  std::unique_ptr<TextSource> source_;
  std::string_view chunk_;  // bytes of the source that are not yet in a line
  int64_t line_number_ = 0;
  std::string begun_;         // the beginning of a line whose end has not arrived
  bool inside_line_ = false;  // a line that was refused for its length
};

/// Reads UTF-8 text exactly as it is, line ends included, in pieces of at most `piece_bytes` (64 or more). A piece ends
/// after a line end, or between two characters of a line that is longer. Drops a byte order mark at the start.
/// Recognises gzip by its first bytes.
class TextReader {
 public:
  /// Uses only total_bytes and gzip_bytes of the limits.
  explicit TextReader(const std::filesystem::path& path, const TextLimits& limits = {},
                      size_t piece_bytes = size_t{1} << 20);
  ~TextReader();

  /// Reads the next piece; returns false at the end of the text. Throws DataError that names file and line of text that
  /// is not UTF-8, and FileError as LineReader does.
  bool next(std::string& piece);

  int64_t bytes_read() const;  // of the file as it is, before decompression

 private:
  void fill();
  size_t next_size() const;

  std::string name_;
  size_t piece_bytes_;
  std::unique_ptr<TextSource> source_;
  std::string pending_;  // read but not yet handed over
  int64_t line_ = 1;     // in which the next piece begins
  bool ended_ = false;
};

/// All lines of a file.
std::vector<std::string> read_lines(const std::filesystem::path& path, const TextLimits& limits = {});

/// Call this where `error` is caught. Throws it again, with the names of `files` in front unless the message begins
/// with one of them.
[[noreturn]] void throw_naming(const std::vector<std::string>& files, const DataError& error);

/// Calls `read`. When it throws a DataError that does not begin with the name of one of `files`, adds their names.
template <class Read>
auto naming(const std::vector<std::string>& files, const Read& read) {
  try {
    return read();
  } catch (const DataError& error) {
    throw_naming(files, error);
  }
}

}  // namespace attune

#include "attune/cli/skipped_lines.h"

#include <fmt/format.h>

#include <utility>

#include "attune/base/fail.h"
#include "attune/inference/text_limits.h"

namespace attune::cli {

void add_on_error(CLI::App& command, std::string& on_error, const std::string& description) {
  command.add_option("--on-error", on_error, description)->capture_default_str();
}

SkippedLines::SkippedLines(const std::string& on_error, InputLines& source) : skips_(on_error == "skip") {
  if (!skips_ && on_error != "stop") fail<ConfigError>("--on-error {}: needs stop or skip", on_error);
  if (skips_) source.skip_errors([this](const std::string& what) { unread_.push_back(what); });
}

void SkippedLines::add_read(const std::vector<std::string>& places) {
  piece_ = read_;
  for (const std::string& place : places) {
    if (place.empty()) {
      errors_.emplace(read_, std::move(unread_.front()));
      unread_.pop_front();
    }
    ++read_;
  }
}

void SkippedLines::add(size_t i, const std::string& what) {
  errors_.emplace(piece_ + static_cast<int64_t>(i), what);  // a line that could not be read keeps its own message
}

std::string SkippedLines::next(TextOutput& output, std::string error) {
  if (const auto found = errors_.find(written_); found != errors_.end()) {
    error = std::move(found->second);
    errors_.erase(found);
  }
  ++written_;
  if (error.empty()) return error;
  if (!skips_) {
    output.flush();
    fail<DataError>("{}", error);
  }
  write_note(error);
  ++skipped_;
  return error;
}

int SkippedLines::status() const {
  if (skipped_ == 0) return 0;
  write_note(fmt::format("{} of {} lines {} skipped", skipped_, written_, skipped_ == 1 ? "was" : "were"));
  return skipped_ == written_ ? 1 : 0;
}

std::vector<Encoding> encode_lines(
    const std::vector<std::string>& lines, const std::vector<std::string>& places, SkippedLines& skipped,
    const std::function<Encoding(const std::string& line, const std::string& place)>& encode) {
  std::vector<Encoding> encoded(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    try {
      check_text(lines[i], places[i]);
      encoded[i] = encode(lines[i], places[i]);
    } catch (const DataError& error) {
      skipped.add(i, error.what());
    }
  }
  return encoded;
}

}  // namespace attune::cli

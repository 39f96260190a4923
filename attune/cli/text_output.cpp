#include "attune/cli/text_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "attune/base/fail.h"

namespace attune::cli {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 16;

void write_to_standard_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) throw ReaderGone();
    if (written < 0) fail<FileError>("cannot write standard output: {}", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(written));
  }
}

}  // namespace

TextOutput::TextOutput(const std::filesystem::path& file)
    : file_(file.empty() ? nullptr : std::make_unique<AtomicFile>(file)) {}

void TextOutput::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() < buffer_bytes) return;
  const size_t whole_lines = buffer_.rfind('\n') + 1;  // 0 where there is none
  hand_over(std::string_view(buffer_).substr(0, whole_lines));
  buffer_.erase(0, whole_lines);
}

void TextOutput::hand_over(std::string_view text) {
  if (file_ != nullptr) {
    file_->write(text);
  } else {
    write_to_standard_output(text);
  }
}

void TextOutput::line(std::string_view text) {
  write(text);
  write("\n");
}

void TextOutput::flush() {
  hand_over(buffer_);
  buffer_.clear();
}

void TextOutput::finish() {
  flush();
  if (file_ != nullptr) file_->commit();
}

void write_note(const std::string& text) {
  std::cerr << "attune: " + one_line(text) + "\n";
}

std::string one_line(std::string_view text, std::string_view kept) {
  std::string line;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (kept.find(text[i]) != std::string_view::npos) {
      line += text[i];
      continue;
    }
    if (byte == '\n' || byte == '\r') {
      line += ' ';
    } else if (byte == '\t') {
      line += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      line += fmt::format("\\x{:02x}", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {  // U+0080 to U+009F in UTF-8
      line += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      line += text[i];
    }
  }
  return line;
}

}  // namespace attune::cli

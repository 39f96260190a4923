#include "attune/cli/text_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/cli/standard_stream.h"
#include "attune/text/tokenizer_files.h"

namespace attune::cli {
namespace {

constexpr size_t buffer_bytes = size_t{1} << 16;

// The control character that `text` begins with: the number of its bytes in UTF-8 and its code point; {0, 0}: none.
// Control characters are U+0000 to U+001F and U+007F to U+009F; with `marks` also those that end a line or turn the
// direction of a text, U+2028 to U+202E and U+2066 to U+2069.
std::pair<size_t, int> control_character(std::string_view text, bool marks) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return {1, byte(0)};
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return {2, byte(1)};
  if (!marks || byte(0) != 0xe2) return {0, 0};
  if (byte(1) == 0x80 && byte(2) >= 0xa8 && byte(2) <= 0xae) return {3, 0x2000 + byte(2) - 0x80};
  if (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9) return {3, 0x2040 + byte(2) - 0x80};
  return {0, 0};
}

bool begins_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

std::string escaped(std::string_view text, std::string_view kept, bool marks) {
  std::string line;
  for (size_t i = 0; i < text.size();) {
    const auto [bytes, character] = control_character(text.substr(i), marks);
    if (bytes == 0 || kept.find(text[i]) != std::string_view::npos) {
      line += text[i++];
      continue;
    }
    i += bytes;
    if (character == '\n' || character == '\r') {
      line += ' ';
    } else if (character == '\t') {
      line += "\\t";
    } else {
      line += bytes == 1 ? fmt::format("\\x{:02x}", character) : fmt::format("\\u{:04x}", character);
    }
  }
  return line;
}

// Whether a file of this name is one of those that make a model or a run.
bool is_name_of_a_part(const std::filesystem::path& file) {
  constexpr std::string_view kKinds[] = {".safetensors", ".bin", ".model", ".spm", ".jinja", ".toml"};
  constexpr std::string_view kNames[] = {"config.json",
                                         "generation_config.json",
                                         "source_text.json",
                                         "modules.json",
                                         "run.json",
                                         "metrics.jsonl",
                                         "samples.jsonl",
                                         "adapter_config.json",
                                         "model.safetensors.index.json",
                                         "pytorch_model.bin.index.json"};
  const std::string name = file.filename().string();
  const std::vector<std::string> of_tokenizers = all_tokenizer_files();
  return std::ranges::find(kKinds, file.extension().string()) != std::end(kKinds) ||
         std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::find(of_tokenizers, name) != of_tokenizers.end();
}

}  // namespace

TextOutput::TextOutput(const std::filesystem::path& file) : path_(file) {
  if (file.empty()) return;
  if (const std::string_view stream = standard_stream(file); !stream.empty())
    fail<FileError>("{}: is {}: leave out the option that names it", file.string(), stream);
  std::error_code ignored;
  if (!std::filesystem::is_fifo(file, ignored)) {
    file_ = std::make_unique<AtomicFile>(file);
    return;
  }
  pipe_ = Descriptor(::open(file.c_str(), O_WRONLY | O_CLOEXEC));  // waits until somebody reads it
  if (!pipe_.is_open()) fail<FileError>("cannot write {}: {}", file.string(), std::strerror(errno));
}

void TextOutput::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() < buffer_bytes) return;
  const size_t whole_lines = buffer_.rfind('\n') + 1;  // 0 where there is none
  hand_over(std::string_view(buffer_).substr(0, whole_lines));
  buffer_.erase(0, whole_lines);
}

void TextOutput::hand_over(std::string_view text) {
  if (file_ != nullptr) return file_->write(text);
  const int error = write_to_stream(pipe_.is_open() ? pipe_.get() : STDOUT_FILENO, text);
  if (error == EPIPE && !pipe_.is_open()) throw ReaderGone();
  if (error == ECANCELED) throw Interrupted();
  if (error != 0)
    fail<FileError>("cannot write {}: {}", pipe_.is_open() ? path_.string() : "standard output", std::strerror(error));
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

void check_output(const std::string& output, const std::vector<std::string>& inputs) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_regular_file(output, ignored)) return;
  const auto is_output = [&](const std::string& input) {
    return fs::equivalent(input, output, ignored);  // false too where there is no such input
  };
  if (is_output("/dev/stdin") || std::ranges::any_of(inputs, is_output))
    fail<ConfigError>("{}: is an input too, which the output would replace: name another file", output);

  for (const fs::path& file :
       {fs::absolute(output, ignored), fs::weakly_canonical(output, ignored)}) {  // may be a link
    if (!is_name_of_a_part(file)) continue;
    for (fs::path folder = file.parent_path(); folder != folder.root_path(); folder = folder.parent_path())
      for (const std::string& input : inputs)
        if (fs::equivalent(input, folder, ignored))
          fail<ConfigError>("{}: is in {}, which is an input: name another file", output, input);
  }
}

void check_writable(const std::string& output) {
  std::error_code ignored;
  const std::filesystem::file_type type = std::filesystem::status(output, ignored).type();
  if (output.empty() || type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::character)
    return;
  const AtomicFile file(output);  // without commit(): nothing stays of it
}

void write_note(const std::string& text) {
  write_to_standard_error("attune: " + one_line(text) + "\n");
}

std::string one_line(std::string_view text) {
  constexpr bool kMarks = true;
  return escaped(text, {}, kMarks);
}

std::string written_text(std::string_view text, std::string_view kept) {
  constexpr bool kMarks = false;
  return escaped(text, kept, kMarks);
}

std::string time_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} seconds", seconds) : fmt::format("{:.1f} minutes", seconds / 60);
}

size_t characters_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
}

std::string column(std::string_view text, size_t width) {
  std::string cell;
  size_t shown = 0;
  for (const char c : one_line(text)) {
    if (begins_character(c) && ++shown > width) return cell;
    cell += c;
  }
  return cell + std::string(width - shown, ' ');
}

}  // namespace attune::cli

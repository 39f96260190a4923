#include "attune/text/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "attune/base/fail.h"
#include "attune/text/unicode.h"

namespace attune {

size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto within = [&](size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  const auto tail = [&](size_t i) { return within(i, 0x80, 0xBF); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool second = within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool second = within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

namespace {

// The lines that a file may have: these, and so many more for each of its bytes. Each line takes memory of its own, and
// gzip data of a few bytes can hold very many. Honest text stays far below.
constexpr int64_t kFreeLines = int64_t{1} << 20, kLinesPerByte = 16;

// What a byte of gzip data may become, beside TextLimits::gzip_bytes. Text becomes 3 to 20 times as long, the zeros of
// a bomb 1032 times.
constexpr int64_t kBytesPerByte = 64;

/// Bytes from the start of `text` that are well-formed UTF-8.
size_t valid_prefix(std::string_view text) {
  const size_t size = text.size();
  while (!text.empty()) {
    uint64_t word = 0;  // most text is ASCII: eight bytes at a time
    if (text.size() >= sizeof word) {
      std::memcpy(&word, text.data(), sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        text.remove_prefix(sizeof word);
        continue;
      }
    }
    const size_t length = utf8_sequence(text);
    if (length == 0) break;
    text.remove_prefix(length);
  }
  return size - text.size();
}

}  // namespace

bool valid_utf8(std::string_view text) {
  return valid_prefix(text) == text.size();
}

void check_utf8(std::string_view text, std::string_view place) {
  if (!valid_utf8(text)) fail<DataError>("{}: is not valid UTF-8", place);
}

/// The bytes of a descriptor, decompressed where they are gzip (RFC 1952; several members one after the other are one
/// text). Keeps total_bytes and gzip_bytes of the limits.
class TextSource {
 public:
  TextSource(const std::filesystem::path& path, const TextLimits& limits)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), owned_(true), name_(path.string()), limits_(limits) {
    if (descriptor_ < 0) fail<FileError>("cannot open {}: {}", name_, std::strerror(errno));
  }
  TextSource(int descriptor, std::string name, const TextLimits& limits)
      : descriptor_(descriptor), owned_(false), name_(std::move(name)), limits_(limits) {}
  ~TextSource() {
    if (inflating_) ::inflateEnd(&stream_);
    if (owned_) ::close(descriptor_);
  }
  TextSource(const TextSource&) = delete;
  TextSource& operator=(const TextSource&) = delete;

  /// Returns the next bytes, which are valid until the next call; empty at the end of the file.
  std::string_view next() {
    if (!started_) start();
    const std::string_view bytes = inflating_ ? inflate_some() : read_plain();
    bytes_ += std::ssize(bytes);
    if (bytes_ > limits_.total_bytes)
      fail<FileError>("{}: the text is larger than the limit of {} bytes", name_, limits_.total_bytes);
    if (inflating_ && bytes_ - kBytesPerByte * bytes_read_ > limits_.gzip_bytes)
      fail<FileError>("{}: {} bytes of gzip data become {} or more, {} and {} a byte are accepted", name_, bytes_read_,
                      bytes_, limits_.gzip_bytes, kBytesPerByte);
    return bytes;
  }

  int64_t bytes_read() const { return bytes_read_; }

  /// Whether bytes, the end or an error come within this time. False also if a signal ends the waiting: to wait again
  /// would never end where a timer's signals come faster.
  bool ready(int patience_ms) const {
    if (!input_.empty()) return true;
    pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
    const int found = ::poll(&input, 1, patience_ms);
    return found > 0 || (found < 0 && errno != EINTR);
  }

 private:
  std::string_view read_plain() {
    if (input_.empty()) read_some();
    return std::exchange(input_, {});
  }

  /// Adds bytes to `input_`, whose rest moves to the front of the buffer; false at the end of the file.
  bool read_some() {
    const size_t kept = input_.size();
    if (kept > 0) std::memmove(read_buffer_.data(), input_.data(), kept);
    ssize_t n = 0;
    do n = ::read(descriptor_, read_buffer_.data() + kept, read_buffer_.size() - kept);
    while (n < 0 && errno == EINTR);
    if (n < 0) fail<FileError>("cannot read {}: {}", name_, std::strerror(errno));
    input_ = {read_buffer_.data(), kept + static_cast<size_t>(n)};
    bytes_read_ += n;
    return n > 0;
  }

  bool at_gzip_magic() const { return input_.starts_with("\x1f\x8b"); }

  void start() {
    started_ = true;
    read_some();
    while (input_ == "\x1f" && read_some()) continue;  // a pipe may hand over a single byte
    if (!at_gzip_magic()) return;
    if (::inflateInit2(&stream_, 15 + 16) != Z_OK) fail<FileError>("cannot read {}: out of memory for zlib", name_);
    inflating_ = true;
  }

  std::string_view inflate_some() {
    for (;;) {
      if (input_.empty() && !read_some()) {
        if (!between_members_) fail<FileError>("{}: the gzip data is cut off", name_);
        return {};
      }
      if (between_members_) {
        while (input_.size() == 1 && read_some()) continue;
        if (!at_gzip_magic()) fail<FileError>("{}: something that is not gzip follows the gzip data", name_);
        ::inflateReset(&stream_);
        between_members_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
      stream_.avail_in = static_cast<uInt>(input_.size());
      stream_.next_out = reinterpret_cast<Bytef*>(inflate_buffer_.data());
      stream_.avail_out = static_cast<uInt>(inflate_buffer_.size());
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      input_.remove_prefix(input_.size() - stream_.avail_in);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        fail<FileError>("{}: the gzip data is damaged ({})", name_, stream_.msg != nullptr ? stream_.msg : "zlib");
      between_members_ = status == Z_STREAM_END;
      const size_t produced = inflate_buffer_.size() - stream_.avail_out;
      if (produced > 0) return {inflate_buffer_.data(), produced};
    }
  }

  int descriptor_;
  bool owned_;
  std::string name_;
  TextLimits limits_;
  bool started_ = false;
  bool inflating_ = false;
  bool between_members_ = false;
  int64_t bytes_read_ = 0, bytes_ = 0;  // so far: of the file, and after decompression
  z_stream stream_{};
  std::string_view input_;  // read but not yet handed over, in read_buffer_
  std::array<char, 1 << 16> read_buffer_;
  std::array<char, 1 << 17> inflate_buffer_;
};

LineReader::LineReader(const std::filesystem::path& path, const TextLimits& limits)
    : name_(path.string()), limits_(limits), source_(std::make_unique<TextSource>(path, limits)) {}

LineReader::LineReader(int descriptor, std::string name, const TextLimits& limits)
    : name_(std::move(name)), limits_(limits), source_(std::make_unique<TextSource>(descriptor, name_, limits)) {}

LineReader::~LineReader() = default;

int64_t LineReader::bytes_read() const {
  return source_->bytes_read();
}

bool LineReader::read_chunk() {
  if (!chunk_.empty()) return true;
  chunk_ = source_->next();
  return !chunk_.empty();
}

void LineReader::skip_rest_of_line() {
  while (inside_line_ && read_chunk()) {
    const size_t end = chunk_.find('\n');
    inside_line_ = end == std::string_view::npos;
    chunk_.remove_prefix(inside_line_ ? chunk_.size() : end + 1);
  }
  inside_line_ = false;
}

bool LineReader::at_hand(int patience_ms) {
  for (;;) {
    if (inside_line_ && !chunk_.empty()) {
      const size_t end = chunk_.find('\n');
      inside_line_ = end == std::string_view::npos;
      chunk_.remove_prefix(inside_line_ ? chunk_.size() : end + 1);
    }
    if (!inside_line_) {
      if (chunk_.find('\n') != std::string_view::npos) return true;
      begun_ += chunk_;
      chunk_ = {};
      if (static_cast<int64_t>(begun_.size()) > limits_.line_bytes + 1) return true;  // too long
    }
    if (!source_->ready(patience_ms)) return false;
    if (!read_chunk()) return true;
  }
}

bool LineReader::append_until_newline(std::string& line) {
  line.swap(begun_);
  bool any = !line.empty();
  const auto check_length = [&](size_t more) {
    inside_line_ = static_cast<int64_t>(line.size() + more) > limits_.line_bytes + 1;  // + 1: it may be a \r
    if (inside_line_) fail<DataError>("{}:{}: a line of more than {} bytes", name_, line_number_, limits_.line_bytes);
  };
  check_length(0);
  for (;;) {
    if (!read_chunk()) return any;
    any = true;
    const size_t end = chunk_.find('\n');
    const size_t length = end == std::string_view::npos ? chunk_.size() : end;
    check_length(length);
    line.append(chunk_, 0, length);
    chunk_.remove_prefix(end == std::string_view::npos ? length : length + 1);
    if (end != std::string_view::npos) return true;
  }
}

bool LineReader::next(std::string& line) {
  line.clear();
  skip_rest_of_line();
  ++line_number_;
  if (!append_until_newline(line)) {
    --line_number_;
    return false;
  }
  if (line_number_ > limits_.lines) fail<FileError>("{}: has more than {} lines", name_, limits_.lines);
  if (line_number_ > kFreeLines + kLinesPerByte * source_->bytes_read())
    fail<FileError>("{}: {} bytes of gzip data become more than {} lines, {} a byte are accepted", name_,
                    source_->bytes_read(), line_number_ - 1, kLinesPerByte);
  if (line.ends_with('\r')) line.pop_back();
  if (static_cast<int64_t>(line.size()) > limits_.line_bytes)
    fail<DataError>("{}:{}: a line of more than {} bytes", name_, line_number_, limits_.line_bytes);
  if (!valid_utf8(line)) fail<DataError>("{}:{}: the line is not valid UTF-8", name_, line_number_);
  if (line_number_ == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

TextReader::TextReader(const std::filesystem::path& path, const TextLimits& limits, size_t piece_bytes)
    : name_(path.string()), piece_bytes_(piece_bytes), source_(std::make_unique<TextSource>(path, limits)) {
  fill();
  if (pending_.starts_with(kByteOrderMark)) pending_.erase(0, kByteOrderMark.size());
}

TextReader::~TextReader() = default;

int64_t TextReader::bytes_read() const {
  return source_->bytes_read();
}

/// Reads until more than a piece is pending or the text ends.
void TextReader::fill() {
  while (!ended_ && pending_.size() <= piece_bytes_) {
    const std::string_view chunk = source_->next();
    ended_ = chunk.empty();
    pending_ += chunk;
  }
}

size_t TextReader::next_size() const {
  if (pending_.size() <= piece_bytes_) return pending_.size();
  const size_t line_end = pending_.rfind('\n', piece_bytes_ - 1);
  if (line_end != std::string::npos) return line_end + 1;
  size_t size = piece_bytes_;
  while (size > piece_bytes_ - 3 && continues_character(pending_[size])) --size;  // no character is longer than 4 bytes
  return size;
}

bool TextReader::next(std::string& piece) {
  fill();
  const size_t size = next_size();
  piece.assign(pending_, 0, size);
  pending_.erase(0, size);
  const size_t valid = valid_prefix(piece);
  line_ += std::count(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(valid), '\n');
  if (valid < piece.size()) fail<DataError>("{}:{}: the line is not valid UTF-8", name_, line_);
  return !piece.empty();
}

std::vector<std::string> read_lines(const std::filesystem::path& path, const TextLimits& limits) {
  LineReader reader(path, limits);
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

void throw_naming(const std::vector<std::string>& files, const DataError& error) {
  const std::string message = error.what();
  for (const std::string& file : files)
    if (message.starts_with(file)) throw;
  fail<DataError>("{}: {}", fmt::join(files, ", "), message);
}

}  // namespace attune

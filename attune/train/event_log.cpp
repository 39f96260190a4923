#include "attune/train/event_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

constexpr std::string_view metrics_name = "metrics.jsonl", samples_name = "samples.jsonl";

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), RFC 3720 appendix B.4.
uint32_t crc32c(std::string_view bytes) {
  static constexpr auto table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t i = 0; i < 256; ++i) {
      t[i] = i;
      for (int bit = 0; bit < 8; ++bit) t[i] = (t[i] >> 1) ^ (t[i] & 1 ? 0x82F63B78u : 0u);
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (const char c : bytes) crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(static_cast<uint8_t>(value >> (8 * i))));
  return text;
}

/// The checksum of TFRecord files: rotated and shifted, since data that holds its own CRC would check badly.
std::string masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xA282EAD8u, 4);
}

/// The few fields that are written, in protobuf's wire format (tensorflow/core/util/event.proto). SentencePiece carries
/// a protobuf of its own, of another version, and both in one process crash: that is why there is no library here.
class Message {
 public:
  void add_double(int field, double value) { add_key(field, 1) += little_endian(std::bit_cast<uint64_t>(value), 8); }
  void add_float(int field, float value) { add_key(field, 5) += little_endian(std::bit_cast<uint32_t>(value), 4); }
  void add_integer(int field, int64_t value) { add_key(field, 0) += varint(static_cast<uint64_t>(value)); }
  void add_bytes(int field, std::string_view value) { add_key(field, 2) += varint(value.size()) + std::string(value); }
  const std::string& bytes() const { return bytes_; }

 private:
  static std::string varint(uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(static_cast<uint8_t>(value | 0x80)));
    text.push_back(static_cast<char>(value));
    return text;
  }
  std::string& add_key(int field, int wire_type) {
    return bytes_ += varint(static_cast<uint64_t>(field << 3 | wire_type));
  }

  std::string bytes_;
};

// Field numbers of Event, Summary, Summary.Value and SessionLog.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kStatus = 1;
constexpr int64_t kStatusStart = 1;

/// One record: length (8 bytes), masked CRC of the length, data, masked CRC of the data;
/// tensorflow/core/lib/io/record_writer.h.
std::string record(const Message& event) {
  const std::string& data = event.bytes();
  const std::string length = little_endian(data.size(), 8);
  return length + masked_crc(length) + data + masked_crc(data);
}

float to_float(double value) {
  if (std::abs(value) <= std::numeric_limits<float>::max() || std::isnan(value)) return static_cast<float>(value);
  return value > 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
}

/// Nothing when the text is not JSON, or has a key twice.
std::optional<Json> parsed(std::string_view text) {
  try {
    return parse_json(text, "");
  } catch (const FileError&) {
    return std::nullopt;
  }
}

struct LoggedLine {
  int64_t step;
  bool validates;
  bool ends_run;  // the figures of the mean of checkpoints, which a run measures once it has ended
};

/// A line of metrics.jsonl, or nothing when the line is not an object with a step.
std::optional<LoggedLine> read_line(std::string_view line) {
  const std::optional<Json> read = parsed(line);
  if (!read || !read->is_object()) return std::nullopt;
  const Json& json = *read;
  const auto step = json.find("step");
  if (step == json.end() || !step->is_number_unsigned()) return std::nullopt;
  if (step->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return LoggedLine{.step = step->get<int64_t>(),
                    .validates = json.contains("valid_loss") || json.contains("translation"),
                    .ends_run = json.contains(kAveragedCheckpoints)};
}

/// Where a run goes on, see EventLog.
struct Resumption {
  int64_t step, last_validation;

  bool removes(const LoggedLine& line) const {
    if (step < 0) return false;
    return line.step > step || line.ends_run || (line.validates && line.step == step && last_validation < step);
  }
};

/// Removes from a file of such lines an incomplete last one, and those that the run will write again.
void trim_lines(const std::filesystem::path& path, const Resumption& resumption) {
  std::error_code error;
  if (std::filesystem::status(path, error).type() == std::filesystem::file_type::not_found) return;
  const std::string text = read_file(path);
  std::string kept;
  int64_t number = 0;
  for (std::size_t start = 0, end; start < text.size(); start = end) {
    const std::size_t newline = text.find('\n', start);
    end = newline == text.npos ? text.size() : newline + 1;
    const std::string_view line(text.data() + start, std::min(newline, text.size()) - start);
    ++number;
    const std::optional<LoggedLine> read = read_line(line);
    if (!read && end == text.size()) break;
    if (!read)
      fail<FileError>("{}:{}: expected a JSON object with a whole number \"step\" and no key twice, found {:?}",
                      path.string(), number, cut_text(line, 80));
    if (resumption.removes(*read)) continue;
    kept += line;
    kept += '\n';
  }
  if (kept != text) write_file(path, kept);
}

std::filesystem::path trimmed_metrics(const std::filesystem::path& folder, const Resumption& resumption) {
  if (resumption.step < -1) fail<DataError>("event log: resume_step is {}, expected a step or -1", resumption.step);
  make_directories(folder);
  trim_lines(folder / metrics_name, resumption);
  trim_lines(folder / samples_name, resumption);
  return folder / metrics_name;
}

/// A name that is not taken. TensorBoard reads the files of a folder in the order of their names.
std::filesystem::path new_events_path(const std::filesystem::path& folder) {
  const auto seconds = static_cast<int64_t>(unix_seconds());
  std::error_code error;
  for (int n = 0;; ++n) {
    auto path = folder / fmt::format("events.out.tfevents.{:010}.attune.{}", seconds, n);
    if (!std::filesystem::exists(path, error)) return path;
  }
}

}  // namespace

EventLog::AppendFile::AppendFile(std::filesystem::path path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) {
  if (descriptor_ < 0) fail<FileError>("cannot write {}: {}", path_.string(), std::strerror(errno));
}

EventLog::AppendFile::~AppendFile() {
  ::close(descriptor_);
}

void EventLog::AppendFile::append(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail<FileError>("cannot write {}: {}", path_.string(), std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

EventLog::EventLog(const std::filesystem::path& folder, int64_t resume_step, int64_t last_validation)
    : samples_file_(folder / samples_name),
      metrics_(trimmed_metrics(folder, {resume_step, last_validation})),
      events_(new_events_path(folder)) {
  Message version;
  version.add_double(kWallTime, unix_seconds());
  version.add_bytes(kFileVersion, "brain.Event:2");
  events_.append(record(version));
  if (resume_step < 0) return;
  // Event files are not rewritten: this tells TensorBoard to forget what earlier files say from here on.
  Message status;
  status.add_integer(kStatus, kStatusStart);
  Message restart;
  restart.add_double(kWallTime, unix_seconds());
  restart.add_integer(kStep, resume_step + 1);
  restart.add_bytes(kSessionLog, status.bytes());
  events_.append(record(restart));
}

void EventLog::write(int64_t step, std::span<const ValidationReport::Sample> samples) {
  std::string lines;
  for (const auto& [source, reference, translation] : samples)
    lines += show({{"step", step}, {"source", source}, {"reference", reference}, {"translation", translation}}) + "\n";
  if (!lines.empty()) AppendFile(samples_file_).append(lines);
}

void EventLog::write(int64_t step, std::span<const std::pair<std::string, double>> scalars) {
  if (step < 0) fail<DataError>("event log: step is {}, expected 0 or more", step);
  const double time = unix_seconds();
  Json line = {{"step", step}, {"time", time}};
  Message summary;
  for (const auto& [name, value] : scalars) {
    if (line.contains(name)) fail<DataError>("event log: the name {:?} stands twice in step {}", name, step);
    line[name] = value;  // written as null unless it is finite
    Message scalar;
    scalar.add_bytes(kTag, name);
    scalar.add_float(kSimpleValue, to_float(value));
    summary.add_bytes(kValue, scalar.bytes());
  }
  Message event;
  event.add_double(kWallTime, time);
  event.add_integer(kStep, step);
  event.add_bytes(kSummary, summary.bytes());
  metrics_.append(show(line) + "\n");
  events_.append(record(event));
}

}  // namespace attune

#include "attune/train/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "attune/base/error.h"
#include "attune/base/file.h"

namespace attune {
namespace {

using Scalars = std::vector<std::pair<std::string, double>>;
namespace fs = std::filesystem;

class EventLogTest : public ::testing::Test {
 protected:
  EventLogTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / ("attune_event_log_" + std::to_string(::getpid()) + "_" + test->name());
    fs::remove_all(folder_);
  }
  ~EventLogTest() override { fs::remove_all(folder_); }

  fs::path metrics() const { return folder_ / "metrics.jsonl"; }

  /// metrics.jsonl without the times, which differ from run to run.
  std::string metrics_without_time() const {
    std::string result;
    std::istringstream lines(read_file(metrics()));
    for (std::string line; std::getline(lines, line);) {
      auto json = nlohmann::ordered_json::parse(line);
      EXPECT_GT(json.at("time").get<double>(), 1.6e9);
      json.erase("time");
      result += json.dump() + "\n";
    }
    return result;
  }

  std::vector<fs::path> event_files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
  }

  fs::path folder_;
};

/// CRC-32C bit by bit, the specification of the table in the library.
uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0u);
  }
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class T>
T take(std::string_view& bytes) {
  T value{};
  if (bytes.size() < sizeof value) throw std::runtime_error("cut off");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::string_view take(std::string_view& bytes, uint64_t count) {
  if (bytes.size() < count) throw std::runtime_error("cut off");
  const auto result = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return result;
}

/// The data of each record; checks the framing on the way.
std::vector<std::string> records(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<std::string> result;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<uint64_t>(rest);
    EXPECT_EQ(take<uint32_t>(rest), masked_crc32c(length_bytes));
    const auto data = take(rest, length);
    EXPECT_EQ(take<uint32_t>(rest), masked_crc32c(data));
    result.emplace_back(data);
  }
  return result;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(bytes);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
}

/// The fields of a protobuf message by number, numbers as text, in the wire format's terms alone.
std::vector<std::pair<uint64_t, std::string>> fields(std::string_view message) {
  std::vector<std::pair<uint64_t, std::string>> result;
  while (!message.empty()) {
    const uint64_t key = take_varint(message);
    const auto type = key & 7;
    if (type == 0) result.emplace_back(key >> 3, std::to_string(take_varint(message)));
    if (type == 1) result.emplace_back(key >> 3, std::to_string(take<double>(message)));
    if (type == 2) result.emplace_back(key >> 3, take(message, take_varint(message)));
    if (type == 5) result.emplace_back(key >> 3, std::to_string(take<float>(message)));
    if (type > 5 || type == 3 || type == 4) throw std::runtime_error("unknown wire type");
  }
  return result;
}

std::string field(std::string_view message, uint64_t number) {
  for (const auto& [n, value] : fields(message))
    if (n == number) return value;
  return "none";
}

TEST(EventLogChecksum, SpecificationHasTheKnownValue) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
}

TEST_F(EventLogTest, WritesJsonLines) {
  EventLog log(folder_);
  log.write(0, Scalars{{"loss", 2.5}, {"lr", 1e-4}});
  log.write(10,
            Scalars{{"loss", std::nan("")}, {"norm", std::numeric_limits<double>::infinity()}, {"zweite ü", 1e300}});
  EXPECT_EQ(metrics_without_time(),
            "{\"step\":0,\"loss\":2.5,\"lr\":0.0001}\n"
            "{\"step\":10,\"loss\":null,\"norm\":null,\"zweite ü\":1e+300}\n");
  EXPECT_TRUE(read_file(metrics()).starts_with("{\"step\":0,\"time\":"));
}

TEST_F(EventLogTest, WritesTensorBoardEvents) {
  EventLog log(folder_);
  log.write(7, Scalars{{"train/loss", 2.5}, {"huge", 1e300}});
  ASSERT_EQ(event_files().size(), 1u);
  const auto events = records(event_files()[0]);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(field(events[0], 3), "brain.Event:2");
  EXPECT_GT(std::stod(field(events[1], 1)), 1.6e9);
  EXPECT_EQ(field(events[1], 2), "7");
  const auto values = fields(field(events[1], 5));
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0].first, 1u);
  EXPECT_EQ(field(values[0].second, 1), "train/loss");
  EXPECT_EQ(field(values[0].second, 2), "2.500000");
  EXPECT_EQ(field(values[1].second, 2), "inf");
}

TEST_F(EventLogTest, AResumedLogEqualsAnUninterruptedOne) {
  const auto write = [](EventLog& log, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step) log.write(step, Scalars{{"loss", 1.0 / static_cast<double>(step)}});
  };
  {
    EventLog log(folder_);
    write(log, 1, 20);
  }
  const std::string uninterrupted = metrics_without_time();
  fs::remove_all(folder_);
  {
    EventLog log(folder_);
    write(log, 1, 13);
  }
  write_file(metrics(), read_file(metrics()) + "{\"step\":14,\"time\":1.7e9,\"lo");
  EventLog log(folder_, 10);
  write(log, 11, 20);
  EXPECT_EQ(metrics_without_time(), uninterrupted);

  ASSERT_EQ(event_files().size(), 2u);
  const auto restart = records(event_files()[1]).at(1);
  EXPECT_EQ(field(restart, 2), "11");
  EXPECT_EQ(field(field(restart, 7), 1), "1");  // SessionLog.START
}

TEST_F(EventLogTest, StepZeroIsAPlaceToResumeFrom) {
  { EventLog(folder_).write(0, Scalars{{"loss", 1}}); }
  { EventLog(folder_).write(1, Scalars{{"loss", 2}}); }
  EXPECT_EQ(metrics_without_time(), "{\"step\":0,\"loss\":1.0}\n{\"step\":1,\"loss\":2.0}\n");
  EventLog log(folder_, 0);
  EXPECT_EQ(metrics_without_time(), "{\"step\":0,\"loss\":1.0}\n");
}

TEST_F(EventLogTest, ARunThatGoesOnHasNoFiguresOfAnAveragedModel) {
  {
    EventLog log(folder_);
    log.write(10, Scalars{{"loss", 2}});
    log.write(10, Scalars{{"averaged_checkpoints", 3}, {"averaged_valid_loss", 1}});
  }
  { EventLog(folder_).write(11, Scalars{{"loss", 1}}); }
  EXPECT_NE(metrics_without_time().find("averaged_valid_loss"), std::string::npos) << "it does not resume";
  EventLog log(folder_, 10);
  EXPECT_EQ(metrics_without_time(), "{\"step\":10,\"loss\":2.0}\n");
}

TEST_F(EventLogTest, AValidationThatIsDoneAgainStandsThereOnce) {
  const ValidationReport::Sample sample{"a", "b", "c"};
  {
    EventLog log(folder_);
    log.write(10, Scalars{{"loss", 2}});
    log.write(10, Scalars{{"valid_loss", 3}});
    log.write(10, std::span(&sample, 1));
  }
  const auto validations = [&] {
    const std::string samples = read_file(folder_ / "samples.jsonl");
    return std::pair(metrics_without_time().find("valid_loss") != std::string::npos, !samples.empty());
  };
  { EventLog log(folder_, 10, 10); }
  EXPECT_EQ(validations(), std::pair(true, true)) << "the run knows of it";
  { EventLog log(folder_, 10, 5); }
  EXPECT_EQ(validations(), std::pair(false, false));
  EXPECT_EQ(metrics_without_time(), "{\"step\":10,\"loss\":2.0}\n");
}

TEST_F(EventLogTest, DropsATornLineAndEndsAWholeOne) {
  fs::create_directories(folder_);
  const std::string whole = "{\"step\":1,\"time\":1700000000.0,\"loss\":1.0}";
  const std::vector<std::string> torn_lines = {"{", "{\"step\":2", "{\"step\":2,\"time\":1.0", "{\"ste\n",
                                               std::string(3, '\0')};
  for (const std::string& torn : torn_lines) {
    write_file(metrics(), whole + "\n" + torn);
    EventLog log(folder_);
    EXPECT_EQ(read_file(metrics()), whole + "\n") << torn;
  }
  write_file(metrics(), whole);  // only the line break is missing
  EventLog log(folder_, 1);
  EXPECT_EQ(read_file(metrics()), whole + "\n");
}

TEST_F(EventLogTest, RefusesALogThatIsNone) {
  fs::create_directories(folder_);
  for (const char* line : {"hello", "[]", "{}", "{\"step\":\"3\"}", "{\"step\":-1}", "{\"step\":1.5}",
                           "{\"step\":18446744073709551615}", "{\"step\":2,\"loss\":1,\"loss\":2}", ""}) {
    write_file(metrics(), "{\"step\":1}\n" + std::string(line) + "\n{\"step\":3}\n");
    try {
      EventLog log(folder_, 2);
      FAIL() << "no error for " << line;
    } catch (const FileError& error) {
      EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2: expected"), std::string::npos) << error.what();
    }
  }
}

TEST_F(EventLogTest, RefusesUnusableScalars) {
  EventLog log(folder_);
  EXPECT_THROW(log.write(-1, Scalars{{"loss", 1}}), DataError);
  EXPECT_THROW(log.write(1, Scalars{{"time", 1}}), DataError);
  EXPECT_THROW(log.write(1, Scalars{{"loss", 1}, {"loss", 2}}), DataError);
  EXPECT_EQ(read_file(metrics()), "");
  EXPECT_THROW(EventLog(folder_, -2), DataError);
}

TEST_F(EventLogTest, NamesTheFileThatCannotBeWritten) {
  write_file(folder_, "a file where a folder should be");
  EXPECT_THROW(EventLog{folder_}, FileError);
}

}  // namespace
}  // namespace attune

#include "attune/text/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <chrono>
#include <csignal>
#include <thread>

#include "attune/base/file.h"
#include "attune/base/random.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Lines = std::vector<std::string>;

/// One gzip member.
std::string gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class TextFile : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& bytes) {
    const auto path = folder_.path() / name;
    write_file(path, bytes);
    return path;
  }
  Lines lines_of(const std::string& bytes, const TextLimits& limits = {}) {
    return read_lines(write("text", bytes), limits);
  }

  TemporaryFolder folder_{memory_folder()};
};

TEST_F(TextFile, SplitsAtLineEnds) {
  EXPECT_EQ(lines_of(""), Lines{});
  EXPECT_EQ(lines_of("\n"), Lines{""});
  EXPECT_EQ(lines_of("a\nb\n"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\nb"), (Lines{"a", "b"}));
  EXPECT_EQ(lines_of("a\r\n\r\nb\r\n"), (Lines{"a", "", "b"}));
  EXPECT_EQ(lines_of("a\rb\n\r"), (Lines{"a\rb", ""}));
  EXPECT_EQ(lines_of("\xEF\xBB\xBFGr\xC3\xBC\xC3\x9F"
                     "e\n"),
            Lines{"Grüße"});
}

TEST_F(TextFile, ReadsGzipUnderAnyName) {
  EXPECT_EQ(lines_of(gzip("Grüße 🙂\r\nzwei\n")), (Lines{"Grüße 🙂", "zwei"}));
  EXPECT_EQ(lines_of(gzip("")), Lines{});
  EXPECT_EQ(lines_of(gzip("one\ntw") + gzip("o\nthree\n")), (Lines{"one", "two", "three"}));
}

TEST_F(TextFile, ReadsLinesLongerThanItsBuffers) {
  std::string text;
  Lines expected;
  for (size_t i = 0; i < 40; ++i) {
    expected.emplace_back(i * 20'000, static_cast<char>('a' + i % 26));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), expected);
  EXPECT_EQ(lines_of(gzip(text)), expected);
}

RC_GTEST_FIXTURE_PROP(TextFile, RoundTripsPlainAndCompressed, ()) {
  const auto lines =
      *rc::gen::container<Lines>(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab \t"))));
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  RC_ASSERT(lines_of(text) == lines);
  RC_ASSERT(lines_of(gzip(text)) == lines);
}

TEST_F(TextFile, RefusesDamagedGzip) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919) + "\n";
  const std::string packed = gzip(text);
  for (const size_t kept : {size_t{2}, size_t{9}, packed.size() / 2, packed.size() - 1}) {
    const std::string message = message_of<FileError>([&] { lines_of(packed.substr(0, kept)); });
    EXPECT_TRUE(message.ends_with("text: the gzip data is cut off")) << message;
  }
  std::string damaged = packed;
  damaged[packed.size() - 6] ^= 1;  // of the checksum
  EXPECT_NE(message_of<FileError>([&] { lines_of(damaged); }).find("damaged"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { lines_of(packed + "xyz"); }).find("follows"), std::string::npos);
}

TEST_F(TextFile, NamesFileAndLineOfBadText) {
  const std::string message = message_of<DataError>([&] { lines_of("good\nbad \xC3\x28\n"); });
  EXPECT_TRUE(message.ends_with("text:2: the line is not valid UTF-8")) << message;
  const TextLimits limits{.line_bytes = 4};
  EXPECT_EQ(lines_of("abcd\r\nabcd", limits), (Lines{"abcd", "abcd"}));
  const std::string long_line = message_of<DataError>([&] { lines_of("abcd\nabcd\nabcde\n", limits); });
  EXPECT_TRUE(long_line.ends_with("text:3: a line of more than 4 bytes")) << long_line;
  EXPECT_THROW(lines_of("abcdefghi", limits), DataError);
}

TEST_F(TextFile, BoundsWhatADecompressionBombYields) {
  const std::string zeros = gzip(std::string(64 << 20, '\n'));
  ASSERT_LT(zeros.size(), size_t{1} << 20);
  EXPECT_NE(message_of<FileError>([&] {
              lines_of(zeros, {.total_bytes = 1 << 20});
            }).find("larger than the limit of 1048576 bytes"),
            std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { lines_of(zeros, {.lines = 1000}); }).find("more than 1000 lines"),
            std::string::npos);
}

TEST_F(TextFile, BoundsTheBytesThatAByteOfGzipYields) {
  const std::string bomb = gzip(std::string(64 << 20, ' ') + "\n"), honest = gzip(std::string(1 << 19, ' ') + "\n");
  const TextLimits limits{.line_bytes = int64_t{1} << 30, .gzip_bytes = 1 << 20};
  const std::string expected = ", 1048576 and 64 a byte are accepted";
  EXPECT_NE(message_of<FileError>([&] { lines_of(bomb, limits); }).find(expected), std::string::npos);
  EXPECT_EQ(lines_of(honest, limits).size(), 1u);
  // Plain text has no limit, so that one that is read as a stream may be larger than memory.
  EXPECT_EQ(TextLimits{}.total_bytes, INT64_MAX);
  EXPECT_EQ(TextLimits{}.lines, INT64_MAX);
  Random random(1);
  std::string noise;
  while (noise.size() < size_t{2} << 20) noise += static_cast<char>('a' + static_cast<int>(random.uniform() * 26));
  EXPECT_EQ(lines_of(noise, limits), Lines{noise});
  EXPECT_EQ(lines_of(gzip(noise), limits), Lines{noise});
}

// 64 KB that become 64 million lines, each of which would take memory of its own.
TEST_F(TextFile, BoundsTheLinesThatAByteYields) {
  const std::string bomb = gzip(std::string(64 << 20, '\n')), honest = gzip(std::string(1 << 19, '\n'));
  EXPECT_NE(message_of<FileError>([&] {
              LineReader reader(write("bomb", bomb));
              for (std::string line; reader.next(line);) ASSERT_LT(reader.line_number(), 1 << 22);
            }).find("16 a byte are accepted"),
            std::string::npos);
  EXPECT_EQ(lines_of(honest).size(), size_t{1} << 19);
}

TEST_F(TextFile, SaysWhyAFileCannotBeRead) {
  EXPECT_NE(message_of<FileError>([&] { read_lines(folder_.path() / "absent"); }).find("absent"), std::string::npos);
  EXPECT_NE(message_of<FileError>([&] { read_lines(folder_.path()); }).find("directory"), std::string::npos);
}

TEST_F(TextFile, HandsOverALineOfAPipeBeforeTheNextIsThere) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  LineReader reader(ends[0], "standard input");
  std::string line;
  for (const std::string text : {"first", "second"}) {
    const std::string sent = text + "\n";
    ASSERT_EQ(::write(ends[1], sent.data(), sent.size()), static_cast<ssize_t>(sent.size()));
    ASSERT_TRUE(reader.next(line));  // would hang if the reader waited for a full buffer
    EXPECT_EQ(line, text);
  }
  EXPECT_EQ(reader.line_number(), 2);
  ::close(ends[1]);
  EXPECT_FALSE(reader.next(line));
  EXPECT_EQ(reader.line_number(), 2);
  EXPECT_EQ(::fcntl(ends[0], F_GETFD), 0) << "a descriptor that was given stays open";
  ::close(ends[0]);
}

TEST_F(TextFile, KnowsWhetherALineIsAtHand) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  LineReader reader(ends[0], "pipe", {.line_bytes = 8});
  const auto write = [&](std::string_view text) {
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  std::string line;
  EXPECT_FALSE(reader.at_hand(0));
  write("on");
  EXPECT_FALSE(reader.at_hand(0)) << "half a line";
  write("e\ntwo\nthr");
  EXPECT_TRUE(reader.at_hand(0));
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "one");
  EXPECT_TRUE(reader.at_hand(0));
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "two");
  EXPECT_FALSE(reader.at_hand(0));
  write("ee is too long");
  EXPECT_TRUE(reader.at_hand(0)) << "a line that will be refused";
  write(", and how\nfo");
  EXPECT_THROW(reader.next(line), DataError);
  EXPECT_FALSE(reader.at_hand(0));
  write("ur\r\nfive");
  EXPECT_TRUE(reader.at_hand(0));
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "four");
  EXPECT_FALSE(reader.at_hand(0));
  ::close(ends[1]);
  EXPECT_TRUE(reader.at_hand(0)) << "the end";
  ASSERT_TRUE(reader.next(line));
  EXPECT_EQ(line, "five");
  EXPECT_EQ(reader.line_number(), 5);
  EXPECT_TRUE(reader.at_hand(0));
  EXPECT_FALSE(reader.next(line));
  ::close(ends[0]);
}

TEST_F(TextFile, ASignalIsNoLine) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  std::jthread other([&, waiting = ::pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ::pthread_kill(waiting, SIGUSR1);
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    ::close(ends[1]);
  });
  LineReader reader(ends[0], "pipe");
  EXPECT_FALSE(reader.at_hand(200)) << "the end comes later";
  other.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(reader.at_hand(0)) << "the end";
  ::close(ends[0]);
}

TEST_F(TextFile, KnowsGzipThatArrivesByteByByte) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  std::jthread writer([&] {
    for (const char byte : gzip("slow\n")) EXPECT_EQ(::write(ends[1], &byte, 1), 1);
    ::close(ends[1]);
  });
  LineReader reader(ends[0], "pipe");
  std::string line;
  EXPECT_TRUE(reader.next(line));
  EXPECT_EQ(line, "slow");
  EXPECT_FALSE(reader.next(line));
  ::close(ends[0]);
}

std::vector<std::string> pieces_of(const std::filesystem::path& path, size_t piece_bytes,
                                   const TextLimits& limits = {}) {
  std::vector<std::string> pieces;
  TextReader reader(path, limits, piece_bytes);
  for (std::string piece; reader.next(piece);) pieces.push_back(piece);
  return pieces;
}

RC_GTEST_FIXTURE_PROP(TextFile, PiecesTogetherAreTheTextExactly, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "\n", "\r\n", "é", "日本", "🙂", "\r", std::string(70, 'x')));
  std::string text;
  for (const std::string& part : parts) text += part;
  const bool packed = *rc::gen::arbitrary<bool>();
  const size_t piece_bytes = *rc::gen::inRange<size_t>(64, 90);
  std::string together;
  for (const std::string& piece : pieces_of(write("text", packed ? gzip(text) : text), piece_bytes)) {
    RC_ASSERT(!piece.empty());
    RC_ASSERT(piece.size() <= piece_bytes);
    RC_ASSERT(valid_utf8(piece));
    together += piece;
  }
  RC_ASSERT(together == text);
}

TEST_F(TextFile, CutsPiecesAfterLineEnds) {
  const std::string line(39, 'x');
  EXPECT_EQ(pieces_of(write("text", "\xEF\xBB\xBF" + line + "\n" + line + "\n\n"), 64),
            (Lines{line + "\n", line + "\n\n"}));
  EXPECT_EQ(pieces_of(write("text", "a\r\nb"), 64), Lines{"a\r\nb"});
  EXPECT_EQ(pieces_of(write("text", ""), 64), Lines{});
}

TEST_F(TextFile, PiecesNameTheLineOfBadText) {
  std::string text(20'000, '\n');
  text += "good\nbad \xC3\x28\n";
  const std::string message = message_of<DataError>([&] { pieces_of(write("text", text), 1000); });
  EXPECT_TRUE(message.ends_with("text:20002: the line is not valid UTF-8")) << message;
  EXPECT_THROW(pieces_of(write("text", std::string(500, '\x80')), 64), DataError);
  EXPECT_THROW(pieces_of(write("text", "cut off \xE6\x97"), 64), DataError);
  EXPECT_NE(message_of<FileError>([&] {
              pieces_of(write("text", gzip(std::string(8 << 20, ' '))), 1000, {.gzip_bytes = 1 << 20});
            }).find("1048576 and 64 a byte are accepted"),
            std::string::npos);
  EXPECT_THROW(TextReader(folder_.path() / "absent"), FileError);
}

TEST(ValidUtf8, AcceptsTextOfAllLengths) {
  for (const char* text : {"", "a", "plain ASCII text", "Grüße", "日本語", "🙂", "aé日🙂 twelve more bytes",
                           "\u0080", "\u07FF", "\u0800", "\uD7FF", "\uE000", "\uFFFF", "\U00010000", "\U0010FFFF"})
    EXPECT_TRUE(valid_utf8(text)) << text;
  EXPECT_TRUE(valid_utf8(std::string_view("\0", 1)));
}

TEST(ValidUtf8, RefusesWhatUnicodeForbids) {
  for (const char* text : {"\x80", "\xBF", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80",
                           "\xED\xBF\xBF", "\xE2\x82", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF0\x9F\x99",
                           "\xF5\x80\x80\x80", "\xFF", "eight by\xC3", "\xC3\x28 and more"})
    EXPECT_FALSE(valid_utf8(text)) << testing::PrintToString(std::string(text));
}

RC_GTEST_PROP(ValidUtf8, AgreesWithTheDefinition, ()) {
  const auto code_points = *rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 0x120000));
  std::string text;
  bool expected = true;
  for (const uint32_t c : code_points) {
    if (c < 0x80) {
      text += static_cast<char>(c);
    } else if (c < 0x800) {
      text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 63))};
    } else if (c < 0x10000) {
      text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 63)),
               static_cast<char>(0x80 | (c & 63))};
    } else {
      text += {static_cast<char>(0xF0 | c >> 18), static_cast<char>(0x80 | (c >> 12 & 63)),
               static_cast<char>(0x80 | (c >> 6 & 63)), static_cast<char>(0x80 | (c & 63))};
    }
    if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) expected = false;
  }
  RC_ASSERT(valid_utf8(text) == expected);
  if (expected && !text.empty() && static_cast<unsigned char>(text.back()) >= 0x80)
    RC_ASSERT(!valid_utf8(std::string_view(text).substr(0, text.size() - 1)));
}

}  // namespace
}  // namespace attune

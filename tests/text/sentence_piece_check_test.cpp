#include "attune/text/sentence_piece_check.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "attune/base/file.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3) + varint(value);
}
std::string message(uint32_t field, const std::string& bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + bytes;
}

enum Type { normal = 1, unknown, control, user_defined, unused, byte };

std::string piece(const std::string& text, Type type = normal, float score = -1) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &score, 4);
  return message(1, message(1, text) + varint(2 << 3 | 5) + bytes + number(3, type));
}

const std::string specials = piece("<unk>", unknown) + piece("<s>", control) + piece("</s>", control);
const std::string letters = piece("\u2581") + piece("a") + piece("b");

/// The message of the error, without the name that it begins with.
std::string error_of(const std::string& model) {
  const std::string text = message_of<FileError>([&] { SentencePieceTokenizer(model, "m.model"); });
  EXPECT_TRUE(text.starts_with("m.model: ")) << text;
  return text.substr(std::min(text.size(), std::strlen("m.model: ")));
}

/// A model with this normalizer table; its encoding of "aab".
std::vector<int32_t> encode_with(const std::string& charsmap) {
  return SentencePieceTokenizer(specials + letters + message(3, message(2, charsmap)), "m.model").encode("aab");
}

/// A table of 256 units whose only rule maps the byte `from` to the text at `place` of `replacements`.
std::string charsmap(unsigned char from, uint32_t place, const std::string& replacements, uint32_t units = 256,
                     uint32_t root_offset = 0) {
  std::vector<uint32_t> trie(units, 0x80000000u);
  const uint32_t leaf = from ^ 1u;  // the rule's unit leads to base `leaf`, where its value stands
  trie[0] = root_offset << 10;
  trie[from] = uint32_t{from} | 1u << 8 | (leaf ^ from) << 10;
  trie[leaf] = 0x80000000u | place;
  std::string bytes(4 + 4 * size_t{units}, '\0');
  const uint32_t size = 4 * units;
  std::memcpy(bytes.data(), &size, 4);
  std::memcpy(bytes.data() + 4, trie.data(), size);
  return bytes + replacements;
}

TEST(SentencePieceCheck, AcceptsAModelMadeByHand) {
  const SentencePieceTokenizer tokenizer(specials + letters, "m.model");
  EXPECT_EQ(tokenizer.encode("ab"), (std::vector<int32_t>{3, 4, 5}));
  EXPECT_EQ(tokenizer.pad_id(), tokenizer.eos_id()) << "without <pad>";
  const SentencePieceTokenizer padded(specials + letters + piece("<pad>", control), "m.model");
  EXPECT_EQ(padded.pad_id(), 6);
}

// Most models leave out the space that a text begins with; others keep it.
TEST(SentencePiece, AWordBehindASpecialTokenHasOneSpace) {
  const std::vector<int32_t> ids = {3, 4, 2, 3, 5, 4, 2, 4};  // " a", </s>, " ba", </s>, "a"
  const SentencePieceTokenizer without(specials + letters, "m.model");
  EXPECT_EQ(without.decode(ids, true), "a</s> ba</s>a");
  EXPECT_EQ(without.decode(ids), "a baa");
  const std::string no_dummy_prefix = number(3, 0), no_removed_spaces = number(4, 0);
  const SentencePieceTokenizer with(specials + letters + message(3, no_dummy_prefix + no_removed_spaces), "m.model");
  EXPECT_EQ(with.decode(ids, true), " a</s> ba</s>a");
}

TEST(SentencePieceCheck, NamesTheMissingSpecialToken) {
  EXPECT_EQ(error_of(piece("<unk>", unknown) + piece("</s>", control) + letters), "the model has no <s> piece");
  EXPECT_EQ(error_of(piece("<unk>", unknown) + piece("<s>", control) + letters), "the model has no </s> piece");
  EXPECT_EQ(error_of(piece("<unk>", unknown) + piece("<s>", control) + piece("</s>") + letters),
            "the model has no </s> piece")
      << "an ordinary piece is no special token";
  EXPECT_NE(error_of(letters).find("unk is not defined"), std::string::npos);
}

TEST(SentencePieceCheck, RefusesBadPieces) {
  EXPECT_EQ(error_of(specials + piece("")), "piece 3 is empty");
  EXPECT_EQ(error_of(specials + piece("\xFF")), "piece 3 is not valid UTF-8 text");
  EXPECT_EQ(error_of(specials + piece(std::string("a\0b", 3))), "piece 3 is not valid UTF-8 text");
  EXPECT_EQ(error_of(specials + piece(std::string(5000, 'a'))), "piece 3 has 5000 bytes, at most 1024 are accepted");
  EXPECT_EQ(error_of(specials + piece("a", static_cast<Type>(7))), "piece 3 has the unknown type 7");
  EXPECT_EQ(error_of(specials + piece("a", normal, std::numeric_limits<float>::quiet_NaN())),
            "the score of piece 3 is not finite");
  EXPECT_NE(error_of(specials + letters + piece("a")).find("already defined"), std::string::npos);
  EXPECT_EQ(error_of(""), "not a SentencePiece model: it has no pieces");
  EXPECT_EQ(error_of(specials + message(2, number(3, 9))), "the model type 9 is unknown");
  EXPECT_EQ(error_of(specials + letters + message(2, varint(35 << 3 | 5) + std::string("\1\0\0\0", 4))),
            "byte_fallback has wire type 5, expected 0");
  std::string symbols, symbol;
  for (int i = 0; i < 65; ++i) symbols += piece(symbol += 'x', user_defined);
  EXPECT_EQ(error_of(specials + symbols), "more than 64 user-defined symbols are prefixes of one another");
  std::string many;
  for (int i = 0; i <= 1 << 20; ++i)
    many += std::string(
        "\x0A\x03\x0A\x01"
        "a",
        5);
  EXPECT_EQ(error_of(many), "has more than 1048576 pieces");
}

TEST(SentencePieceCheck, RefusesWhatIsNotTheShortestProtobuf) {
  const std::string damaged = "not a SentencePiece model, or a damaged one";
  EXPECT_EQ(error_of("hello world"), damaged);
  EXPECT_EQ(error_of((specials + letters).substr(0, 20)), damaged);
  EXPECT_EQ(error_of(specials + std::string("\x8A\x00\x00", 3)), damaged);                  // a tag in two bytes
  EXPECT_EQ(error_of(specials + std::string("\x02\x00", 2)), damaged);                      // field 0
  EXPECT_EQ(error_of(specials + std::string("\x33\x34", 2)), damaged);                      // a group
  EXPECT_EQ(error_of(specials + "\x30\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"), damaged);  // more than 64 bits
  EXPECT_EQ(error_of(specials + "\x32\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F"), damaged);      // a huge length
  EXPECT_EQ(error_of(specials + number(1, 5)), "a part of the model has wire type 0, expected 2");
}

TEST(SentencePieceCheck, FollowsTheNormalizersTrie) {
  const std::string replacements("b\0", 2);
  EXPECT_EQ(encode_with(charsmap('a', 0, replacements)), (std::vector<int32_t>{3, 5, 5, 5})) << "a becomes b";
  const auto error = [](const std::string& map) { return error_of(specials + letters + message(3, message(2, map))); };
  EXPECT_EQ(error(charsmap('a', 2, replacements)), "a normalizer rule lies outside of its table");
  EXPECT_EQ(error(charsmap('a', 0x7FFFFFFF, replacements)), "a normalizer rule lies outside of its table");
  EXPECT_EQ(error(charsmap('a', 0, std::string(200, 'b') + std::string(1, '\0'))),
            "a normalizer rule has more than 128 bytes");
  EXPECT_EQ(error(charsmap('a', 0, "b")), "the normalizer's table is damaged") << "no zero at the end";
  EXPECT_EQ(error(charsmap('a', 0, replacements, 256, 256)), "the normalizer's trie leads outside of itself");
  EXPECT_EQ(error(charsmap('a', 0, replacements, 128)), "the normalizer's trie leads outside of itself");
  EXPECT_EQ(error("abc"), "the normalizer's table is damaged");
  EXPECT_EQ(error(std::string("\xFC\xFF\xFF\xFF", 4) + std::string(2000, '\0')), "the normalizer's table is damaged");
  EXPECT_EQ(error(std::string(3 << 20, '\0')),
            "the normalizer's table has 3145728 bytes, at most 2097152 are accepted");
  std::string loop = charsmap('a', 0, replacements);  // the rule's unit leads back to the root's base: a, aa, aaa ...
  const uint32_t unit = 'a' | 1u << 8 | uint32_t{'a'} << 10;
  std::memcpy(loop.data() + 4 + 4 * 'a', &unit, 4);
  EXPECT_EQ(error(loop), "too many normalizer rules start alike");
  EXPECT_EQ(error_of(specials + letters + message(5, message(2, charsmap('a', 2, replacements)))),
            "a normalizer rule lies outside of its table")
      << "the denormalizer's table";
}

TEST(SentencePieceCheck, DoesNotRunTheModelsSelfTest) {
  const std::string self_test = message(4, message(1, message(1, "ab") + message(2, "wrong")));
  testing::internal::CaptureStderr();
  const SentencePieceTokenizer tokenizer(specials + letters + self_test, "m.model");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  const TemporaryFolder folder(memory_folder());
  tokenizer.save(folder / "m.model");
  EXPECT_EQ(read_file(folder / "m.model"), specials + letters + self_test) << "what is saved is what was read";
}

}  // namespace
}  // namespace attune

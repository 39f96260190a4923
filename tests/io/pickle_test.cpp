#include "attune/io/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

PickleProgram read(const std::string& pickle) {
  return read_pickle(std::as_bytes(std::span(pickle)), "x.bin");
}

// A pickle of protocol 2 in pieces.
std::string text(const std::string& s) {
  return "X"s + static_cast<char>(s.size()) + "\0\0\0"s + s;
}
std::string storage(int elements, const std::string& type = "FloatStorage", const std::string& key = "0") {
  return "(" + text("storage") + "ctorch\n" + type + "\n" + text(key) + text("cpu") + "K" +
         static_cast<char>(elements) + "tQ";
}
std::string number(int n) {
  return "J"s + static_cast<char>(n) + (n < 0 ? "\xff\xff\xff" : "\0\0\0"s);
}
std::string tuple(const std::vector<int>& items) {
  std::string all = "(";
  for (const int i : items) all += number(i);
  return all + "t";
}
std::string tensor(const std::string& storage, int offset, const std::vector<int>& shape,
                   const std::vector<int>& strides) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(offset) + tuple(shape) + tuple(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}
std::string refusal(const std::string& pickle) {
  const std::string message = message_of<FileError>([&] { read(pickle); });
  EXPECT_THAT(message, HasSubstr("x.bin"));
  return message;
}

TEST(Pickle, DescribesTensors) {
  const std::string pickle = "\x80\x02}" + text("w") + tensor(storage(12), 1, {2, 3}, {4, 1}) + "s.";
  const PickleProgram program = read(pickle + "more");
  EXPECT_EQ(program.bytes, pickle.size());
  ASSERT_EQ(program.tensors.size(), 1u);
  EXPECT_EQ(program.tensors[0].shape, (Shape{2, 3}));
  EXPECT_EQ(program.tensors[0].strides, (std::vector<int64_t>{4, 1}));
  EXPECT_EQ(program.tensors[0].offset, 1);
  EXPECT_EQ(program.storages[0].elements, 12);
  EXPECT_EQ(program.storages[0].type, StoredType::f32);
  ASSERT_NE(program.result_as<PickleDict>(), nullptr);
  EXPECT_EQ(program.result_as<PickleDict>()->items.size(), 2u);
}

TEST(Pickle, ReadsNumbers) {
  EXPECT_EQ(*read("J\xfe\xff\xff\xff.").result_as<int64_t>(), -2);
  EXPECT_EQ(*read("M\x01\x02.").result_as<int64_t>(), 0x201);
  EXPECT_EQ(*read("\x8a\x02\x00\xff."s).result_as<int64_t>(), -256);
  EXPECT_EQ(*read("\x8a\x00."s).result_as<int64_t>(), 0);
  EXPECT_EQ(*read("G\x3f\xf8\0\0\0\0\0\0."s).result_as<double>(), 1.5);
}

TEST(Pickle, RefusesWhatTensorsDoNotNeed) {
  EXPECT_THAT(refusal("cposix\nsystem\n(" + text("true") + "tR."), HasSubstr("asks for \"posix system\""));
  EXPECT_THAT(refusal(text("builtins") + text("eval") + "\x93."), HasSubstr("asks for \"builtins eval\""));
  EXPECT_THAT(refusal("ctorch\nCharStorage\n."), HasSubstr("asks for \"torch CharStorage\""));
  EXPECT_THAT(refusal("(iposix\nsystem\n."), HasSubstr("opcode 0x69 is none that tensors need; to convert the file"));
  EXPECT_THAT(refusal(")\x81."), HasSubstr("opcode 0x81"));
  EXPECT_THAT(refusal("ccollections\nOrderedDict\n(K\1tR."), HasSubstr("an OrderedDict has arguments"));
  EXPECT_THAT(refusal("ctorch\nFloatStorage\n)R."), HasSubstr("a storage is called"));
  EXPECT_THAT(refusal("K\1K\2R."), HasSubstr("found something else than"));
  EXPECT_THAT(refusal("K\1}b."), HasSubstr("found something else than a dict with attributes"));
}

TEST(Pickle, RefusesViewsBeyondTheirStorage) {
  EXPECT_NO_THROW(read(tensor(storage(6), 0, {2, 3}, {3, 1}) + "."));
  EXPECT_NO_THROW(read(tensor(storage(6), 5, {1}, {100}) + "."));
  EXPECT_THAT(refusal(tensor(storage(6), 1, {2, 3}, {3, 1}) + "."), HasSubstr("leaves its storage of 6 elements"));
  EXPECT_THAT(refusal(tensor(storage(6), 0, {2, 3}, {4, 1}) + "."), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(tensor(storage(6), 0, {2}, {-1}) + "."), HasSubstr("stride -1"));
  EXPECT_THAT(refusal(tensor(storage(6), -1, {2}, {1}) + "."), HasSubstr("begins at -1"));
  EXPECT_THAT(refusal(tensor(storage(6), 6, {1}, {1}) + "."), HasSubstr("begins at 6"));
  EXPECT_THAT(refusal(tensor(storage(6), 0, {7}, {0}) + "."), HasSubstr("on a storage of 6 elements"));
  EXPECT_THAT(refusal(tensor(storage(6), 0, {2, 3}, {1}) + "."), HasSubstr("2 dimensions has 1 strides"));
  EXPECT_THAT(refusal(tensor(storage(6), 0, {-2}, {1}) + "."), HasSubstr("-2"));
  EXPECT_THAT(refusal(storage(6) + storage(7) + "."), HasSubstr("storage \"0\" has two types or sizes"));
  EXPECT_THAT(refusal(storage(6) + storage(6, "HalfStorage") + "."), HasSubstr("two types or sizes"));
}

TEST(Pickle, RefusesDamage) {
  EXPECT_THAT(refusal(""), HasSubstr("ends at byte 0"));
  EXPECT_THAT(refusal("."), HasSubstr("needs 1 values, has 0"));
  EXPECT_THAT(refusal("K"), HasSubstr("ends at byte 1"));
  EXPECT_THAT(refusal("X\xff\xff\xff\xffw."), HasSubstr("needs 4294967295 bytes"));
  EXPECT_THAT(refusal("t."), HasSubstr("there is no mark"));
  EXPECT_THAT(refusal("h\3."), HasSubstr("value 3 was not put into the memo"));
  EXPECT_THAT(refusal("Nr\0\0\0\1."s), HasSubstr("value 16777216 is put into the memo"));
  EXPECT_THAT(refusal("}(K\1u."), HasSubstr("a key has no value"));
  EXPECT_THAT(refusal("K\1(\x85."), HasSubstr("needs 1 values, has 0")) << "what is below a mark is not taken";
  EXPECT_THAT(refusal(std::string(65, '(')), HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, 'N')), HasSubstr("more than 1048576 values"));
}

// A list that holds itself, and a thousand levels of tuples: values are no tree that has to be walked or freed.
TEST(Pickle, CyclesAndDepthCostNothing) {
  EXPECT_NO_THROW(read("]q\1h\1a."));
  EXPECT_NO_THROW(read("N" + std::string(100000, '\x85') + "."));
}

}  // namespace
}  // namespace attune

#include "attune/io/safetensors.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/file_size_limit.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class SafetensorsTest : public ::testing::Test {
 protected:
  // A file from a header as it is and as many bytes of data, which count up from 0.
  std::filesystem::path file(const std::string& header, size_t data_bytes, int64_t length = -1) {
    const uint64_t stated = length >= 0 ? static_cast<uint64_t>(length) : header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &stated, 8);
    bytes += header;
    for (size_t i = 0; i < data_bytes; ++i) bytes += static_cast<char>(i);
    write_file(path_, bytes);
    return path_;
  }
  std::string refusal(const std::string& header, size_t data_bytes, int64_t length = -1) {
    const auto path = file(header, data_bytes, length);
    const std::string message = message_of<FileError>([&] { SafetensorsReader reader(path); });
    EXPECT_THAT(message, HasSubstr(path.string()));
    EXPECT_EQ(message.find('\n'), std::string::npos);
    return message;
  }

  TemporaryFolder folder_{memory_folder()};
  std::filesystem::path path_ = folder_ / "x.safetensors";
};

TEST_F(SafetensorsTest, WhatIsWrittenIsRead) {
  const Tensor bytes = Tensor::from<uint8_t>({3}, std::vector<uint8_t>{1, 0, 255});
  const Tensor floats = Tensor::from<float>({2, 2}, std::vector<float>{1.5f, -0.0f, 1e-40f, 3e38f});
  const Tensor doubles = Tensor::from<double>({1, 2}, std::vector<double>{0.1, -1e300});
  const Tensor ints = Tensor::from<int32_t>({2}, std::vector<int32_t>{-7, 7});
  const Tensor longs = Tensor::from<int64_t>({}, std::vector<int64_t>{std::numeric_limits<int64_t>::min()});
  const Tensor nothing = Tensor::empty({0, 5});
  const std::vector<NamedTensor> all = {{"u8", bytes}, {"a.f32", floats}, {"\"quoted\" \xC3\xA9\n", doubles},
                                        {"i32", ints}, {"i64", longs},    {"empty", nothing}};
  write_safetensors(path_, all, {{"state", "{\"x\": \"\xE2\x82\xAC\"}"}, {"", "empty key"}});

  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.names().size(), all.size());
  EXPECT_EQ(reader.element_count(), 3 + 4 + 2 + 2 + 1);
  EXPECT_EQ(reader.metadata().at("state"), "{\"x\": \"\xE2\x82\xAC\"}");
  EXPECT_EQ(reader.metadata().at(""), "empty key");
  for (const auto& [name, tensor, later] : all) {
    const Tensor loaded = reader.load(name);
    EXPECT_EQ(loaded.shape(), tensor.shape()) << name;
    EXPECT_EQ(loaded.dtype(), tensor.dtype()) << name;
    EXPECT_EQ(reader.shape(name), tensor.shape()) << name;
    EXPECT_EQ(reader.dtype(name), tensor.dtype()) << name;
    EXPECT_TRUE(tensor.bytes() == 0 || std::memcmp(loaded.raw(), tensor.raw(), tensor.bytes()) == 0) << name;
  }
}

TEST_F(SafetensorsTest, DataIsAligned) {
  for (int extra = 0; extra < 70; ++extra) {
    write_safetensors(path_,
                      std::vector<NamedTensor>{{std::string(1 + static_cast<size_t>(extra), 'x'), Tensor::zeros({3})}});
    const std::string bytes = read_file(path_);
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    EXPECT_EQ((8 + length) % 64, 0u);
    EXPECT_EQ(bytes.size(), 8 + length + 12);
    EXPECT_EQ(bytes[8], '{');
  }
}

TEST_F(SafetensorsTest, HalfPrecisionBecomesFloat32) {
  // 1, -2, largest, smallest subnormal, -0, infinity (binary16); 1, -2 (bfloat16). Values from IEEE 754-2008,
  // table 3.5.
  const uint16_t halves[] = {0x3C00, 0xC000, 0x7BFF, 0x0001, 0x8000, 0x7C00, 0x3F80, 0xC000};
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[6],"data_offsets":[0,12]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[12,16]}})";
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(halves), sizeof(halves));
  write_file(path_, bytes);
  const SafetensorsReader reader(path_);
  EXPECT_EQ(reader.dtype("h"), DType::f32);
  const Tensor h = reader.load("h");
  const float expected[] = {1.0f, -2.0f, 65504.0f, 0x1p-24f, -0.0f, std::numeric_limits<float>::infinity()};
  EXPECT_EQ(std::memcmp(h.raw(), expected, sizeof(expected)), 0);
  const Tensor b = reader.load("b");
  EXPECT_EQ(b.values<float>()[0], 1.0f);
  EXPECT_EQ(b.values<float>()[1], -2.0f);
}

TEST_F(SafetensorsTest, BooleansAreBytes) {
  file(R"({"b":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 2);
  const Tensor b = SafetensorsReader(path_).load("b");
  EXPECT_EQ(b.dtype(), DType::u8);
  EXPECT_EQ(b.values<uint8_t>()[1], 1);
}

TEST_F(SafetensorsTest, WritesWhatIsMadeLater) {
  int made = 0;
  const LaterTensor later{.shape = {2, 3}, .dtype = DType::f32, .make = [&] {
                            ++made;
                            return Tensor::full({2, 3}, 4);
                          }};
  write_safetensors(path_, std::vector<NamedTensor>{{"a", Tensor::full({5}, 1)}, {"w", {}, later}});
  EXPECT_EQ(made, 1);
  write_safetensors(path_, std::vector<NamedTensor>{{"w", {}, later}}, {}, Checksum::sha256);
  EXPECT_EQ(made, 3) << "once for the digest, once for the file";
  SafetensorsReader(path_).verify();
  EXPECT_THAT(SafetensorsReader(path_).names(), ::testing::ElementsAre("w"));
  EXPECT_EQ(SafetensorsReader(path_).load("w").values<float>()[5], 4);
}

TEST_F(SafetensorsTest, LoadIntoChecksShapeAndType) {
  write_safetensors(path_, std::vector<NamedTensor>{{"w", Tensor::full({2, 3}, 4)}});
  const SafetensorsReader reader(path_);
  const Tensor target = Tensor::zeros({2, 3});
  reader.load_into("w", target);
  EXPECT_EQ(target.values<float>()[5], 4.0f);
  EXPECT_THAT(message_of<FileError>([&] {
                reader.load_into("w", Tensor::zeros({3, 2}));
              }),
              HasSubstr("tensor \"w\" has shape [2, 3], needs [3, 2]"));
  EXPECT_THAT(message_of<FileError>([&] {
                reader.load_into("w", Tensor::zeros({2, 3}, {.dtype = DType::f64}));
              }),
              HasSubstr("tensor \"w\" is float32, needs float64"));
  EXPECT_THAT(message_of<FileError>([&] { reader.load("v"); }), HasSubstr("has no tensor \"v\""));
}

TEST_F(SafetensorsTest, MappedTensorsAreTheFile) {
  const Tensor both = Tensor::from<float>({4, 16}, std::vector<float>(64, 2.5f));
  write_safetensors(path_, std::vector<NamedTensor>{{"q", both.rows(0, 1)},
                                                    {"narrow", Tensor::full({3}, 1, {.dtype = DType::u8})},
                                                    {"bias", Tensor::full({3}, 7)},
                                                    {"scales", Tensor::full({32}, 0.5).to(DType::bf16)},
                                                    {"k", both.rows(1, 4)}});
  Tensor q, k;
  {
    const SafetensorsReader reader(path_);
    q = reader.map("q", DType::f32);
    k = reader.map("k", DType::f32);
    EXPECT_FALSE(reader.map("q", DType::f64).defined());
    EXPECT_EQ(reader.map_or_copy("bias", DType::f32).values<float>()[2], 7.0f);
    EXPECT_EQ(reader.map_or_copy("scales", DType::bf16, 64).shape(), Shape({32}));
    EXPECT_EQ(reader.load("scales").values<float>()[31], 0.5f) << "elsewhere bfloat16 becomes float32";
    EXPECT_THAT(message_of<FileError>([&] { reader.map_or_copy("narrow", DType::f32); }),
                HasSubstr("tensor \"narrow\" is U8, needs F32"));
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(q.raw()) % 64, 0u);
  const Tensor joined = Tensor::joined(std::array{q, k});  // rows of one tensor stay together, and the file mapped
  ASSERT_TRUE(joined.defined());
  EXPECT_EQ(joined.shape(), both.shape());
  q.fill(-1);
  EXPECT_EQ(q.values<float>()[0], -1.0f);
  EXPECT_EQ(SafetensorsReader(path_).load("q").values<float>()[0], 2.5f) << "what is written stays with the process";
}

TEST_F(SafetensorsTest, ValuesThatAreNotAlignedAreNotMapped) {
  file(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
       5);
  const SafetensorsReader reader(path_);
  const bool aligned = reinterpret_cast<uintptr_t>(reader.map("a", DType::u8).raw()) % 4 == 3;
  EXPECT_EQ(reader.map("w", DType::f32).defined(), aligned);
  const double expected = reader.load("w").item();
  EXPECT_EQ(reader.map_or_copy("w", DType::f32).item(), expected);
  const Tensor far = reader.map_or_copy("a", DType::u8, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(far.raw()) % 64, 0u);
  EXPECT_EQ(far.values<uint8_t>()[0], 0);
}

TEST_F(SafetensorsTest, RefusesBrokenFraming) {
  write_file(path_, "1234567");
  EXPECT_THAT(message_of<FileError>([&] { SafetensorsReader r(path_); }), HasSubstr("7 bytes, needs at least 8"));
  EXPECT_THAT(refusal("{}", 0, 3), HasSubstr("header length 3 is beyond the file"));
  EXPECT_THAT(refusal("{}", 0, 100'000'001), HasSubstr("above the limit"));
  EXPECT_THAT(refusal("{}", 0, std::numeric_limits<int64_t>::max()), HasSubstr("above the limit"));
  EXPECT_THAT(refusal("{}", 4), HasSubstr("has 4 bytes of data, its tensors have 0"));
  EXPECT_NO_THROW(SafetensorsReader(file("{}  ", 0)));
}

TEST_F(SafetensorsTest, APointerOfGitLfsIsNamed) {
  write_file(path_, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n");
  EXPECT_EQ(message_of<FileError>([&] { SafetensorsReader r(path_); }),
            path_.string() + ": is a pointer of Git LFS, not the file itself: run \"git lfs pull\"");
}

TEST_F(SafetensorsTest, RefusesBrokenHeaders) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not valid JSON"},
      {"{", "not valid JSON at byte"},
      {"{} x", "not valid JSON"},
      {"[]", "needs an object, found a list"},
      {"3", "needs an object, found a number"},
      {R"({"w":3})", "needs an object for \"w\", found a number"},
      {R"({"w":{"dtype":"F32","shape":[1]}})", "tensor \"w\": has no data_offsets"},
      {R"({"w":{}})", "tensor \"w\": has no dtype"},
      {R"({"w":{"dtype":"F8","shape":[1],"data_offsets":[0,4]}})", "dtype \"F8\" is unknown"},
      {R"({"w":{"dtype":1}})", "dtype needs text, found a number"},
      {R"({"w":{"dtype":["F32"]}})", "dtype needs text, found a list"},
      {R"({"w":{"size":1}})", "tensor \"w\": has key \"size\""},
      {R"({"w":{"shape":{}}})", "shape needs a list of numbers, found an object"},
      {R"({"w":{"shape":[[1]]}})", "shape needs at most 6 sizes, found a list"},
      {R"({"w":{"shape":[-1]}})", "found a negative number"},
      {R"({"w":{"shape":[1.5]}})", "found a fraction"},
      {R"({"w":{"shape":["1"]}})", "found text \"1\""},
      {R"({"w":{"shape":[null]}})", "found null"},
      {R"({"w":{"shape":[1,1,1,1,1,1,1]}})", "found more than 6 numbers"},
      {R"({"w":{"shape":[18446744073709551615]}})", "beyond 2^63"},
      {R"({"w":{"shape":[99999999999999999999]}})", "beyond 2^64"},
      {R"({"w":{"shape":[4294967296,4294967296]}})", "more than 281474976710656 elements"},
      {R"({"w":{"data_offsets":[0]}})", "data_offsets has 1 numbers, needs 2"},
      {R"({"w":{"data_offsets":[0,1,2]}})", "found more than 2 numbers"},
      {R"({"w":{"dtype":"F32","dtype":"F32"}})", "has dtype twice"},
      {R"({"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{}})", "has \"w\" twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "has \"__metadata__\" twice"},
      {R"({"__metadata__":{"a":"1","a":"2"}})", "metadata has \"a\" twice"},
      {R"({"__metadata__":{"a":1}})", "metadata \"a\" needs text, found a number"},
      {R"({"__metadata__":{"a":{}}})", "metadata \"a\" needs text, found an object"},
      {"{\"w\xFF\":{}}", "not valid JSON"},
      {R"({"new\nline":1})", "\"new\\nline\""},
  };
  for (const auto& [header, expected] : cases) EXPECT_THAT(refusal(header, 0), HasSubstr(expected)) << header;
  EXPECT_THAT(refusal(std::string("{}\0x", 4), 0), HasSubstr("not valid JSON at byte 3"));
}

TEST_F(SafetensorsTest, RefusesOffsetsThatDoNotFit) {
  const auto header = [](const char* a, const char* b) {
    return fmt::format(
        R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":{}}},"b":{{"dtype":"F32","shape":[1],"data_offsets":{}}}}})",
        a, b);
  };
  EXPECT_NO_THROW(SafetensorsReader(file(header("[0,8]", "[8,12]"), 12)));
  EXPECT_NO_THROW(SafetensorsReader(file(header("[4,12]", "[0,4]"), 12)));
  EXPECT_THAT(refusal(header("[0,8]", "[4,8]"), 8), HasSubstr("neither overlap nor leave gaps"));
  EXPECT_THAT(refusal(header("[0,8]", "[12,16]"), 16), HasSubstr("tensor \"b\": data begins at byte 12, needs 8"));
  EXPECT_THAT(refusal(header("[4,12]", "[12,16]"), 16), HasSubstr("tensor \"a\": data begins at byte 4, needs 0"));
  EXPECT_THAT(refusal(header("[0,8]", "[8,12]"), 11), HasSubstr("do not lie in the 11 bytes of data"));
  EXPECT_THAT(refusal(header("[0,8]", "[8,12]"), 13), HasSubstr("has 13 bytes of data, its tensors have 12"));
  EXPECT_THAT(refusal(header("[8,0]", "[8,12]"), 12), HasSubstr("data_offsets [8, 0]"));
  EXPECT_THAT(refusal(header("[0,4]", "[4,8]"), 8),
              HasSubstr("shape [2] of F32 takes 8 bytes, data_offsets [0, 4] have 4"));
  EXPECT_THAT(refusal(header("[0,9223372036854775807]", "[4,8]"), 8), HasSubstr("do not lie in the 8 bytes"));
}

TEST_F(SafetensorsTest, RefusesDeepNestingWithoutUsingTheStack) {
  std::string deep = "{\"w\":";
  deep.append(10'000'000, '[');
  EXPECT_THAT(refusal(deep, 0), HasSubstr("needs an object for \"w\", found a list"));
}

TEST_F(SafetensorsTest, WriterRefusesWhatItCouldNotRead) {
  const Tensor x = Tensor::zeros({1});
  const auto write = [&](const std::vector<NamedTensor>& tensors,
                         const std::map<std::string, std::string>& metadata = {}) {
    return message_of<FileError>([&] { write_safetensors(path_, tensors, metadata); });
  };
  EXPECT_THAT(write({{"a", x}, {"a", x}}), HasSubstr("the name \"a\" is taken"));
  EXPECT_THAT(write({{"__metadata__", x}}), HasSubstr("the name \"__metadata__\" is taken"));
  EXPECT_THAT(write({{"a", Tensor()}}), HasSubstr("tensor \"a\" has no data"));
  EXPECT_THAT(write({{"\xFF", x}}), HasSubstr("not valid UTF-8"));
  EXPECT_THAT(write({{"a", x}}, {{"k", "\xC3"}}), HasSubstr("not valid UTF-8"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(SafetensorsTest, OldFileSurvivesAFullDisk) {
  write_safetensors(path_, std::vector<NamedTensor>{{"w", Tensor::full({10}, 1)}});
  const std::string before = read_file(path_);
  std::string message;
  {
    const FileSizeLimit limit(1 << 16);
    message = message_of<FileError>([&] {
      write_safetensors(path_, std::vector<NamedTensor>{{"w", Tensor::full({1 << 20}, 2)}});
    });
  }
  EXPECT_THAT(message, HasSubstr("cannot write " + path_.string()));
  EXPECT_EQ(read_file(path_), before);
  const auto files = std::distance(std::filesystem::directory_iterator(folder_.path()), {});
  EXPECT_EQ(files, 1) << "the temporary file is removed";
  write_safetensors(path_, std::vector<NamedTensor>{{"w", Tensor::full({1 << 20}, 2)}});
  EXPECT_EQ(SafetensorsReader(path_).load("w").values<float>().back(), 2.0f);
}

}  // namespace
}  // namespace attune

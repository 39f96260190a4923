#include "attune/io/pytorch_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "attune/io/safetensors.h"
#include "attune/io/tensor_source.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using namespace std::string_literals;

// tests/fixtures/pytorch/make.py wrote them.
std::filesystem::path fixture(const std::string& name) {
  return source_dir() / "tests/fixtures/pytorch" / name;
}

std::string bytes_of(const Tensor& tensor) {
  const HostView view(tensor);
  return {reinterpret_cast<const char*>(view.bytes().data()), view.bytes().size()};
}

class PytorchFileTest : public ::testing::TestWithParam<std::string> {};

TEST_P(PytorchFileTest, HasTheTensorsThatWereSaved) {
  const SafetensorsReader expected(fixture("expected.safetensors"));
  const PytorchReader reader(fixture(GetParam()));
  EXPECT_EQ(reader.names(), expected.names());
  EXPECT_EQ(reader.element_count(), expected.element_count());
  for (const std::string& name : expected.names()) {
    EXPECT_EQ(reader.shape(name), expected.shape(name)) << name;
    EXPECT_EQ(reader.type(name), expected.type(name)) << name;
    EXPECT_EQ(bytes_of(reader.load(name)), bytes_of(expected.load(name))) << name;
  }
  for (const char* name : {"bf", "bf_slice"})  // one that can be mapped, one that cannot
    EXPECT_EQ(bytes_of(reader.map_or_copy(name, DType::bf16)), bytes_of(expected.map_or_copy(name, DType::bf16)));
}

INSTANTIATE_TEST_SUITE_P(Forms, PytorchFileTest,
                         ::testing::Values("archive.bin", "archive_protocol_4.bin", "legacy.bin"));

TEST(PytorchFile, MapsWhatStandsInTheFileAsItIs) {
  const PytorchReader reader(fixture("archive.bin"));
  EXPECT_EQ(reader.map("0.weight", DType::f32).address(), reader.map("tied", DType::f32).address());
  EXPECT_FALSE(reader.map("transposed", DType::f32).defined());
  EXPECT_FALSE(reader.map("half", DType::f32).defined());
}

TEST(PytorchFile, RefusesByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"code.bin", "asks for \"posix system\", which is none of the names that tensors need; to convert the file: "},
      {"compressed.bin", "entry \"x/data.pkl\" is compressed"},
      {"big_endian.bin", "byte order is \"big\", needs \"little\""},
      {"nested.bin", "\"model\" is no tensor"},
      {"expected.safetensors", "is no file of torch.save"},
  };
  for (const auto& [name, expected] : cases) {
    const std::string message = message_of<FileError>([&, file = fixture(name)] { PytorchReader reader(file); });
    EXPECT_THAT(message, HasSubstr(expected));
    EXPECT_THAT(message, HasSubstr(name));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(PytorchFile, APointerOfGitLfsIsNamed) {
  const TemporaryFolder folder;
  const auto file = folder / "pytorch_model.bin";
  write_file(file, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n");
  EXPECT_EQ(message_of<FileError>([&] { PytorchReader reader(file); }),
            file.string() + ": is a pointer of Git LFS, not the file itself: run \"git lfs pull\"");
}

// A hostile file: a thousand tensors on a storage of 4,000 bytes would pass for a model of a million numbers.
TEST(PytorchFile, ViewsOfOneStorageDoNotCountWithoutBound) {
  const auto text = [](const std::string& s) { return "X"s + static_cast<char>(s.size()) + "\0\0\0"s + s; };
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n((" + text("storage") + "ctorch\nFloatStorage\n" +
                             text("0") + text("cpu") + "M\xe8\x03tQK\0(M\xe8\x03t(K\1t\x89"s +
                             "ccollections\nOrderedDict\n)RtR";
  std::string dict = "\x80\x02}(" + text("w0") + tensor + "q\1";
  for (int i = 1; i < 1000; ++i) dict += text("w" + std::to_string(i)) + "h\1";
  const int64_t elements = 1000;
  const std::string bytes = "\x80\x02\x8a\x0al\xfc\x9c"s + "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03." + "\x80\x02}" +
                            text("little_endian") + "\x88s." + dict + "u." + "\x80\x02]" + text("0") + "a." +
                            std::string(reinterpret_cast<const char*>(&elements), sizeof elements) +
                            std::string(4000, '\0');
  const TemporaryFolder folder(memory_folder());
  write_file(folder / "x.bin", bytes);
  const PytorchReader reader(folder / "x.bin");
  EXPECT_EQ(reader.names().size(), 1000u);
  EXPECT_EQ(reader.element_count(), 4 * static_cast<int64_t>(bytes.size()));
}

// Archives beyond 4 GiB have a second end record; the first one then says 0xffffffff.
TEST(PytorchFile, ReadsTheEndRecordOfLargeArchives) {
  std::string bytes = read_file(fixture("archive.bin"));
  const size_t end = bytes.rfind("PK\5\6");
  ASSERT_NE(end, std::string::npos);
  uint16_t entries = 0;
  uint32_t begin = 0;
  std::memcpy(&entries, &bytes[end + 10], 2);
  std::memcpy(&begin, &bytes[end + 16], 4);
  const auto number = [](uint64_t value, size_t size) { return std::string(reinterpret_cast<char*>(&value), size); };
  const std::string record = "PK\6\6" + number(44, 8) + number(0, 12 - 4) + number(0, 4) + number(entries, 8) +
                             number(entries, 8) + number(end - begin, 8) + number(begin, 8);
  ASSERT_EQ(record.size(), 56u);
  const std::string locator = "PK\6\7" + number(0, 4) + number(end, 8) + number(1, 4);
  std::string last = bytes.substr(end, 22);
  std::memset(&last[8], 0xff, 12);  // both counts, size and begin of the directory
  const TemporaryFolder folder(memory_folder());
  write_file(folder / "x.bin", bytes.substr(0, end) + record + locator + last);
  EXPECT_EQ(PytorchReader(folder / "x.bin").names(), PytorchReader(fixture("archive.bin")).names());
}

TEST(PytorchFile, IsAFolderSource) {
  const TemporaryFolder folder(memory_folder());
  const SafetensorsReader expected(fixture("expected.safetensors"));
  write_file(folder / "pytorch_model.bin", read_file(fixture("archive.bin")));
  {
    const TensorSource source(folder.path());
    EXPECT_EQ(source.names(), expected.names());
    EXPECT_EQ(source.dtype("half"), DType::f32);
    EXPECT_EQ(source.dtype("bf_slice"), DType::bf16);
    EXPECT_EQ(bytes_of(source.read("slice")), bytes_of(expected.load("slice")));
    EXPECT_EQ(bytes_of(source.read("bf_slice", Bfloat16::widened)), bytes_of(expected.load("bf_slice")));
  }
  std::filesystem::rename(folder / "pytorch_model.bin", folder / "pytorch_model-00001-of-00001.bin");
  EXPECT_EQ(TensorSource(folder.path()).names(), expected.names());
  write_file(folder / "pytorch_model.bin.index.json",
             R"({"weight_map": {"half": "pytorch_model-00001-of-00001.bin", "bf": "other.bin"}})");
  write_file(folder / "other.bin", read_file(fixture("legacy.bin")));
  EXPECT_THAT(message_of<FileError>([&] { TensorSource source(folder.path()); }), HasSubstr("is in other.bin too"));
}

}  // namespace
}  // namespace attune

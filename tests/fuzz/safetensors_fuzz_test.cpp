// Whatever a file holds: tensors or attune::Error, and no more memory than the file's size explains.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "attune/io/checkpoint.h"
#include "attune/io/safetensors.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::string> kSafetensorsDictionary = {
    "18446744073709551615",
    "9223372036854775807",
    "-1",
    "1e308",
    "[",
    "]",
    "{",
    "}",
    "\"F64\"",
    "\"BF16\"",
    "__metadata__",
    "\"a\":",
    "shape",
    "dtype",
    "null",
    "[0,0]",
    "[0,4]",
    "281474976710656",
    "data_offsets",
    "\\u0000",
    "\xFF",
    "\"w\":{",
    ",",
};

std::string valid_file(const TemporaryFolder& folder) {
  const std::vector<NamedTensor> tensors = {{"a", Tensor::full({2, 3}, 1)},
                                            {"b", Tensor::full({4}, 2, {.dtype = DType::i64})},
                                            {"c", Tensor::empty({0})},
                                            {"d", Tensor::full({5}, 3, {.dtype = DType::u8})}};
  write_safetensors(folder / "valid", tensors, {{"state", R"({"step": 3, "best": [1.5, 2]})"}});
  return read_file(folder / "valid");
}

// The header's length says what the header is, so that most mutations reach the JSON.
std::string repaired(std::string bytes, size_t data_bytes, Random& random) {
  if (bytes.size() < 8 + data_bytes || random.below(8) == 0) return bytes;
  const uint64_t length = bytes.size() - 8 - data_bytes;
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

bool safetensors_accepted(const std::filesystem::path& path) {
  try {
    const SafetensorsReader reader(path);
    for (const std::string& name : reader.names()) reader.load(name);
    checkpoint_state(reader);
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(SafetensorsFuzz, MutatedFilesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  const std::string valid = valid_file(folder);
  constexpr size_t kDataBytes = 6 * 4 + 4 * 8 + 5;
  Random random(20240601);
  reset_peak_bytes();
  const int64_t before = peak_resident_bytes();
  int successes = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string bytes = repaired(mutate(valid, kSafetensorsDictionary, random), kDataBytes, random);
    std::ofstream(folder / "x", std::ios::binary) << bytes;
    successes += safetensors_accepted(folder / "x") ? 1 : 0;
  }
  EXPECT_GT(successes, kRounds / 100) << "mutations in data, names and padding are no errors";
  EXPECT_LT(successes, kRounds / 2);
  EXPECT_LT(allocator_statistics().peak_bytes_in_use, int64_t{1} << 20);
  EXPECT_LT(peak_resident_bytes() - before, int64_t{512} << 20);
}

TEST(SafetensorsFuzz, EveryTruncationIsRefused) {
  const TemporaryFolder folder(memory_folder());
  const std::string valid = valid_file(folder);
  for (size_t size = 0; size < valid.size(); ++size) {
    std::ofstream(folder / "x", std::ios::binary) << valid.substr(0, size);
    EXPECT_FALSE(safetensors_accepted(folder / "x")) << size << " of " << valid.size() << " bytes";
  }
  EXPECT_TRUE(safetensors_accepted(folder / "valid"));
}

}  // namespace
}  // namespace attune

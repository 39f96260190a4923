// Whatever a folder's weights are: tensors or attune::Error, and no more memory than the files' sizes explain.

#include <gtest/gtest.h>

#include <fstream>

#include "attune/io/tensor_source.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using namespace std::string_literals;

const std::vector<std::string> kPickleDictionary = {"PK\5\6"s,
                                                    "PK\6\6"s,
                                                    "PK\1\2"s,
                                                    "\xff\xff\xff\xff"s,
                                                    "\x01\x00\x10\x00"s,
                                                    "J\xff\xff\xff\x7f"s,
                                                    "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"s,
                                                    "K\1",
                                                    "(",
                                                    "t",
                                                    "\x85",
                                                    "\x86",
                                                    "\x87",
                                                    ")",
                                                    "}",
                                                    "]",
                                                    "q\1",
                                                    "h\1",
                                                    "R",
                                                    "Q",
                                                    "u",
                                                    "s",
                                                    "a",
                                                    "e",
                                                    "b",
                                                    ".",
                                                    "X\4\0\0\0abcd"s,
                                                    "ctorch\nHalfStorage\n",
                                                    "ctorch._utils\n_rebuild_tensor_v2\n",
                                                    "ccollections\nOrderedDict\n",
                                                    "cposix\nsystem\n",
                                                    "N",
                                                    "\x88",
                                                    "\x93"};

const std::vector<std::string> kIndexDictionary = {"\"weight_map\": {",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   "\"b\": ",
                                                   "\"../x\"",
                                                   "\"/etc/passwd\"",
                                                   "null",
                                                   "1e999",
                                                   ",",
                                                   "\\u0000",
                                                   "model-00002-of-00002.safetensors",
                                                   "\xFF"};

bool source_accepted(const std::filesystem::path& folder) {
  try {
    const TensorSource source(folder);
    for (const std::string& name : source.names()) {
      source.read(name);
      source.read(name, Bfloat16::widened);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

// How many of `rounds` mutations of `file` are accepted.
int accepted_mutations(const TemporaryFolder& folder, const std::string& file, int rounds,
                       const std::vector<std::string>& dictionary) {
  const std::string valid = read_file(folder / file);
  Random random(20261122);
  reset_peak_bytes();
  const int64_t before = peak_resident_bytes();
  int count = 0;
  for (int round = 0; round < rounds; ++round) {
    std::ofstream(folder / file, std::ios::binary) << mutate(valid, dictionary, random);
    count += source_accepted(folder.path()) ? 1 : 0;
  }
  EXPECT_LT(allocator_statistics().peak_bytes_in_use, int64_t{4} << 20);
  EXPECT_LT(peak_resident_bytes() - before, int64_t{512} << 20);
  return count;
}

class PytorchFuzz : public ::testing::TestWithParam<std::string> {
 protected:
  const std::string valid_ = read_file(source_dir() / "tests/fixtures/pytorch" / GetParam());
  TemporaryFolder folder_{memory_folder()};
};

TEST_P(PytorchFuzz, MutatedFilesAreReadOrRefused) {
  write_file(folder_ / "pytorch_model.bin", valid_);
  ASSERT_TRUE(source_accepted(folder_.path()));
  constexpr int kRounds = 10000;
  const int successes = accepted_mutations(folder_, "pytorch_model.bin", kRounds, kPickleDictionary);
  EXPECT_GT(successes, kRounds / 200) << "mutations in data and names are no errors";
  EXPECT_LT(successes, kRounds / 2);
}

TEST_P(PytorchFuzz, EveryTruncationIsRefused) {
  for (size_t size = 0; size + 1 < valid_.size(); ++size) {
    std::ofstream(folder_ / "pytorch_model.bin", std::ios::binary) << valid_.substr(0, size);
    EXPECT_FALSE(source_accepted(folder_.path())) << size << " of " << valid_.size() << " bytes";
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, PytorchFuzz, ::testing::Values("archive.bin", "archive_protocol_4.bin", "legacy.bin"));

TEST(ShardsFuzz, MutatedIndexesAreReadOrRefused) {
  const TemporaryFolder folder(memory_folder());
  write_safetensors(folder / "model-00001-of-00002.safetensors", std::vector<NamedTensor>{{"a", Tensor::full({2}, 1)}});
  write_safetensors(folder / "model-00002-of-00002.safetensors",
                    std::vector<NamedTensor>{{"b", Tensor::full({2}, 1, {.dtype = DType::bf16})}});
  write_file(folder / "model.safetensors.index.json",
             R"({"metadata": {"total_size": 12}, "weight_map": {"a": "model-00001-of-00002.safetensors",
                 "b": "model-00002-of-00002.safetensors"}})");
  ASSERT_TRUE(source_accepted(folder.path()));
  constexpr int kRounds = 5000;
  const int successes = accepted_mutations(folder, "model.safetensors.index.json", kRounds, kIndexDictionary);
  EXPECT_GT(successes, kRounds / 200) << "mutations in metadata and white space are no errors";
  EXPECT_LT(successes, kRounds / 2);
}

}  // namespace
}  // namespace attune

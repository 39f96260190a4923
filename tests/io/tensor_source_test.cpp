#include "attune/io/tensor_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "attune/base/file.h"
#include "attune/io/safetensors.h"
#include "attune/io/weight_index.h"
#include "attune/tensor/host_view.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorSourceTest : public ::testing::Test {
 protected:
  void shard(const std::string& file, std::vector<NamedTensor> tensors) { write_safetensors(folder_ / file, tensors); }
  void index(const std::string& text) { write_file(folder_ / "model.safetensors.index.json", text); }
  std::string refusal() {
    const std::string message = message_of<FileError>([&] { TensorSource source(folder_.path()); });
    EXPECT_THAT(message, HasSubstr(folder_.path().string()));
    return message;
  }
  // Two shards, "a" in the first and "b" in the second.
  void two_shards() {
    shard("model-00001-of-00002.safetensors", {{"a", Tensor::full({2}, 1)}});
    shard("model-00002-of-00002.safetensors", {{"b", Tensor::full({3}, 2)}});
  }

  TemporaryFolder folder_{memory_folder()};
};

TEST_F(TensorSourceTest, OneFile) {
  shard("model.safetensors", {{"w", Tensor::full({2, 3}, 4)}, {"ids", Tensor::full({5}, 7, {.dtype = DType::i64})}});
  const TensorSource source(folder_.path());
  EXPECT_THAT(source.names(), ElementsAre("ids", "w"));
  EXPECT_EQ(source.shape("w"), (Shape{2, 3}));
  EXPECT_EQ(source.dtype("ids"), DType::i64);
  EXPECT_EQ(source.element_count(), 11);
  EXPECT_EQ(source.file("w"), folder_ / "model.safetensors");
  EXPECT_EQ(host_values<float>(source.read("w")), std::vector<float>(6, 4));
  EXPECT_EQ(host_values<int64_t>(source.read("ids")), std::vector<int64_t>(5, 7));
  EXPECT_FALSE(source.contains("v"));
  EXPECT_THAT(message_of<FileError>([&] { source.read("v"); }), HasSubstr("has no tensor \"v\""));
}

TEST_F(TensorSourceTest, TensorsLieOnTheFilesPages) {
  shard("model.safetensors", {{"w", Tensor::full({64}, 4)}});
  const TensorSource source(folder_.path());
  const Tensor once = source.read("w"), again = source.read("w");
  EXPECT_EQ(once.address(), again.address());
  once.fill(5);  // a private page
  EXPECT_EQ(host_values<float>(SafetensorsReader(folder_ / "model.safetensors").load("w"))[0], 4.0f);
}

TEST_F(TensorSourceTest, HalfPrecision) {
  // 1, -2, largest, smallest subnormal (binary16); 1, -2 (bfloat16). Values from IEEE 754-2008, table 3.5.
  const uint16_t halves[] = {0x3C00, 0xC000, 0x7BFF, 0x0001, 0x3F80, 0xC000};
  const std::string header =
      R"({"h":{"dtype":"F16","shape":[4],"data_offsets":[0,8]},"b":{"dtype":"BF16","shape":[2],"data_offsets":[8,12]}})";
  std::string bytes(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(bytes.data(), &length, 8);
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(halves), sizeof(halves));
  write_file(folder_ / "model.safetensors", bytes);

  const TensorSource source(folder_.path());
  EXPECT_EQ(source.dtype("h"), DType::f32);
  EXPECT_EQ(host_values<float>(source.read("h")), (std::vector<float>{1, -2, 65504, 0x1p-24f}));
  EXPECT_EQ(source.dtype("b"), DType::bf16);
  const Tensor kept = source.read("b"), widened = source.read("b", Bfloat16::widened);
  EXPECT_EQ(kept.dtype(), DType::bf16);
  EXPECT_EQ(std::memcmp(kept.raw(), halves + 4, 4), 0);
  EXPECT_EQ(host_values<float>(widened), (std::vector<float>{1, -2}));
}

TEST_F(TensorSourceTest, ShardsByTheIndex) {
  two_shards();
  index(R"({"metadata": {"total_size": 20, "more": [1, {"weight_map": 2}]}, "weight_map":
            {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})");
  const TensorSource source(folder_.path());
  EXPECT_THAT(source.names(), ElementsAre("a", "b"));
  EXPECT_EQ(source.file("b"), folder_ / "model-00002-of-00002.safetensors");
  EXPECT_EQ(host_values<float>(source.read("b")), std::vector<float>(3, 2));
}

TEST_F(TensorSourceTest, ShardsByTheirOwnHeaders) {
  two_shards();
  EXPECT_THAT(TensorSource(folder_.path()).names(), ElementsAre("a", "b"));  // no index
  // An index that leaves "b" out, and one that looks for it in the other shard.
  index(R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("model-00002-of-00002.safetensors: has no tensor \"x\""));
  shard("model-00002-of-00002.safetensors", {{"b", Tensor::full({3}, 2)}, {"x", Tensor::full({3}, 2)}});
  EXPECT_THAT(TensorSource(folder_.path()).names(), ElementsAre("a", "b", "x"));
  index(R"({"weight_map": {"b": "model-00001-of-00002.safetensors", "x": "model-00002-of-00002.safetensors"}})");
  EXPECT_THAT(TensorSource(folder_.path()).names(), ElementsAre("a", "b", "x"));
}

TEST_F(TensorSourceTest, RefusesAFolderWithoutWeights) {
  EXPECT_THAT(refusal(), HasSubstr("has no weights: needs model.safetensors"));
}

TEST_F(TensorSourceTest, RefusesAFolderThatCannotBeListed) {
  const std::filesystem::path no_folder = folder_ / "file";
  write_file(no_folder, "");
  EXPECT_EQ(message_of<FileError>([&] { find_shards(no_folder, "model", "safetensors"); }),
            "cannot list " + no_folder.string() + ": Not a directory");
  EXPECT_TRUE(find_shards(folder_ / "missing", "model", "safetensors").empty());
}

TEST_F(TensorSourceTest, RefusesShardsThatAreMissingOrSayTheSame) {
  two_shards();
  index(R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00003-of-00002.safetensors"}})");
  EXPECT_THAT(refusal(), HasSubstr("model-00003-of-00002.safetensors: No such file"));
  index(R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "copy.safetensors"}})");
  shard("copy.safetensors", {{"a", Tensor::full({2}, 1)}, {"b", Tensor::full({2}, 1)}});
  EXPECT_THAT(refusal(), AllOf(HasSubstr("tensor \"a\" is in "), HasSubstr("copy.safetensors")));
}

TEST_F(TensorSourceTest, RefusesAnIncompleteSetOfShards) {
  shard("model-00001-of-00003.safetensors", {{"a", Tensor::full({2}, 1)}});
  shard("model-00003-of-00003.safetensors", {{"b", Tensor::full({2}, 1)}});
  EXPECT_THAT(refusal(), HasSubstr("model-00002-of-00003.safetensors: is missing"));
  shard("model-00002-of-00004.safetensors", {{"c", Tensor::full({2}, 1)}});
  EXPECT_THAT(refusal(), HasSubstr("needs one set"));
}

TEST_F(TensorSourceTest, RefusesShardsOutsideOfTheFolder) {
  two_shards();
  write_safetensors(folder_.path().parent_path() / (folder_.path().filename().string() + ".safetensors"),
                    std::vector<NamedTensor>{{"b", Tensor::full({3}, 2)}});
  for (const std::string& name :
       {"../" + folder_.path().filename().string() + ".safetensors", folder_.path().string() + ".safetensors",
        std::string("sub/x.safetensors"), std::string(".."), std::string("."), std::string(), std::string("..\\\\x"),
        std::string("model-00002-of-00002.safetensors\\u0000")}) {
    index(R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": ")" + name + "\"}}");
    EXPECT_THAT(refusal(), HasSubstr("needs the name of a file in the same folder")) << name;
  }
  std::filesystem::remove(folder_.path().string() + ".safetensors");
}

TEST_F(TensorSourceTest, RefusesADamagedIndex) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "not valid JSON"},
      {"{\"weight_map\": {\"a\": \"model", "not valid JSON"},
      {"[]", "needs an object with a weight_map, found a list"},
      {"3", "found a number"},
      {"{}", "has no weight_map"},
      {R"({"weight_map": []})", "found a list"},
      {R"({"weight_map": null})", "found null"},
      {R"({"weight_map": {"a": 3}})", "needs the name of a file for \"a\", found a number"},
      {R"({"weight_map": {"a": {}}})", "needs the name of a file for \"a\", found an object"},
      {R"({"weight_map": {"a": []}})", "needs the name of a file for \"a\", found a list"},
      {R"({"weight_map": {"a": "x", "a": "x"}})", "weight_map has \"a\" twice"},
      {R"({"weight_map": {}, "weight_map": {}})", "has weight_map twice"},
      {R"({"weight_map": {}})", "has no weights"},
  };
  for (const auto& [text, expected] : cases) {
    index(text);
    EXPECT_THAT(refusal(), HasSubstr(expected)) << text;
  }
  index(std::string("{\"weight_map\": {}}\0x", 20));
  EXPECT_THAT(refusal(), HasSubstr("not valid JSON at byte 19"));
}

}  // namespace
}  // namespace attune

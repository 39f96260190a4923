// How the weights of a hub folder lie in memory: those of a copy of every folder of hub_models() in bfloat16.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "attune/hub/hub_folder.h"
#include "attune/models/build.h"
#include "attune/nn/parameter_uses.h"
#include "attune/ops/linear/precision.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/tensor/buffer.h"
#include "tests/hub/changed_folder.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"
#include "tests/support/adjacent_products.h"
#include "tests/support/devices.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::vector<int32_t>> kStoredTexts = {{5, 9, 33, 7, 2, 41}, {17, 3}};

// How many numbers a module has of each sort.
class Storage final : public Visitor {
 public:
  int64_t bfloat16 = 0, in_both = 0;
  explicit Storage(Module& module) { module.visit(*this); }

 protected:
  void on_parameter(const std::string& path, Parameter& p) override {
    const bool narrow_tensor = p.tensor.defined() && p.tensor.dtype() == DType::bf16;
    const bool narrow_panels = p.panels && p.panels->format() == WeightFormat::bfloat16;
    if (narrow_tensor || narrow_panels) ++bfloat16;
    if (p.tensor.defined() && p.panels && p.use == ParameterUse::product) ++in_both;
    const bool may_be_narrow = p.use == ParameterUse::product || p.use == ParameterUse::lookup;
    EXPECT_TRUE(!may_be_narrow || narrow_tensor || narrow_panels) << path;
    EXPECT_TRUE(may_be_narrow || !narrow_tensor) << path;
  }
};

class HubStorage : public testing::TestWithParam<std::string> {
 protected:
  // The folder's weights rounded to bfloat16.
  void SetUp() override {
    const std::filesystem::path from = hub_models() / GetParam();
    std::filesystem::copy(from / "config.json", folder_ / "config.json");
    const TensorSource source(from);
    std::vector<NamedTensor> tensors;
    for (const std::string& name : source.names()) {
      const Tensor tensor = source.read(name);
      tensors.push_back({name, tensor.dtype() == DType::f32 ? to_bfloat16(tensor) : tensor});
    }
    write_safetensors(folder_ / "model.safetensors", tensors);
    hub_ = std::make_unique<HubFolder>(folder_.path());
  }

  TemporaryFolder folder_;
  std::unique_ptr<HubFolder> hub_;
};

INSTANTIATE_TEST_SUITE_P(Folder, HubStorage, testing::ValuesIn(hub_model_names()), hub_test_name);

TEST_P(HubStorage, Bfloat16StaysBfloat16AndIsThereOnce) {
  const std::unique_ptr<Module> wide = hub_->load(LoadedWeights::mapped), narrow = hub_->load(LoadedWeights::panels),
                                stored = hub_->load(LoadedWeights::stored);
  EXPECT_LT(
      relative_difference(model_outputs(*narrow, packed(kStoredTexts)), model_outputs(*wide, packed(kStoredTexts))),
      2e-6);
  const Storage of_panels(*narrow), of_tensors(*stored);
  EXPECT_GT(of_panels.bfloat16, 0);
  EXPECT_EQ(of_panels.in_both, 0);
  EXPECT_EQ(of_tensors.bfloat16, of_panels.bfloat16);
  EXPECT_GT(hub_->bfloat16_count(), 0);
  for (const NamedParameter& p : named_parameters(*wide)) EXPECT_EQ(p.tensor->dtype(), DType::f32) << p.name;
}

// On a device that reads tensors: in either precision of the products the results are those of float32 tensors, to the
// bit, since these have the numbers of the file.
TEST_P(HubStorage, Bfloat16StaysBfloat16OnOtherDevices) {
  for (const Device& device : devices_under_test()) {
    const std::unique_ptr<Module> wide = hub_->load(LoadedWeights::mapped),
                                  narrow = hub_->load(LoadedWeights::bfloat16_tensors);
    EXPECT_EQ(Storage(*narrow).bfloat16, Storage(*hub_->load(LoadedWeights::stored)).bfloat16);
    for (Module* module : {wide.get(), narrow.get()}) move_parameters(*module, device);
    expect_products_adjacent(*narrow, hub_->config());
    for (const ProductPrecision precision : {ProductPrecision::bfloat16, ProductPrecision::float32}) {
      const ProductPrecisionScope scope(precision);
      EXPECT_EQ(model_outputs(*narrow, packed(kStoredTexts)), model_outputs(*wide, packed(kStoredTexts)))
          << enum_name(precision);
    }
  }
}

// What a folder has in float32 is rounded, but for tables that lookups alone read.
TEST_P(HubStorage, Float32IsRoundedForOtherDevices) {
  const HubFolder hub(hub_models() / GetParam());
  if (hub.bfloat16_count() > 0) GTEST_SKIP() << "has bfloat16, where lookups read it too";
  const std::unique_ptr<Module> narrow = hub.load(LoadedWeights::bfloat16_tensors);
  const ParameterUses uses(*narrow);
  expect_products_adjacent(*narrow, hub.config());
  for (const NamedParameter& p : named_parameters(*narrow))
    EXPECT_EQ(p.tensor->dtype(), uses.is_product_matrix(*p.tensor) ? DType::bf16 : DType::f32) << p.name;
}

// GPT-2 has its matrices transposed, so that each is copied. It is rounded before the next one is read.
TEST(HubMemory, OneFloat32MatrixIsThereAtATime) {
  ChangedFolder gpt2("gpt2");
  constexpr int64_t kLayers = 8;
  const std::string first = "transformer.h.0.";
  for (const auto& [name, tensor] : std::map(gpt2.tensors))
    for (int64_t layer = 2; layer < kLayers && name.starts_with(first); ++layer)
      gpt2.tensors["transformer.h." + std::to_string(layer) + "." + name.substr(first.size())] = tensor;
  gpt2.config["n_layer"] = kLayers;
  const HubFolder hub = gpt2.open();
  release_cached_memory();
  const auto in_use = [] { return allocator_statistics().bytes_in_use; };
  const int64_t before = in_use();
  auto model = build_without_values(hub.config());
  const int64_t built = in_use() - before;  // which loading begins with, and does not touch
  model.reset();
  reset_peak_bytes();
  model = hub.load(LoadedWeights::bfloat16_tensors);
  int64_t matrix = 0;
  for (const NamedParameter& p : named_parameters(*model)) matrix = std::max(matrix, 4 * p.tensor->numel());
  EXPECT_LE(allocator_statistics().peak_bytes_in_use - before, built + (in_use() - before) + matrix);
}

// Of products with float32 weights that are rounded too.
TEST_P(HubStorage, Bfloat16ActivationsAreNear) {
  const HubFolder hub(hub_models() / GetParam());
  if (std::holds_alternative<Experts>(hub.config().feed_forward))
    GTEST_SKIP() << "a state that is rounded may choose other experts";
  const std::unique_ptr<Module> wide = hub.load(LoadedWeights::mapped),
                                narrow = hub.load(LoadedWeights::bfloat16_panels);
  const std::vector<float> expected = model_outputs(*wide, packed(kStoredTexts));
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const double difference = relative_difference(model_outputs(*narrow, packed(kStoredTexts)), expected);
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.1);
}

}  // namespace
}  // namespace attune

// How the weights of a hub folder lie in memory: those of a copy of every folder of hub_models() in bfloat16.

#include <gtest/gtest.h>

#include "attune/hub/hub_folder.h"
#include "attune/ops/precision.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::vector<int32_t>> kTexts = {{5, 9, 33, 7, 2, 41}, {17, 3}};

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
  EXPECT_LT(relative_difference(model_outputs(*narrow, packed(kTexts)), model_outputs(*wide, packed(kTexts))), 2e-6);
  const Storage of_panels(*narrow), of_tensors(*stored);
  EXPECT_GT(of_panels.bfloat16, 0);
  EXPECT_EQ(of_panels.in_both, 0);
  EXPECT_EQ(of_tensors.bfloat16, of_panels.bfloat16);
  EXPECT_GT(hub_->bfloat16_count(), 0);
  for (const NamedParameter& p : named_parameters(*wide)) EXPECT_EQ(p.tensor->dtype(), DType::f32) << p.name;
}

// Of products with float32 weights that are rounded too.
TEST_P(HubStorage, Bfloat16ActivationsAreNear) {
  const HubFolder hub(hub_models() / GetParam());
  if (std::holds_alternative<Experts>(hub.config().feed_forward))
    GTEST_SKIP() << "a state that is rounded may choose other experts";
  const std::unique_ptr<Module> wide = hub.load(LoadedWeights::mapped),
                                narrow = hub.load(LoadedWeights::bfloat16_panels);
  const std::vector<float> expected = model_outputs(*wide, packed(kTexts));
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const double difference = relative_difference(model_outputs(*narrow, packed(kTexts)), expected);
  EXPECT_GT(difference, 0);
  EXPECT_LT(difference, 0.1);
}

}  // namespace
}  // namespace attune

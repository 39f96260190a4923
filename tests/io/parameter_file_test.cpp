#include "attune/io/parameter_file.h"

#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Names = std::vector<std::string>;

TEST(ParameterFile, NormsOfEarlierVersionsHaveAWeight) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::full({2}, 3);
  write_safetensors(folder / "f",
                    std::vector<NamedTensor>{{"model.norm.gain", x}, {"adam_m.norm.gain", x}, {"gain", x}});
  const SafetensorsReader reader = open_parameters(folder / "f");
  EXPECT_EQ(reader.names(), (Names{"adam_m.norm.weight", "gain", "model.norm.weight"}));
  EXPECT_EQ(reader.load("model.norm.weight").values<float>()[1], 3);
}

TEST(ParameterFile, ATensorThatHasTheNameKeepsIt) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::full({2}, 3);
  write_safetensors(folder / "f", std::vector<NamedTensor>{{"a.gain", x}, {"a.weight", x}});
  SafetensorsReader reader = open_parameters(folder / "f");
  EXPECT_EQ(reader.names(), (Names{"a.gain", "a.weight"}));
  EXPECT_THROW(reader.rename("a.gain", "a.weight"), FileError);
  EXPECT_THROW(reader.rename("b", "c"), FileError);
}

}  // namespace
}  // namespace attune

// attune export from outside: folders of the hub and folders of Attune, and what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/io/json_file.h"
#include "attune/io/tensor_source.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

namespace fs = std::filesystem;

class ExportCliTest : public CliFixture {
 protected:
  std::string out() const { return (folder_ / "out").string(); }
};

fs::path hub_model(const std::string& name) {
  return source_dir() / "tests/hub/models" / name;
}

TEST_F(ExportCliTest, AFolderOfTheHub) {
  EXPECT_THAT(output_of({"export", hub_model("bart").string(), "--out", out()}),
              AllOf(StartsWith("wrote "), HasSubstr("BartForConditionalGeneration (bart)")));
  EXPECT_EQ(TensorSource(out()).names(), TensorSource(hub_model("bart")).names());
  output_of({"translate", out(), "w1 w2", "--max-length", "4"});

  const Json said = Json::parse(output_of({"export", hub_model("phi3").string(), "--out", out() + "2", "--family",
                                           "mistral", "--precision", "bfloat16", "--json"}));
  EXPECT_EQ(said.at("class"), "MistralForCausalLM");
  EXPECT_EQ(read_json_file(fs::path(out() + "2") / "config.json").at("dtype"), "bfloat16");
  EXPECT_EQ(said.at("bytes"), 2 * said.at("parameters").get<int64_t>());
}

TEST_F(ExportCliTest, RefusalsNameTheReasonAndLeaveNothing) {
  EXPECT_THAT(refusal_of({"export", hub_model("gpt2").string(), "--out", out(), "--family", "llama"}),
              AllOf(HasSubstr("positions"), HasSubstr("rotary")));
  EXPECT_THAT(refusal_of({"export", hub_model("gpt2").string(), "--out", out(), "--precision", "int8"}),
              HasSubstr("needs one of float32, bfloat16"));
  output_of({"quantize", model_, "--out", out() + "-int8"});
  EXPECT_THAT(refusal_of({"export", out() + "-int8", "--out", out()}), HasSubstr("export"));
  EXPECT_FALSE(fs::exists(out()));
  EXPECT_THAT(refusal_of({"export", hub_model("gpt2").string(), "--out", folder_.path().string()}),
              HasSubstr("is there already"));
}

}  // namespace
}  // namespace attune

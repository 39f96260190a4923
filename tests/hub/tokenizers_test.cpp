// Every folder of hub_models(): its tokenizer gives the ids and the texts that Hugging Face's tokenizers give.

#include <gtest/gtest.h>

#include "attune/text/tokenizer_files.h"
#include "tests/hub/hub_model.h"

namespace attune {
namespace {

class HubTokenizers : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Folder, HubTokenizers, testing::ValuesIn(hub_model_names()), hub_test_name);

TEST_P(HubTokenizers, SamplesEqualThoseOfTokenizers) {
  using Ids = std::vector<int32_t>;
  const std::filesystem::path folder = hub_models() / GetParam();
  const Json expected = hub_json(GetParam(), "expected.json");
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizers(folder).source;
  for (const Json& sample : expected.at("tokenizer")) {
    const std::string text = sample.at("text");
    EXPECT_EQ(tokenizer->encode_for_model(text).ids, sample.at("ids").get<Ids>()) << text;
    EXPECT_EQ(tokenizer->encode(text), sample.at("ids_without_special").get<Ids>()) << text;
    EXPECT_EQ(tokenizer->decode(sample.at("ids").get<Ids>()), sample.at("decoded").get<std::string>()) << text;
  }
}

}  // namespace
}  // namespace attune

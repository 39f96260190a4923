// The classes of transformers that are read, and the page that lists them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "attune/base/file.h"
#include "attune/hub/families.h"
#include "tests/hub/changed_folder.h"

namespace attune {
namespace {

using testing::HasSubstr;

// facebook/bart-base is such a folder.
TEST(HubClasses, ABaseModelIsItsEmbeddingAsProjection) {
  const std::tuple<const char*, const char*, const char*> models[] = {
      {"bart", "BartModel", "model."}, {"m2m100", "M2M100Model", "model."}, {"gpt2", "GPT2Model", "transformer."}};
  for (const auto& [name, class_name, prefix] : models) {
    ChangedFolder model(name);
    std::erase_if(model.tensors, [](const auto& tensor) {
      return tensor.first == "lm_head.weight" || tensor.first == "final_logits_bias";
    });
    const std::vector<float> expected = outputs(model.open());
    model.rename([&, &prefix = prefix](const std::string& tensor) { return replaced(tensor, prefix, ""); });
    model.config["architectures"] = {class_name};
    EXPECT_EQ(outputs(model.open()), expected) << class_name;
    model.config["tie_word_embeddings"] = false;
    EXPECT_THAT(model.refusal(), HasSubstr("has no projection to the vocabulary")) << class_name;
  }
}

// LlamaModel is published with and without a tied projection; its configuration's default is without.
TEST(HubClasses, AModelThatHasNoProjectionIsRefused) {
  const Family family = llama_family();
  const HubConfig untied(Json{{"model_type", "llama"}, {"architectures", {"LlamaModel"}}}, "config.json");
  EXPECT_THAT(message_of<ConfigError>([&] { class_of(untied, family); }), HasSubstr("has no projection"));
  const HubConfig tied(Json{{"model_type", "llama"}, {"architectures", {"LlamaModel"}}, {"tie_word_embeddings", true}},
                       "config.json");
  EXPECT_EQ(class_of(tied, family).architecture, Architecture::decoder_lm);
  const HubConfig first(Json{{"model_type", "llama"}, {"architectures", {"LLaMAForCausalLM"}}}, "config.json");
  EXPECT_EQ(class_of(first, family).architecture, Architecture::decoder_lm);
}

TEST(HubClasses, ThePageListsThemAll) {
  std::string page = read_file(source_dir() / "docs/hugging-face.md");
  const size_t begin = page.find("### Classes");
  ASSERT_NE(begin, std::string::npos);
  page = page.substr(begin, page.find("\n## ", begin) - begin);
  std::set<std::string> listed, known;
  const std::regex quoted("`([A-Z][A-Za-z0-9]+)`");
  for (std::sregex_iterator i(page.begin(), page.end(), quoted), end; i != end; ++i) listed.insert((*i)[1]);
  for (const Family& family : all_families())
    for (const HubClass& c : family.classes) known.emplace(c.name);
  EXPECT_EQ(listed, known);
}

}  // namespace
}  // namespace attune

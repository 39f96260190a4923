#include "attune/inference/embedder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "attune/autograd/graph.h"
#include "attune/base/file.h"
#include "attune/io/model_folder.h"
#include "attune/models/build.h"
#include "attune/tensor/host_view.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Encoding> encoded(const std::vector<std::vector<int32_t>>& texts) {
  std::vector<Encoding> result;
  for (const std::vector<int32_t>& ids : texts) result.push_back({.ids = ids, .type_ids = {}});
  return result;
}

class EmbedderTest : public ::testing::Test {
 protected:
  EmbedderTest() {
    std::vector<std::string> words;
    for (int i = 0; i < 30; ++i) words.push_back(fmt::format("w{}", i));
    const WhitespaceTokenizer tokenizer(words);
    TransformerConfig c;
    c.architecture = Architecture::encoder_classifier;
    c.vocab = tokenizer.vocab_size();
    c.d_model = kWidth;
    c.heads = 4;
    c.layers = 2;
    c.d_ff = 48;
    c.labels = {"no", "yes"};
    model_ = build_encoder_classifier(c);
    save_model_folder(folder_.path(), *model_, tokenizer, 64);
  }
  void file(const std::string& name, const std::string& text) {
    make_directories((folder_ / name).parent_path());
    write_file(folder_ / name, text);
  }
  void modules(const std::string& pooling, const std::string& more = "") {
    file("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": "", "idx": 0},
                             {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"})" +
                             more + "]");
    file("1_Pooling/config.json", pooling);
  }
  std::string refusal() {
    return message_of<ConfigError>([&] { read_embedding_settings(folder_.path()); });
  }
  std::vector<float> states(const std::vector<int32_t>& ids) const {
    const NoGrad no_grad;
    return host_values<float>(model_->encode(pack_tokens(ids, {0, static_cast<int32_t>(ids.size())})));
  }

  static constexpr int64_t kWidth = 32;
  TemporaryFolder folder_{memory_folder()};
  std::unique_ptr<EncoderClassifier> model_;
};

TEST_F(EmbedderTest, PoolsTheStatesOfTheEncoder) {
  const Embedder embedder = Embedder::load(folder_.path());
  const std::vector<int32_t> ids = {2, 9, 4, 17, 3};
  const std::vector<float> rows = states(ids);
  const auto row = [&](size_t i) {
    return std::vector<float>(rows.begin() + i * kWidth, rows.begin() + (i + 1) * kWidth);
  };
  const auto embedded = [&](TextPooling pooling, bool normalize = false) {
    return embedder.embed_encoded(encoded({{2, 3}, ids}), {.pooling = pooling, .normalize = normalize})[1];
  };
  const auto mean = embedded(TextPooling::mean), sum = embedded(TextPooling::mean_sqrt_len),
             max = embedded(TextPooling::max), unit = embedded(TextPooling::mean, true);
  const auto cls = embedded(TextPooling::cls), last = embedded(TextPooling::last_token);
  double length = 0;
  for (size_t c = 0; c < kWidth; ++c) {
    double total = 0, largest = -1e30;
    for (size_t r = 0; r < ids.size(); ++r) {
      total += row(r)[c];
      largest = std::max<double>(largest, row(r)[c]);
    }
    EXPECT_NEAR(mean[c], total / 5, 1e-5);
    EXPECT_NEAR(sum[c], total / std::sqrt(5.0), 1e-5);
    EXPECT_NEAR(max[c], largest, 1e-5);
    EXPECT_NEAR(cls[c], row(0)[c], 1e-5);
    EXPECT_NEAR(last[c], row(4)[c], 1e-5);
    length += unit[c] * unit[c];
    EXPECT_NEAR(unit[c] * mean[0], mean[c] * unit[0], 1e-5);
  }
  EXPECT_NEAR(length, 1, 1e-5);
}

TEST_F(EmbedderTest, ReadsTextsAsTheFolderSays) {
  modules(R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})",
          R"(, {"type": "sentence_transformers.models.Normalize", "path": "2_Normalize"})");
  file("sentence_bert_config.json", R"({"max_seq_length": 4, "do_lower_case": true})");
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_EQ(embedder.dimension(), 2 * kWidth);
  const std::vector<std::string> texts = {"w1 w2 w3 w4", "W1 W2", "w5"};
  const auto together = embedder.embed(texts);
  EXPECT_EQ(together[0], together[1]) << "four tokens are read, with bos and eos";
  EXPECT_EQ(together[2], embedder.embed("w5"));
  EXPECT_EQ(together[0].size(), 2u * kWidth);
  double length = 0;
  for (const float v : together[0]) length += v * v;
  EXPECT_NEAR(length, 1, 1e-5);
}

TEST_F(EmbedderTest, ATextWhoseVectorIsNotFiniteIsNamedOrSkipped) {
  const std::vector<std::string> texts = {"w1 w2", "w3 w7 w4", "w5"};
  const Embedder whole = Embedder::load(folder_.path());
  const auto token = static_cast<size_t>(whole.encode("w7").ids.at(1));
  const ClassifierFolder files = load_classifier_folder(folder_.path());
  for (const NamedParameter& p : named_parameters(*files.model))
    if (p.name == "embedding.weight")
      p.tensor->values<float>()[token * kWidth] = std::numeric_limits<float>::quiet_NaN();
  save_model_folder(folder_ / "spoilt", *files.model, *files.tokenizer, files.max_tokens);
  const Embedder spoilt = Embedder::load(folder_ / "spoilt");
  EXPECT_EQ(message_of<NumericError>([&] { spoilt.embed(texts); }), "text 2: its vector is not finite");

  std::vector<size_t> skipped;
  EmbedOptions options;
  options.skip = [&](size_t text, const std::string& what) {
    skipped.push_back(text);
    EXPECT_EQ(what, "its vector is not finite");
  };
  const auto found = spoilt.embed(texts, options), expected = whole.embed(texts);
  EXPECT_THAT(skipped, ElementsAre(1u));
  EXPECT_TRUE(found[1].empty());
  for (const size_t i : {0, 2}) EXPECT_EQ(found[i], expected[i]);
  for (const TextPooling pooling : {TextPooling::mean, TextPooling::max})
    EXPECT_THROW(spoilt.embed("w3 w7 w4", {.pooling = pooling}), NumericError);
}

TEST_F(EmbedderTest, ATextWithoutTokensIsSkipped) {
  const Embedder embedder = Embedder::load(folder_.path());
  std::vector<std::string> skipped;
  EmbedOptions options;
  options.skip = [&](size_t text, const std::string& what) { skipped.push_back(std::to_string(text) + what); };
  const auto found = embedder.embed_encoded(encoded({{}, {2, 3}}), options);
  EXPECT_THAT(skipped, ElementsAre("0has no tokens"));
  EXPECT_TRUE(found[0].empty());
  EXPECT_EQ(found[1], embedder.embed_encoded(encoded({{2, 3}}))[0]);
  for (const auto& texts : {encoded({{}, {2, 3}}), encoded({{}})}) {
    int64_t last = 0;
    options.progress = [&](int64_t done, int64_t) { last = done; };
    embedder.embed_encoded(texts, options);
    EXPECT_EQ(last, std::ssize(texts));
  }
}

TEST_F(EmbedderTest, SaysHowManyTokensAreCut) {
  EXPECT_EQ(Embedder::load(folder_.path()).max_tokens(), 64);
  file("sentence_bert_config.json", R"({"max_seq_length": 4})");
  modules(R"({"pooling_mode": "mean"})");
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_EQ(embedder.max_tokens(), 4);
  EXPECT_EQ(embedder.encode("w1 w2 w3 w4 w5").cut, 3);
  EXPECT_EQ(embedder.encode("w1 w2").cut, 0);
}

TEST_F(EmbedderTest, Settings) {
  EmbeddingSettings settings = read_embedding_settings(folder_.path());
  EXPECT_THAT(settings.pooling, ElementsAre(TextPooling::mean));
  EXPECT_FALSE(settings.normalize);
  modules(R"({"pooling_mode": "lasttoken", "word_embedding_dimension": 32})");
  settings = read_embedding_settings(folder_.path());
  EXPECT_THAT(settings.pooling, ElementsAre(TextPooling::last_token));
  modules(R"({"pooling_mode_max_tokens": true, "pooling_mode_cls_token": true, "pooling_mode_lasttoken": false})");
  EXPECT_THAT(read_embedding_settings(folder_.path()).pooling, ElementsAre(TextPooling::cls, TextPooling::max));
  modules("{}");
  EXPECT_THAT(refusal(), HasSubstr("1_Pooling/config.json: names no pooling"));
  modules(R"({"pooling_mode_weightedmean_tokens": true})");
  EXPECT_THAT(refusal(), HasSubstr("\"pooling_mode_weightedmean_tokens\" is not supported"));
  modules(R"({"pooling_mode": "odd"})");
  EXPECT_THAT(refusal(), HasSubstr("pooling_mode is \"odd\""));
  modules(R"({"pooling_mode": "cls"})", R"(, {"type": "sentence_transformers.models.Dense", "path": "2_Dense"})");
  EXPECT_THAT(refusal(), HasSubstr("module \"sentence_transformers.models.Dense\" with path \"2_Dense\""));
  file("modules.json", R"([{"type": "sentence_transformers.models.Pooling", "path": "../x"}])");
  EXPECT_THAT(refusal(), HasSubstr("path \"../x\" is not in the folder"));
  file("modules.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("needs a list of modules"));
  modules(R"({"pooling_mode": "cls"})");
  file("sentence_bert_config.json", R"({"max_seq_length": 0})");
  EXPECT_THAT(refusal(), HasSubstr("max_seq_length is 0"));
}

// As sentence-transformers: the default prompt stands in front of each text unless another is asked for.
TEST_F(EmbedderTest, PromptsStandInFrontOfTexts) {
  modules(R"({"pooling_mode": "mean"})");
  file("config_sentence_transformers.json",
       R"({"prompts": {"query": "w1 w2 ", "passage": "w3 ", "none": null}, "default_prompt_name": "query"})");
  const Embedder embedder = Embedder::load(folder_.path());
  const EmbedOptions none{.prompt_name = ""}, passage{.prompt_name = "passage"};
  EXPECT_EQ(embedder.encode("w5").ids, embedder.encode("w1 w2 w5", none).ids);
  EXPECT_EQ(embedder.embed("w5"), embedder.embed("w1 w2 w5", none));
  EXPECT_EQ(embedder.embed("w5", passage), embedder.embed("w3 w5", none));
  EXPECT_NE(embedder.embed("w5"), embedder.embed("w5", none));
  EXPECT_THAT(message_of<ConfigError>([&] { embedder.embed("w5", {.prompt_name = "title"}); }),
              HasSubstr("prompt_name = \"title\": the folder has the prompts passage, query"));
}

TEST_F(EmbedderTest, RefusesPromptsThatCannotBeUsed) {
  modules(R"({"pooling_mode": "mean", "include_prompt": false})");
  const std::vector<float> plain = Embedder::load(folder_.path()).embed("w5");  // no prompt, nothing to leave out
  EXPECT_FALSE(plain.empty());
  file("config_sentence_transformers.json", R"({"prompts": {"query": "w1 "}, "default_prompt_name": "query"})");
  EXPECT_THAT(
      message_of<ConfigError>([&] { Embedder::load(folder_.path()); }),
      HasSubstr("include_prompt = false is not supported together with a prompt, and prompt_name = \"query\" has "
                "one; pass prompt_name = \"\""));
  file("config_sentence_transformers.json", R"({"prompts": {"query": "w1 "}, "default_prompt_name": "title"})");
  EXPECT_THAT(refusal(), HasSubstr("default_prompt_name is \"title\""));
  file("config_sentence_transformers.json", R"({"prompts": {"query": 5}})");
  EXPECT_THAT(refusal(), HasSubstr("prompts: \"query\" needs a text"));
}

TEST_F(EmbedderTest, TheTokenizersLengthHoldsWhereNoOtherDoes) {
  EXPECT_EQ(read_embedding_settings(folder_.path()).max_tokens, INT64_MAX);
  file("tokenizer_config.json", R"({"model_max_length": 5})");
  EXPECT_EQ(read_embedding_settings(folder_.path()).max_tokens, 5);
  EXPECT_EQ(Embedder::load(folder_.path()).encode("w1 w2 w3 w4 w5 w6 w7").ids.size(), 5u);
  modules(R"({"pooling_mode": "mean"})");
  EXPECT_EQ(read_embedding_settings(folder_.path()).max_tokens, 5);
  file("sentence_bert_config.json", R"({"max_seq_length": 9})");
  EXPECT_EQ(read_embedding_settings(folder_.path()).max_tokens, 9);
  file("sentence_bert_config.json", "{}");
  file("tokenizer_config.json", R"({"model_max_length": 1000000000000000019884624838656})");
  EXPECT_EQ(read_embedding_settings(folder_.path()).max_tokens, INT64_MAX);
  file("tokenizer_config.json", R"({"model_max_length": 0})");
  EXPECT_THAT(refusal(), HasSubstr("model_max_length is 0"));
}

TEST_F(EmbedderTest, SettingsThatAreWrittenAreRead) {
  const EmbeddingSettings cases[] = {
      {},
      {.pooling = {TextPooling::last_token, TextPooling::max}, .normalize = true, .lowercase = true, .max_tokens = 7},
      {.pooling = {TextPooling::cls, TextPooling::mean_sqrt_len}},
      {.pooling = {TextPooling::mean, TextPooling::mean}},
      {.prompts = {{"query", "w1 "}, {"passage", ""}}, .prompt_name = "passage", .pools_prompt = false}};
  for (const EmbeddingSettings& settings : cases) {
    write_embedding_settings(folder_.path(), settings, 32);
    const EmbeddingSettings found = read_embedding_settings(folder_.path());
    EXPECT_EQ(found.pooling, settings.pooling);
    EXPECT_EQ(found.normalize, settings.normalize);
    EXPECT_EQ(found.lowercase, settings.lowercase);
    EXPECT_EQ(found.max_tokens, settings.max_tokens);
    EXPECT_EQ(found.prompts, settings.prompts);
    EXPECT_EQ(found.prompt_name, settings.prompt_name);
    EXPECT_EQ(found.pools_prompt, settings.pools_prompt);
  }
}

TEST_F(EmbedderTest, NormalizeLeavesNothingAsItIs) {
  std::vector<float> vector = {3, -4}, zero = {0, 0};
  normalize(vector);
  normalize(zero);
  EXPECT_THAT(vector, ElementsAre(0.6F, -0.8F));
  EXPECT_THAT(zero, ElementsAre(0, 0));
}

TEST_F(EmbedderTest, RefusesTokensThatTheModelDoesNotHave) {
  const Embedder embedder = Embedder::load(folder_.path());
  EXPECT_THAT(message_of<DataError>([&] {
                embedder.embed_encoded(encoded({{2, 3}, {}}));
              }),
              HasSubstr("text 2 has 0 tokens"));
  EXPECT_THAT(message_of<DataError>([&] { embedder.embed_encoded(encoded({{99}})); }),
              HasSubstr("text 1 has token 99"));
  EXPECT_THAT(message_of<DataError>([&] { embedder.embed({"\xFF"}); }), HasSubstr("text 1"));
  EXPECT_THAT(message_of<ConfigError>([&] { embedder.embed({"a"}, {.batch_texts = 0}); }),
              HasSubstr("batch_texts = 0"));
}

TEST_F(EmbedderTest, ManyThreadsMayShareOne) {
  constexpr size_t kThreads = 8;
  const Embedder embedder = Embedder::load(folder_.path());
  std::vector<std::string> texts;
  for (int i = 0; i < 20; ++i) texts.push_back(fmt::format("w{} w{} w{}", i, i % 7, i + 3));
  const std::vector<std::vector<float>> alone = embedder.embed(texts);
  std::vector<std::vector<std::vector<float>>> together(kThreads);
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, copy = embedder] {
        together[t] = (t % 2 == 0 ? embedder : copy).embed(texts, {.batch_texts = static_cast<int64_t>(1 + t)});
      });
    }
  }
  for (const std::vector<std::vector<float>>& found : together) EXPECT_EQ(found, alone);
}

}  // namespace
}  // namespace attune

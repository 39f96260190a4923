#include "attune/inference/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "attune/autograd/graph.h"
#include "attune/inference/embedder.h"
#include "attune/inference/export.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/io/model_folder.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/build.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/chat_template.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/memory.h"
#include "tests/support/paths.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

class QuantizeTest : public ::testing::Test {
 protected:
  // Of many pages.
  void write_wide_model() {
    write_small_model(folder_ / "small");  // for its tokenizer
    const SentencePieceTokenizer tokenizer(folder_ / "small" / "tokenizer.model");
    TransformerConfig config = small_model_config();
    config.d_ff = 1 << 15;
    save_model_folder(folder_ / "model", *build_transformer(config, 1), tokenizer, tokenizer, {.max_length = 12});
  }

  // The model of a folder of the hub with some rows more in the table of its embeddings.
  void write_padded_model(const fs::path& hub) {
    fs::copy(hub, folder_ / "model");
    std::vector<NamedTensor> tensors;
    const SafetensorsReader reader(hub / kParameterFile);
    for (const std::string& name : reader.names()) tensors.push_back({name, reader.load(name)});
    Tensor& table = std::ranges::find(tensors, "shared.weight", &NamedTensor::name)->tensor;
    const Tensor padded = Tensor::zeros({table.size(0) + 13, table.size(1)});
    std::ranges::copy(table.values<float>(), padded.data<float>());
    table = padded;
    write_safetensors(folder_ / "model" / kParameterFile, tensors);
    Json config = read_json_file(hub / kConfigFile);
    config["vocab_size"] = padded.size(0);
    write_json_file(folder_ / "model" / kConfigFile, config);
  }

  TemporaryFolder folder_;
  const std::vector<std::string> lines_ = small_text(6);
};

// The weights that decoding reads are pages of the file: nobody's copy, and shared by all processes.
TEST_F(QuantizeTest, PanelWeightsStayPagesOfTheFile) {
  write_small_model(folder_ / "model");
  for (const WeightFormat format :
       {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8, WeightFormat::int4}) {
    const fs::path small = folder_ / enum_name(format);
    quantize_model_folder(folder_ / "model", small, format);
    const Translator translator = Translator::load(small);
    EXPECT_EQ(translator.translate(lines_).size(), lines_.size());
    const MappedMemory memory = mapped_memory(small / kParameterFile);
    if (!memory.known) GTEST_SKIP() << "the system does not say what mapped memory is";
    EXPECT_GE(memory.resident_bytes, static_cast<int64_t>(fs::file_size(small / kParameterFile)) / 2);
    EXPECT_EQ(memory.anonymous_bytes, 0);
    EXPECT_EQ(memory.dirty_bytes, 0);
  }
}

TEST_F(QuantizeTest, PagesThatAreGivenBackAreReadAgain) {
  write_wide_model();
  const Translator one = Translator::load(folder_ / "model"), other(load_model_folder(folder_ / "model"));
  const std::vector<Translation> translations = one.translate(lines_), expected = other.translate(lines_);
  for (size_t i = 0; i < lines_.size(); ++i) EXPECT_EQ(translations[i].n_best[0].score, expected[i].n_best[0].score);
  const ModelFolder files = load_model_folder(folder_ / "model", LoadedWeights::panels);
  for (const NamedParameter& p : named_parameters(*files.model)) {
    const Tensor stored = SafetensorsReader(folder_ / "model" / kParameterFile).load(p.name);
    EXPECT_TRUE(same_bits(*p.tensor, stored)) << p.name;
  }
}

// Of the file there is what embeddings have looked up, and norms.
TEST_F(QuantizeTest, PagesThatOnlyPackingReadsAreGivenBack) {
  write_wide_model();
  const Translator translator = Translator::load(folder_ / "model");
  EXPECT_EQ(translator.translate(lines_).size(), lines_.size());
  const MappedMemory memory = mapped_memory(folder_ / "model" / kParameterFile);
  if (!memory.known) GTEST_SKIP() << "the system does not say what mapped memory is";
  EXPECT_LT(memory.resident_bytes, static_cast<int64_t>(fs::file_size(folder_ / "model" / kParameterFile)) / 4);
}

// Experts 0 and 1 of four are chosen for every token. What is read of an expert in the file would be seen: its scales
// are no numbers.
TEST_F(QuantizeTest, ExpertsThatNobodyChoseAreNotRead) {
  const auto tokenizer = CharacterTokenizer::build_from_texts({joined(lines_)});
  TransformerConfig config = small_model_config();
  config.architecture = Architecture::decoder_lm;
  config.vocab = tokenizer.vocab_size();
  config.feed_forward = Experts{.experts = 4, .d_ff = 24, .scores = ExpertScores::sigmoid, .choice_bias = true};
  const auto model = build_decoder_lm(config, 1);
  for (const NamedParameter& p : named_parameters(*model))
    if (p.name.ends_with("choice_bias")) p.tensor->assign(std::span<const float>(std::vector<float>{9, 9, 0, 0}));
  save_model_folder(folder_ / "model", *model, tokenizer, SamplingConfig{}, TextUnit::stream);
  quantize_model_folder(folder_ / "model", folder_ / "small", WeightFormat::int8);
  const SafetensorsReader reader(folder_ / "small" / kParameterFile);
  const auto logits_without = [&](const std::string& expert) {
    std::vector<NamedTensor> tensors;
    size_t changed = 0;
    for (const std::string& name : reader.names()) {
      tensors.push_back({name, reader.load(name)});
      if (name.find(expert) == std::string::npos || !name.ends_with(".scales")) continue;
      tensors.back().tensor.fill(std::numeric_limits<double>::quiet_NaN());
      ++changed;
    }
    EXPECT_EQ(changed, 2 * config.layers) << "linear_1 and linear_2 of each layer";
    write_safetensors(folder_ / "small" / kParameterFile, tensors, reader.metadata());
    const LanguageModelFolder files = load_language_model_folder(folder_ / "small");
    const NoGrad no_grad;
    return files.model->project(files.model->decode(pack_tokens(std::vector<int32_t>{5, 6, 7, 8}, {0, 4})));
  };
  for (const char* expert : {".experts.2.", ".experts.3."}) EXPECT_LT(first_not_finite(logits_without(expert)), 0);
  EXPECT_GE(first_not_finite(logits_without(".experts.1.")), 0) << "one that is chosen";
}

TEST_F(QuantizeTest, WhatStopsItLeavesNothing) {
  write_small_model(folder_ / "model");
  int matrices = 0;
  const auto stop = [&] {
    if (++matrices == 3) throw std::runtime_error("stop");
  };
  EXPECT_THROW(quantize_model_folder(folder_ / "model", folder_ / "out", WeightFormat::int8, stop), std::runtime_error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()), 1);
}

TEST_F(QuantizeTest, AFileThatIsReplacedMeanwhileChangesNothing) {
  write_small_model(folder_ / "model");
  write_small_model(folder_ / "other", 2);
  quantize_model_folder(folder_ / "model", folder_ / "small", WeightFormat::int8);
  quantize_model_folder(folder_ / "other", folder_ / "small-other", WeightFormat::int8);
  const Translator translator = Translator::load(folder_ / "small");
  const std::vector<Translation> before = translator.translate(lines_);
  write_file(folder_ / "small" / kParameterFile, read_file(folder_ / "small-other" / kParameterFile));
  const std::vector<Translation> after = translator.translate(lines_),
                                 other = Translator::load(folder_ / "small").translate(lines_);
  bool differs = false;
  for (size_t i = 0; i < lines_.size(); ++i) {
    EXPECT_EQ(after[i].n_best[0].score, before[i].n_best[0].score);
    differs = differs || other[i].n_best[0].score != before[i].n_best[0].score;
  }
  EXPECT_TRUE(differs);
}

TEST_F(QuantizeTest, ModelsOfMaskedTokensGiveEmbeddings) {
  write_small_model(folder_ / "translation");  // for its tokenizer
  const SentencePieceTokenizer tokenizer(folder_ / "translation" / "tokenizer.model");
  TransformerConfig config = small_model_config();
  config.architecture = Architecture::encoder_masked_lm;
  config.vocab = tokenizer.vocab_size();
  save_model_folder(folder_ / "masked", *build_encoder_masked_lm(config), tokenizer);
  quantize_model_folder(folder_ / "masked", folder_ / "float32", WeightFormat::float32);
  quantize_model_folder(folder_ / "masked", folder_ / "int8", WeightFormat::int8);
  const std::vector<float> expected = Embedder::load(folder_ / "masked").embed("The old dog sleeps.");
  EXPECT_EQ(Embedder::load(folder_ / "float32").embed("The old dog sleeps."), expected);
  const std::vector<float> rounded = Embedder::load(folder_ / "int8").embed("The old dog sleeps.");
  EXPECT_NE(rounded, expected);
  EXPECT_NEAR(rounded.at(0), expected.at(0), 0.1);
}

TEST_F(QuantizeTest, TheTemplateOfChatsIsKept) {
  write_small_language_model(folder_ / "model");
  write_file(folder_ / "model" / "chat_template.jinja",
             "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
  write_file(folder_ / "model" / "tokenizer_config.json", R"({"eos_token": "</s>"})");
  fs::create_directory(folder_ / "model" / "additional_chat_templates");
  write_file(folder_ / "model" / "additional_chat_templates" / "tool_use.jinja", "{{ tools | length }}{{ eos_token }}");
  quantize_model_folder(folder_ / "model", folder_ / "small", WeightFormat::int8);
  const std::optional<ChatTemplate> chat = ChatTemplate::load(folder_ / "small");
  ASSERT_TRUE(chat);
  EXPECT_EQ(chat->render({{"user", "a"}}), "a</s>");
  EXPECT_EQ(chat->render_json("[]", R"({"tools": [{}]})"), "1</s>");
}

// As T5's is; what is added has no text.
TEST_F(QuantizeTest, AVocabularyMayBePadded) {
  const fs::path t5 = source_dir() / "tests/hub/models/t5";
  quantize_model_folder(t5, folder_ / "exact", WeightFormat::float32);
  write_padded_model(t5);
  quantize_model_folder(folder_ / "model", folder_ / "small", WeightFormat::float32);
  EXPECT_EQ(Translator::load(folder_ / "small").translate("a word").text(),
            Translator::load(folder_ / "exact").translate("a word").text());
}

// The adapter's folder has no config.json: the refusal is about the model's.
TEST_F(QuantizeTest, AnAdapterOfPanelsIsRefusedWithItsModelsFolder) {
  write_small_model(folder_ / "model");
  quantize_model_folder(folder_ / "model", folder_ / "int8", WeightFormat::int8);
  fs::create_directory(folder_ / "adapter");
  write_json_file(folder_ / "adapter" / "adapter_config.json", {{"base_model_name_or_path", "../int8"}});
  const auto refusal = [&](auto&& use) {
    return message_of<ConfigError>([&] { use(folder_ / "adapter", folder_ / "x"); });
  };
  const std::string begin = (folder_ / "int8").string() + ": its weights are int8 panels; ";
  EXPECT_EQ(
      refusal([](const fs::path& from, const fs::path& to) { quantize_model_folder(from, to, WeightFormat::int4); }),
      begin + "quantize needs the model that it was made from");
  EXPECT_EQ(refusal([](const fs::path& from, const fs::path& to) { export_model_folder(from, to); }),
            begin + "export needs the model that it was made from");
}

}  // namespace
}  // namespace attune

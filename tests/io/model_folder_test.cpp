#include "attune/io/model_folder.h"
#include "attune/base/json_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/base/file.h"
#include "attune/inference/translator.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/models/build.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/memory.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

WhitespaceTokenizer words_tokenizer(const std::string& prefix, int64_t count) {
  std::vector<std::string> words;
  for (int64_t i = 0; i < count; ++i) words.push_back(prefix + std::to_string(i));
  return WhitespaceTokenizer(words);
}

std::unique_ptr<SentencePieceTokenizer> piece_tokenizer() {
  std::vector<std::string> lines;
  for (int i = 0; i < 400; ++i)
    lines.push_back(fmt::format("the {} dogs saw {} small cats jumping quickly over five boxes", i * 7 % 31, i % 13));
  SentencePieceOptions options;
  options.vocab_size = 40;
  options.threads = 1;
  return train_sentence_piece(lines, options);
}

class ModelFolderTest : public ::testing::Test {
 protected:
  ModelFolderTest() { token_bias(*model_, 3) += 2; }
  void save() { save_model_folder(path_, *model_, words_, words_, generation_); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path_)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  template <class E>
  std::string refusal() const {
    return message_of<E>([&] { load_model_folder(path_); });
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run/model";
  GenerationConfig generation_ = {.beam_size = 2, .length_normalization = LengthNormalization::power, .max_length = 9};
  WhitespaceTokenizer words_ = words_tokenizer("w", 36);
  std::unique_ptr<Transformer> model_ = random_model(small_config(MultiHeadLatent{}, NormPlacement::post));
};

TEST_F(ModelFolderTest, TheLoadedModelTranslatesAlike) {
  save();
  EXPECT_EQ(files(), (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                               "vocabulary.json"}));
  const std::vector<std::string> lines = {"w3 w9 w1", "", "w35 w0 unknown w2"};
  const auto words = std::make_shared<WhitespaceTokenizer>(words_);
  const Translator saved(std::shared_ptr<Transformer>(std::move(model_)), words, words, generation_);
  const Translator loaded = Translator::load(path_);
  EXPECT_EQ(loaded.generation(), generation_);
  EXPECT_EQ(&loaded.source_tokenizer(), &loaded.target_tokenizer());
  const auto expected = saved.translate(lines), found = loaded.translate(lines);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(found[i].text(), expected[i].text());
    EXPECT_EQ(found[i].n_best[0].score, expected[i].n_best[0].score);
  }
  EXPECT_FALSE(found[0].text().empty() && found[2].text().empty());
}

TEST_F(ModelFolderTest, SidesMayHaveTokenizersOfTheirOwn) {
  save();  // whose vocabulary.json has to go
  const auto pieces = piece_tokenizer();
  ASSERT_EQ(pieces->vocab_size(), 40);
  save_model_folder(path_, *model_, words_, *pieces, generation_);
  EXPECT_EQ(files(), (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                               "source_vocabulary.json", "target_tokenizer.model"}));
  const ModelFolder loaded = load_model_folder(path_);
  EXPECT_EQ(loaded.source_tokenizer->encode("w0 w5"), words_.encode("w0 w5"));
  EXPECT_EQ(loaded.target_tokenizer->encode("the small cats"), pieces->encode("the small cats"));

  save_model_folder(path_, *model_, *pieces, *pieces, generation_);
  EXPECT_EQ(files(), (std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                               "tokenizer.model"}));
  EXPECT_EQ(load_model_folder(path_).source_tokenizer->encode("five boxes"), pieces->encode("five boxes"));
}

TEST_F(ModelFolderTest, GenerationConfigMayBeMissingOrInPart) {
  save();
  fs::remove(path_ / kGenerationConfigFile);
  EXPECT_EQ(load_model_folder(path_).generation, GenerationConfig{});
  write_file(path_ / kGenerationConfigFile, "{\"beam_size\": 7}");
  EXPECT_EQ(load_model_folder(path_).generation, GenerationConfig{.beam_size = 7});
  write_file(path_ / kGenerationConfigFile, "{\"beam_size\": 0}");
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("generation_config.json: beam_size = 0"));
  write_file(path_ / kGenerationConfigFile, "{\"beam_size\": 256, \"max_length\": 16384, \"max_length_ratio\": 0}");
  EXPECT_THAT(refusal<ConfigError>(),
              HasSubstr("generation_config.json: beam_size = 256 and max_length = 16384: need"));
  write_file(path_ / kGenerationConfigFile, "{\"beam_sise\": 7}");
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("did you mean \"beam_size\""));
  write_file(path_ / kGenerationConfigFile, "{\"length_normalization\": \"mean\"}");
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("needs one of wu, power"));
}

TEST_F(ModelFolderTest, TokenizersHaveToFit) {
  save();
  words_tokenizer("w", 35).save(path_ / "vocabulary.json");
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("vocabulary.json: has 39 tokens, but the model has source_vocab = 40"));
  words_.save(path_ / "vocabulary.json");
  piece_tokenizer()->save(path_ / "tokenizer.model");
  EXPECT_THAT(refusal<FileError>(), HasSubstr("has both tokenizer.model and vocabulary.json"));
  fs::remove(path_ / "tokenizer.model");
  fs::rename(path_ / "vocabulary.json", path_ / "source_vocabulary.json");
  EXPECT_THAT(refusal<FileError>(), HasSubstr("needs tokenizer.json, tokenizer.model"));
  words_tokenizer("v", 37).save(path_ / "target_vocabulary.json");
  EXPECT_THAT(refusal<ConfigError>(),
              HasSubstr("target_vocabulary.json: has 41 tokens, but the model has target_vocab = 40"));
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { save_model_folder(path_ / "new", *model_, words_tokenizer("w", 3), words_, generation_); }),
              HasSubstr("source tokenizer: has 7 tokens"));
  EXPECT_FALSE(fs::exists(path_ / "new"));
}

// Pages of the file that nobody has written to are the system's file cache, one copy for all processes.
TEST_F(ModelFolderTest, LoadedWeightsAreTheFilesPages) {
  save();
  const ModelFolder loaded = load_model_folder(path_);
  float sum = 0;
  for (const NamedParameter& p : named_parameters(*loaded.model))
    for (const float value : p.tensor->values<float>()) sum += value;
  EXPECT_TRUE(std::isfinite(sum));
  const MappedMemory memory = mapped_memory(path_ / kParameterFile);
  if (!memory.known) GTEST_SKIP() << "the system does not say what mapped memory is";
  EXPECT_GE(memory.resident_bytes, static_cast<int64_t>(fs::file_size(path_ / kParameterFile)));
  EXPECT_EQ(memory.anonymous_bytes, 0);
  EXPECT_EQ(memory.dirty_bytes, 0);
}

// The vocabulary of a model that asks for terabytes must not be believed.
TEST_F(ModelFolderTest, AHostileConfigurationAsksForNoMemory) {
  save();
  Json config = read_json_file(path_ / kConfigFile);
  config["d_model"] = 65536;
  config["d_ff"] = 1 << 20;
  config["layers"] = 1024;
  write_json_file(path_ / kConfigFile, config);
  EXPECT_THAT(refusal<FileError>(), HasSubstr("model.safetensors: holds"));
  fs::remove_all(path_);
  EXPECT_THROW(load_model_folder(path_), FileError);
}

TransformerConfig one_stack_config(Architecture architecture) {
  TransformerConfig c = small_config(MultiHead{}, NormPlacement::pre);
  c.architecture = architecture;
  c.vocab = 40;
  c.labels = {"no", "yes"};
  return c;
}

TEST_F(ModelFolderTest, ALanguageModelComesBack) {
  const auto model = build_decoder_lm(one_stack_config(Architecture::decoder_lm), 3);
  const SamplingConfig sampling{.temperature = 0.5, .top_k = 7, .max_tokens = 9};
  save();  // what was there before
  save_model_folder(path_, *model, words_, sampling, TextUnit::paragraph);
  const LanguageModelFolder loaded = load_language_model_folder(path_);
  EXPECT_EQ(loaded.model->config().vocab, 40);
  EXPECT_EQ(loaded.sampling, sampling);
  EXPECT_EQ(loaded.text_unit, TextUnit::paragraph);
  EXPECT_EQ(loaded.tokenizer->encode("w0 w5"), words_.encode("w0 w5"));
  const auto saved = named_parameters(*model), found = named_parameters(*loaded.model);
  ASSERT_EQ(saved.size(), found.size());
  for (size_t i = 0; i < saved.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(saved[i].tensor->values<float>(), found[i].tensor->values<float>()));

  const auto message = [&] { return message_of<ConfigError>([&] { load_language_model_folder(path_); }); };
  write_file(path_ / kGenerationConfigFile, "{\"top_p\": 0}");
  EXPECT_THAT(message(), HasSubstr("generation_config.json: top_p = 0"));
  write_file(path_ / kGenerationConfigFile, "{\"text_unit\": \"page\"}");
  EXPECT_THAT(message(), HasSubstr("needs one of stream, line, paragraph"));
  write_file(path_ / kGenerationConfigFile, "{\"beam_size\": 3}");
  EXPECT_THAT(message(), HasSubstr("unknown key \"beam_size\""));
  fs::remove(path_ / kGenerationConfigFile);
  EXPECT_EQ(load_language_model_folder(path_).sampling, SamplingConfig{});
  words_tokenizer("w", 35).save(path_ / "vocabulary.json");
  EXPECT_THAT(message(), HasSubstr("vocabulary.json: has 39 tokens, but the model has vocab = 40"));
}

TEST_F(ModelFolderTest, AClassifierComesBack) {
  const auto model = build_encoder_classifier(one_stack_config(Architecture::encoder_classifier));
  save();
  save_model_folder(path_, *model, words_, 400);
  const std::vector<std::string> written = {"config.json", "generation_config.json", "model.safetensors",
                                            "vocabulary.json"};
  EXPECT_EQ(files(), written);
  const ClassifierFolder found = load_classifier_folder(path_);
  EXPECT_EQ(found.model->config().labels, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(found.max_tokens, 400);
  std::filesystem::remove(path_ / "generation_config.json");  // of an earlier version
  EXPECT_EQ(load_classifier_folder(path_).max_tokens, 4096);
  write_file(path_ / "generation_config.json", R"({"max_tokens": 2})");
  EXPECT_THAT(message_of<ConfigError>([&] { load_classifier_folder(path_); }),
              HasSubstr("generation_config.json: max_tokens = 2: needs a number from 3"));
  EXPECT_THAT(message_of<ConfigError>([&] { save_model_folder(path_, *model, words_tokenizer("w", 3), 400); }),
              HasSubstr("tokenizer: has 7 tokens"));
}

TEST_F(ModelFolderTest, AFolderSaysWhatItIsFor) {
  save();
  EXPECT_THAT(message_of<ConfigError>([&] { load_language_model_folder(path_); }),
              HasSubstr("model: architecture is \"encoder_decoder\", generation needs \"decoder_lm\" (attune translate "
                        "runs it)"));
  EXPECT_THAT(message_of<ConfigError>([&] { load_classifier_folder(path_); }), HasSubstr("attune translate"));
  const auto masked = build_encoder_masked_lm(one_stack_config(Architecture::encoder_masked_lm));
  save_model_folder(path_, *masked, words_);
  EXPECT_THAT(refusal<ConfigError>(), HasSubstr("architecture is \"encoder_masked_lm\", translation needs"));
}

}  // namespace
}  // namespace attune

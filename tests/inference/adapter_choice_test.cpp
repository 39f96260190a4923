// Adapters of one model that requests choose from.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "attune/inference/quantize.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/io/model_folder.h"
#include "attune/models/build.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"
#include "tests/support/random_adapter.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

// Of several ranks, over several projections.
const std::map<std::string, LoraConfig>& lora_configs() {
  static const std::map<std::string, LoraConfig> configs = {
      {"all", {.rank = 5, .targets = {"all"}}},
      {"attention", {.rank = 2, .rank_stabilized = true, .targets = {"w_q", "w_o"}}},
      {"networks", {.rank = 17, .targets = {"linear_1", "linear_2"}}}};
  return configs;
}

class AdapterChoice : public ::testing::Test {
 protected:
  void write_adapters() {
    uint64_t seed = 1;
    for (const auto& [name, lora] : lora_configs()) {
      write_random_adapter(folder_ / name, folder_ / "base", lora, ++seed);
      all_[name] = folder_ / name;
    }
  }
  AdapterFolders alone(const std::string& name) const {
    return name.empty() ? AdapterFolders{} : AdapterFolders{{name, folder_ / name}};
  }
  static std::vector<std::string> names() { return {"", "all", "attention", "networks"}; }

  TemporaryFolder folder_;
  AdapterFolders all_;
};

const std::string kCharacters = "\n !abcdefghijklmnopqrstuvwxyz";

class GeneratorAdapters : public AdapterChoice {
 protected:
  explicit GeneratorAdapters(const AttentionKind& attention = MultiHead{}) {
    const auto tokenizer = CharacterTokenizer::build_from_texts({kCharacters});
    const TransformerConfig config{.architecture = Architecture::decoder_lm,
                                   .vocab = tokenizer.vocab_size(),
                                   .d_model = 32,
                                   .heads = 4,
                                   .layers = 2,
                                   .d_ff = 48,
                                   .attention = attention,
                                   .positions = RotaryOptions{},
                                   .context_length = 700};
    const auto model = build_decoder_lm(config, 3);
    for (const NamedParameter& p : named_parameters(*model))
      if (p.name == "projection.weight") initialize_normal(*p.tensor, 1.0, 9, 1);
    save_model_folder(folder_ / "base", *model, tokenizer, {.max_tokens = 12}, TextUnit::stream);
    write_adapters();
  }
  // The first is longer than a piece of a prompt.
  static std::vector<std::string> prompts() {
    Random random(5);
    std::vector<std::string> all;
    for (size_t length : {600, 3, 70, 1, 20, 9})
      for (all.emplace_back(); all.back().size() < length;) all.back() += static_cast<char>('a' + random.below(26));
    return all;
  }
  static GenerateOptions options(const std::string& adapter, uint64_t seed) {
    return {.sampling = SamplingConfig{.temperature = 0.8, .max_tokens = 5 + static_cast<int64_t>(seed), .seed = seed},
            .adapter = adapter};
  }

  // Threads with adapters of their own ask at the same time, with prompts and texts of many lengths.
  void expect_answers_as_if_alone() const {
    const TextGenerator together = TextGenerator::load(folder_ / "base", {}, all_);
    EXPECT_EQ(together.adapters(), (std::vector<std::string>{"all", "attention", "networks"}));
    std::vector<std::vector<GeneratedText>> found(2 * names().size());
    std::vector<std::thread> threads;
    for (size_t t = 0; t < found.size(); ++t)
      threads.emplace_back(
          [&, t] { found[t] = together.generate(prompts(), options(names()[t % names().size()], t)); });
    for (std::thread& thread : threads) thread.join();
    std::set<std::string> texts;
    for (size_t t = 0; t < found.size(); ++t) {
      const std::string name = names()[t % names().size()];
      const TextGenerator alone_model = TextGenerator::load(folder_ / "base", {}, alone(name));
      for (size_t p = 0; p < prompts().size(); ++p) {
        const GeneratedText expected = alone_model.generate(prompts()[p], options(name, t));
        EXPECT_EQ(found[t][p].tokens, expected.tokens) << "adapter \"" << name << "\", prompt " << p;
      }
      texts.insert(found[t][0].text);
    }
    EXPECT_GT(texts.size(), 4) << "the adapters change the texts";
  }
};

TEST_F(GeneratorAdapters, EachOfManyRequestsIsAnsweredAsIfItWereAlone) {
  expect_answers_as_if_alone();
}

// Groups of new tokens that expand the latents run projections on their own rows: later pieces of a prompt, say.
class LatentGeneratorAdapters : public GeneratorAdapters {
 protected:
  LatentGeneratorAdapters() : GeneratorAdapters(MultiHeadLatent{.latent_dim = 24, .rotary_dim = 4}) {}
};

TEST_F(LatentGeneratorAdapters, EachOfManyRequestsIsAnsweredAsIfItWereAlone) {
  expect_answers_as_if_alone();
}

// What absorbed decoding reads as plain tensors would lose an adapter.
TEST_F(LatentGeneratorAdapters, ThoseOfAbsorbedMatricesAreRefused) {
  const OpenedFolder base(folder_ / "base");
  const LanguageModelFolder files = base.load_language_model();
  for (const AdapterSlot& slot : adapter_slots(*files.model))
    if (slot.name.ends_with("layers.1.self_attention.w_v_decompress"))
      slot.adapter->set(Tensor::full({2, slot.in()}, 1), Tensor::full({slot.out(), 2}, 1), 1);
  write_adapter(folder_ / "absorbed", *files.model, {.base = base, .lora = {.rank = 2}, .saved = {}});
  EXPECT_THAT(message_of<ConfigError>([&] {
                TextGenerator::load(folder_ / "base", {}, {{"absorbed", folder_ / "absorbed"}});
              }),
              HasSubstr("absorbed/adapter_model.safetensors: tensor \"base_model.model.decoder.layers.1.self_attention."
                        "w_v_decompress.lora_A.weight\" adapts decoder.layers.1.self_attention.w_v_decompress, whose "
                        "weight is read by more than this product"));
}

TEST_F(GeneratorAdapters, ChosenIsAsGoodAsMerged) {
  const TextGenerator together = TextGenerator::load(folder_ / "base", {}, all_);
  for (const auto& [name, folder] : all_) {
    const GenerateOptions greedy{.sampling = SamplingConfig{.temperature = 0, .max_tokens = 8}, .adapter = name};
    GenerateOptions merged = greedy;
    merged.adapter = "";
    EXPECT_EQ(together.generate("the cat", greedy).tokens,
              TextGenerator::load(folder).generate("the cat", merged).tokens)
        << name;
  }
}

TEST_F(GeneratorAdapters, ADraftHasNone) {
  const TextGenerator together = TextGenerator::load(folder_ / "base", {}, all_),
                      draft = TextGenerator::load(folder_ / "base");
  GenerateOptions greedy{.sampling = SamplingConfig{.temperature = 0, .max_tokens = 20}, .adapter = "all"};
  const GeneratedText expected = together.generate("the cat", greedy);
  greedy.draft = &draft.model();
  EXPECT_EQ(together.generate("the cat", greedy).tokens, expected.tokens);
}

TEST_F(GeneratorAdapters, TheModelMayBeQuantised) {
  quantize_model_folder(folder_ / "base", folder_ / "int8", WeightFormat::int8);
  const TextGenerator together = TextGenerator::load(folder_ / "int8", {}, all_);
  EXPECT_EQ(together.generate({"abc", "the cat"}, options("all", 3))[1].tokens,
            TextGenerator::load(folder_ / "int8", {}, alone("all")).generate("the cat", options("all", 3)).tokens);
  EXPECT_NE(together.generate("the cat", options("all", 3)).tokens,
            together.generate("the cat", options("", 3)).tokens);
}

TEST_F(GeneratorAdapters, WhatDoesNotFitIsSaid) {
  const TextGenerator together = TextGenerator::load(folder_ / "base", {}, all_);
  EXPECT_EQ(message_of<ConfigError>([&] { together.generate("a", {.adapter = "legal"}); }),
            "adapter = \"legal\": the model was loaded with all, attention, networks");
  EXPECT_EQ(message_of<ConfigError>([&] { TextGenerator::load(folder_ / "base").generate("a", {.adapter = "all"}); }),
            "adapter = \"all\": the model was loaded with none");
  // Of a model of another width, of one with more layers, and of more than the layers.
  const auto tokenizer = CharacterTokenizer::build_from_texts({kCharacters});
  TransformerConfig config{.architecture = Architecture::decoder_lm,
                           .vocab = tokenizer.vocab_size(),
                           .d_model = 48,
                           .heads = 4,
                           .layers = 2,
                           .d_ff = 48,
                           .context_length = 700};
  const auto refusal = [&](const LoraConfig& lora) {
    save_model_folder(folder_ / "other", *build_decoder_lm(config, 1), tokenizer, {}, TextUnit::stream);
    write_random_adapter(folder_ / "of_other", folder_ / "other", lora, 1);
    return message_of<Error>([&] { TextGenerator::load(folder_ / "base", {}, {{"other", folder_ / "of_other"}}); });
  };
  EXPECT_THAT(refusal({.rank = 2}), HasSubstr("of_other/adapter_model.safetensors: tensors \"base_model.model.decoder."
                                              "layers.0.self_attention.w_q.lora_A.weight\""));
  config.d_model = 32;
  config.layers = 3;
  EXPECT_THAT(refusal({.rank = 2}), HasSubstr("of_other/adapter_model.safetensors: tensor \"base_model.model.decoder."
                                              "layers.2.self_attention.w_q.lora_A.weight\" is for no projection"));
  config.layers = 2;
  EXPECT_THAT(refusal({.rank = 2, .targets = {"projection"}}),
              HasSubstr("adapts projection; requests can only choose"));
}

class TranslatorAdapters : public AdapterChoice {
 protected:
  TranslatorAdapters() {
    const TransformerConfig config = small_config(MultiHead{}, NormPlacement::pre);
    const auto model = random_model(config);
    token_bias(*model, 3) += 2;
    const auto tokenizer = [](const std::string& letter) {
      std::vector<std::string> words;
      for (int i = 0; i < 36; ++i) words.push_back(letter + std::to_string(i));
      return WhitespaceTokenizer(words);
    };
    save_model_folder(folder_ / "base", *model, tokenizer("a"), tokenizer("b"), {.beam_size = 3, .max_length = 10});
    write_adapters();
  }
  static std::vector<std::string> sentences() {
    Random random(8);
    std::vector<std::string> lines(20);
    for (std::string& line : lines)
      for (uint64_t i = 0; i < 1 + random.below(12); ++i) line += " a" + std::to_string(random.below(36));
    return lines;
  }
};

TEST_F(TranslatorAdapters, EachOfManyRequestsIsAnsweredAsIfItWereAlone) {
  const Translator together = Translator::load(folder_ / "base", {}, all_);
  std::vector<std::vector<Translation>> found(names().size());
  std::vector<std::thread> threads;
  for (size_t t = 0; t < found.size(); ++t)
    threads.emplace_back([&, t] { found[t] = together.translate(sentences(), {.adapter = names()[t]}); });
  for (std::thread& thread : threads) thread.join();
  size_t changed = 0;
  for (size_t t = 0; t < found.size(); ++t) {
    const Translator one = Translator::load(folder_ / "base", {}, alone(names()[t]));
    for (size_t s = 0; s < sentences().size(); ++s) {
      const Translation expected = one.translate(sentences()[s], {.adapter = names()[t]});
      EXPECT_EQ(found[t][s].n_best[0].tokens, expected.n_best[0].tokens);
      EXPECT_EQ(found[t][s].n_best[0].token_log_probabilities, expected.n_best[0].token_log_probabilities)
          << "bit for bit, adapter \"" << names()[t] << "\", sentence " << s;
      changed += found[t][s].n_best[0].score != found[0][s].n_best[0].score ? 1 : 0;
    }
  }
  EXPECT_EQ(changed, 3 * sentences().size());
}

TEST_F(TranslatorAdapters, ChosenIsNearToMerged) {
  const Translator together = Translator::load(folder_ / "base", {}, all_);
  for (const auto& [name, folder] : all_) {
    const auto found = together.translate(sentences(), {.adapter = name});
    const auto merged = Translator::load(folder).translate(sentences());
    for (size_t s = 0; s < found.size(); ++s)
      EXPECT_NEAR(found[s].n_best[0].score, merged[s].n_best[0].score, 1e-4) << name << ", sentence " << s;
  }
}

}  // namespace
}  // namespace attune

#include "attune/inference/text_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/io/model_folder.h"
#include "attune/models/build.h"
#include "attune/nn/attention/latent_cost.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/text_file.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/random_model.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kAlphabet = "\n !abcdefghijklmnopqrstuvwxyz";

std::shared_ptr<const Tokenizer> characters() {
  return std::make_shared<CharacterTokenizer>(CharacterTokenizer::build_from_texts({kAlphabet}));
}

TransformerConfig small_lm_config(int64_t vocab, int64_t context = 32) {
  TransformerConfig c;
  c.architecture = Architecture::decoder_lm;
  c.vocab = vocab;
  c.d_model = 32;
  c.heads = 4;
  c.layers = 2;
  c.d_ff = 48;
  c.positions = RotaryOptions{};
  c.context_length = context;
  return c;
}

/// With weights that make it decided about the next token.
std::unique_ptr<DecoderLm> random_lm(const TransformerConfig& config, uint64_t seed = 1) {
  auto model = build_decoder_lm(config, seed);
  Random random(seed, 78);
  for (const NamedParameter& p : named_parameters(*model)) {
    const double deviation = p.name == "projection.weight" ? 0.6 : 0.3;
    for (float& value : p.tensor->values<float>()) value += static_cast<float>(deviation * random.normal());
  }
  return model;
}

void add_to_bias(DecoderLm& model, int32_t token, float by) {
  for (const NamedParameter& p : named_parameters(model)) {
    if (p.name == "projection.bias") p.tensor->values<float>()[static_cast<size_t>(token)] += by;
  }
}

struct Made {
  std::shared_ptr<const Tokenizer> tokenizer = characters();
  TextUnit unit = TextUnit::stream;
  int64_t context = 32;
  float eos_bias = -20;  // never
  SamplingConfig sampling = {.max_tokens = 20};
};

TextGenerator make(const Made& made = {}) {
  auto model = random_lm(small_lm_config(made.tokenizer->vocab_size(), made.context));
  add_to_bias(*model, made.tokenizer->eos_id(), made.eos_bias);
  return TextGenerator({std::move(model), made.tokenizer, made.sampling, made.unit});
}

/// The whole text through the model for every token.
std::vector<int32_t> greedy_without_cache(const TextGenerator& generator, const std::string& prompt, int64_t count) {
  const NoGrad no_grad;
  std::vector<int32_t> ids = generator.encode_prompt(prompt);
  const size_t begin = ids.size();
  for (int64_t i = 0; i < count; ++i) {
    const Tensor states = generator.model().decode(pack_tokens(ids, {0, static_cast<int32_t>(ids.size())}));
    const Tensor logits = generator.model().project(states);
    const auto vocab = static_cast<size_t>(logits.size(1));
    const auto row = logits.values<float>().last(vocab);
    std::vector<float> allowed(row.begin(), row.end());
    for (const int32_t id :
         {generator.tokenizer().pad_id(), generator.tokenizer().bos_id(), generator.tokenizer().unk_id()})
      allowed[static_cast<size_t>(id)] = -1e9f;
    ids.push_back(static_cast<int32_t>(std::max_element(allowed.begin(), allowed.end()) - allowed.begin()));
  }
  return {ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end()};
}

TEST(TextGenerator, TheCacheChangesNothing) {
  const TextGenerator generator = make();
  GenerateOptions options;
  options.sampling = SamplingConfig{.temperature = 0, .max_tokens = 24};
  for (const std::string prompt : {"the dog", "a", ""}) {
    const GeneratedText text = generator.generate(prompt, options);
    EXPECT_EQ(text.tokens, greedy_without_cache(generator, prompt, 24)) << prompt;
    EXPECT_EQ(text.text, generator.tokenizer().decode(text.tokens));
    EXPECT_EQ(text.finish_reason, FinishReason::length);
  }
}

TEST(TextGenerator, ATextDoesNotDependOnItsBatch) {
  const TextGenerator generator = make({.eos_bias = 0, .sampling = {.max_tokens = 18}});
  const std::vector<std::string> prompts = {"the dog", "", "sleeps in the", "the dog", "x"};
  GenerateOptions options;
  options.samples = 3;
  const std::vector<GeneratedText> together = generator.generate(prompts, options);
  ASSERT_EQ(together.size(), 15u);
  const auto same = [&](const std::vector<GeneratedText>& found, size_t offset) {
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].tokens, together[offset + i].tokens) << offset << " + " << i;
      EXPECT_EQ(found[i].text, together[offset + i].text);
      EXPECT_EQ(found[i].finish_reason, together[offset + i].finish_reason);
    }
  };
  for (size_t p = 0; p < prompts.size(); ++p) same(generator.generate(std::span(&prompts[p], 1), options), 3 * p);
  for (const int64_t batch : {1, 2, 4}) {
    options.batch_texts = batch;
    same(generator.generate(prompts, options), 0);
  }
  EXPECT_NE(together[0].tokens, together[1].tokens) << "samples differ";
  EXPECT_EQ(together[0].tokens, together[9].tokens) << "the same prompt and seed, the same text";
  options.sampling = SamplingConfig{.max_tokens = 18, .seed = 2};
  EXPECT_NE(generator.generate(prompts, options)[0].tokens, together[0].tokens);
}

TEST(TextGenerator, WhatArrivesIsTheText) {
  const TextGenerator generator = make({.tokenizer = std::make_shared<ByteTokenizer>()});
  const std::vector<std::string> prompts = {"the", "dog", ""};
  std::vector<std::string> arrived(prompts.size());
  GenerateOptions options;
  options.on_text = [&](size_t index, std::string_view added) {
    EXPECT_FALSE(added.empty());
    EXPECT_TRUE(valid_utf8(added)) << "no half characters";
    arrived[index] += added;
  };
  const std::vector<GeneratedText> texts = generator.generate(prompts, options);
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(arrived[i], texts[i].text);
    EXPECT_EQ(texts[i].text, generator.tokenizer().decode(texts[i].tokens));
  }
}

TEST(TextGenerator, StopStringsMaySpanTokensAndAreNoPartOfTheText) {
  const TextGenerator generator = make();
  const GeneratedText whole = generator.generate("the dog");
  ASSERT_EQ(whole.text.size(), 20u);
  const std::string stop = whole.text.substr(8, 4);
  const size_t at = whole.text.find(stop);
  std::string arrived;
  GenerateOptions options;
  options.stop = {"no such text", stop};
  options.on_text = [&](size_t, std::string_view added) { arrived += added; };
  const GeneratedText stopped = generator.generate("the dog", options);
  EXPECT_EQ(stopped.text, whole.text.substr(0, at));
  EXPECT_EQ(arrived, stopped.text);
  EXPECT_EQ(stopped.finish_reason, FinishReason::stop);
  EXPECT_EQ(stopped.tokens.size(), at + stop.size());
  arrived.clear();
  options.keep_stop = true;
  EXPECT_EQ(generator.generate("the dog", options).text, whole.text.substr(0, at) + stop);
  EXPECT_EQ(arrived, whole.text.substr(0, at) + stop);

  options.stop = {whole.text.substr(17) + "not there"};  // held back until the end
  EXPECT_EQ(generator.generate("the dog", options).text, whole.text);
}

TEST(TextGenerator, EosEnds) {
  const TextGenerator generator = make({.eos_bias = 30});
  const GeneratedText text = generator.generate("the dog");
  EXPECT_EQ(text.finish_reason, FinishReason::eos);
  EXPECT_EQ(text.text, "");
  EXPECT_THAT(text.tokens, ElementsAre(generator.tokenizer().eos_id()));
}

TEST(TextGenerator, PadEndsATextWhereItIsNamedAmongEosTokens) {
  const std::shared_ptr<const Tokenizer> tokenizer = characters();
  auto model = random_lm(small_lm_config(tokenizer->vocab_size()));
  add_to_bias(*model, tokenizer->pad_id(), 60);
  const SamplingConfig sampling{.max_tokens = 20, .eos_tokens = {tokenizer->eos_id(), tokenizer->pad_id()}};
  const TextGenerator generator({std::move(model), tokenizer, sampling, TextUnit::stream});
  const GeneratedText text = generator.generate("the dog");
  EXPECT_EQ(text.finish_reason, FinishReason::eos);
  EXPECT_THAT(text.tokens, ElementsAre(tokenizer->pad_id()));
}

TEST(TextGenerator, TheContextEndsATextThatDoesNotSlide) {
  const TextGenerator generator = make({.context = 16, .sampling = {.max_tokens = 100}});
  const GeneratedText text = generator.generate("the dog");
  EXPECT_EQ(text.finish_reason, FinishReason::context);
  EXPECT_EQ(text.tokens.size(), 16u - 7 + 1) << "the last one is predicted, not read";
  EXPECT_EQ(generator.generate(std::string(16, 'a')).tokens.size(), 1u);
  EXPECT_THAT(message_of<DataError>([&] {
                generator.generate(std::vector<std::string>{"a", std::string(17, 'a')});
              }),
              HasSubstr("prompt 2: has 17 tokens, the model's context_length is 16"));
}

TEST(TextGenerator, SlidingGoesOnWithTheLastHalf) {
  SamplingConfig sampling{.temperature = 0, .max_tokens = 60, .slide = true};
  const TextGenerator generator = make({.context = 16, .sampling = sampling});
  const std::string prompt = "the dog";
  const GeneratedText text = generator.generate(prompt);
  EXPECT_EQ(text.finish_reason, FinishReason::length);
  ASSERT_EQ(text.tokens.size(), 60u);

  std::string all = prompt + text.text;  // one token each
  size_t begin = 0;
  for (size_t i = prompt.size(); i < all.size(); ++i) {
    if (i - begin > 16) begin = i - 8;
    const auto next = greedy_without_cache(generator, all.substr(begin, i - begin), 1);
    ASSERT_EQ(generator.tokenizer().decode(next), all.substr(i, 1)) << i;
  }
  const std::string long_prompt = "a prompt that the model cannot see as a whole";
  const auto of_end = generator.generate(long_prompt.substr(long_prompt.size() - 8));
  EXPECT_EQ(generator.generate(long_prompt).tokens, of_end.tokens);

  const std::vector<std::string> prompts = {"the dog", "x", long_prompt};
  const auto together = generator.generate(prompts);
  EXPECT_EQ(together[0].text, text.text);
  EXPECT_EQ(together[2].tokens, of_end.tokens);
}

TEST(TextGenerator, AnInterruptionKeepsWhatThereIs) {
  const TextGenerator generator = make();
  const std::string whole = generator.generate("the dog").text;
  std::atomic<bool> interrupt = false;
  GenerateOptions options;
  options.interrupt = &interrupt;
  options.on_text = [&](size_t, std::string_view) { interrupt = true; };
  const GeneratedText text = generator.generate("the dog", options);
  EXPECT_EQ(text.finish_reason, FinishReason::interrupted);
  EXPECT_EQ(text.text, whole.substr(0, 1));
  EXPECT_EQ(generator.generate("the dog", options).text, "");
}

TEST(TextGenerator, ADeadlineKeepsWhatThereIs) {
  const TextGenerator generator = make();
  const std::string whole = generator.generate("the dog").text;
  const auto now = std::chrono::steady_clock::now();
  EXPECT_EQ(generator.generate("the dog", {.deadline = now + std::chrono::hours(1)}).text, whole);

  const GeneratedText late = generator.generate("the dog", {.deadline = now});
  EXPECT_EQ(late.finish_reason, FinishReason::deadline);
  EXPECT_EQ(late.text, "");

  GenerateOptions options{.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200)};
  options.on_text = [&](size_t, std::string_view) { std::this_thread::sleep_until(*options.deadline); };
  const GeneratedText text = generator.generate("the dog", options);
  EXPECT_EQ(text.finish_reason, FinishReason::deadline);
  EXPECT_LT(text.text.size(), whole.size());
  EXPECT_EQ(text.text, whole.substr(0, text.text.size()));
}

TEST(TextGenerator, PromptsAreEncodedAsTrainingTextWas) {
  const auto tokenizer = characters();
  const int32_t bos = tokenizer->bos_id();
  const auto ids = [&](const std::string& text) { return tokenizer->encode(text); };
  const auto after_bos = [&](const std::string& text) {
    std::vector<int32_t> all = {bos};
    for (const int32_t id : ids(text)) all.push_back(id);
    return all;
  };
  EXPECT_EQ(make().encode_prompt("a\nb"), ids("a\nb"));
  EXPECT_EQ(make().encode_prompt(""), ids("\n"));
  for (const TextUnit unit : {TextUnit::line, TextUnit::paragraph}) {
    EXPECT_EQ(make({.unit = unit}).encode_prompt("a\nb"), after_bos("a\nb"));
    EXPECT_THAT(make({.unit = unit}).encode_prompt(""), ElementsAre(bos));
  }
  const auto no_line_end = std::make_shared<CharacterTokenizer>(CharacterTokenizer::build_from_texts({"ab"}));
  EXPECT_THAT(make({.tokenizer = no_line_end}).encode_prompt(""), ElementsAre(bos));

  const auto words = std::make_shared<WhitespaceTokenizer>(std::vector<std::string>{"a", "b"});
  const int32_t a = words->encode("a")[0], b = words->encode("b")[0], eos = words->eos_id();
  const TextGenerator lines = make({.tokenizer = words});
  EXPECT_TRUE(lines.eos_is_line_end());
  EXPECT_THAT(lines.encode_prompt("a b\r\n\nb"), ElementsAre(a, b, eos, eos, b));
  EXPECT_THAT(lines.encode_prompt(""), ElementsAre(eos));
  EXPECT_THAT(make({.tokenizer = words, .unit = TextUnit::paragraph}).encode_prompt("a\nb"),
              ElementsAre(words->bos_id(), a, b));
}

TEST(TextGenerator, LineEndsThatAreEosAreText) {
  const auto words = std::make_shared<WhitespaceTokenizer>(std::vector<std::string>{"a", "b"});
  const TextGenerator stream = make({.tokenizer = words, .eos_bias = 30, .sampling = {.max_tokens = 3}});
  const GeneratedText text = stream.generate("a");
  EXPECT_EQ(text.text, "\n\n\n");
  EXPECT_EQ(text.finish_reason, FinishReason::length);
  GenerateOptions options;
  options.stop = {"\n"};
  EXPECT_EQ(stream.generate("a", options).finish_reason, FinishReason::stop);
  const TextGenerator documents = make({.tokenizer = words, .unit = TextUnit::line, .eos_bias = 30});
  EXPECT_EQ(documents.generate("a").finish_reason, FinishReason::eos);
}

TEST(TextGenerator, RefusesWhatDoesNotFit) {
  const TextGenerator generator = make();
  GenerateOptions options;
  options.samples = 0;
  EXPECT_THAT(message_of<ConfigError>([&] { generator.generate(std::vector<std::string>{"a"}, options); }),
              HasSubstr("samples = 0"));
  options = {};
  options.sampling = SamplingConfig{.top_p = 2};
  EXPECT_THAT(message_of<ConfigError>([&] { generator.generate("a", options); }), HasSubstr("top_p = 2"));
  options = {};
  options.stop = {""};
  EXPECT_THAT(message_of<ConfigError>([&] { generator.generate("a", options); }), HasSubstr("stop string"));
  auto model = random_lm(small_lm_config(7));
  EXPECT_THAT(message_of<ConfigError>([&] {
                TextGenerator({std::move(model), characters(), {}, TextUnit::stream});
              }),
              HasSubstr("the model has vocab = 7"));
  EXPECT_TRUE(generator.generate(std::vector<std::string>{}).empty());
}

// The second piece of the prompt is read over the cache, in the expanded form; then single tokens in the absorbed one.
TEST(TextGenerator, LatentAttentionReadsALongPromptInBfloat16) {
  ASSERT_FALSE(absorbs({.heads = 4, .d_head = 8, .d_value = 8, .latent_dim = 24, .queries = 188, .slots = 700}));
  const auto tokenizer = characters();
  TransformerConfig config = small_lm_config(tokenizer->vocab_size(), 800);
  config.attention = MultiHeadLatent{.latent_dim = 24};
  config.positions = SinusoidalPositions{};
  auto model = random_lm(config);
  add_to_bias(*model, tokenizer->eos_id(), -20);
  const TextGenerator generator({std::move(model), tokenizer, {.max_tokens = 5}, TextUnit::stream},
                                {.precision = ProductPrecision::bfloat16});
  std::string prompt;
  for (size_t i = 0; i < 700; ++i) prompt += kAlphabet[i * i % kAlphabet.size()];
  EXPECT_EQ(generator.generate(prompt).tokens.size(), 5u);
}

TEST(TextGenerator, LogitsThatAreNoNumbersAreAnError) {
  auto model = random_lm(small_lm_config(characters()->vocab_size()));
  add_to_bias(*model, 9, std::numeric_limits<float>::quiet_NaN());
  const TextGenerator generator({std::move(model), characters(), {}, TextUnit::stream});
  EXPECT_THAT(message_of<NumericError>([&] { generator.generate("a"); }), HasSubstr("the logit of token 9 is nan"));
  const std::vector<std::string> prompts = {"a"};
  EXPECT_THAT(message_of<NumericError>([&] { generator.generate(prompts, {.places = {"in:3"}}); }),
              testing::StartsWith("in:3: sampling: the logit of token 9 is nan"));
  EXPECT_EQ(message_of<ConfigError>([&] {
              generator.generate(prompts, {.places = {"in:3", "in:4"}});
            }),
            "places: 2 for 1 prompts");
}

// One model, eight callers, each with options of its own.
TEST(TextGenerator, ManyThreadsMayShareOne) {
  constexpr size_t kThreads = 8;
  const TextGenerator generator = make();
  const std::vector<std::string> prompts = {"the dog", "x", "a prompt"};
  const auto options_of = [](size_t thread) {
    GenerateOptions options{.samples = static_cast<int64_t>(1 + thread % 3)};
    options.sampling =
        SamplingConfig{.max_tokens = static_cast<int64_t>(10 + thread), .seed = thread, .slide = thread % 2 == 0};
    if (thread == 3) options.stop = {"e"};
    return options;
  };
  std::vector<std::vector<GeneratedText>> alone, together(kThreads);
  for (size_t t = 0; t < kThreads; ++t) alone.push_back(generator.generate(prompts, options_of(t)));
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        GenerateOptions options = options_of(t);
        std::vector<std::string> arrived(prompts.size() * static_cast<size_t>(options.samples));
        const auto self = std::this_thread::get_id();
        options.on_text = [&](size_t index, std::string_view added) {
          EXPECT_EQ(std::this_thread::get_id(), self);
          arrived[index] += added;
        };
        together[t] = generator.generate(prompts, options);
        for (size_t i = 0; i < arrived.size(); ++i) EXPECT_EQ(arrived[i], together[t][i].text);
      });
    }
  }
  for (size_t t = 0; t < kThreads; ++t) {
    ASSERT_EQ(together[t].size(), alone[t].size());
    for (size_t i = 0; i < alone[t].size(); ++i) {
      EXPECT_EQ(together[t][i].tokens, alone[t][i].tokens);
      EXPECT_EQ(together[t][i].text, alone[t][i].text);
    }
  }
  EXPECT_EQ(generator.scheduler().state().slots_in_use, 0);
}

TEST(TextGenerator, TakesTextAsItComes) {
  const TextGenerator generator = make();
  const std::string prompt = "the dog", text = generator.generate("the dog").text;
  EXPECT_EQ(generator.generate(prompt).text, text);
  EXPECT_EQ(generator.generate({"the dog"}).at(0).text, text);
  EXPECT_EQ(generator.generate({"x", "the dog"}).at(1).text, text);
  EXPECT_EQ(message_of<DataError>([&] { generator.generate({"a", "\xff"}); }), "prompt 2: is not valid UTF-8");
}

TEST(TextGenerator, AnErrorOfTheCallerEndsItsCallAlone) {
  const TextGenerator generator = make();
  GenerateOptions options;
  options.on_text = [](size_t, std::string_view) { fail<DataError>("enough"); };
  EXPECT_EQ(message_of<DataError>([&] { generator.generate("the dog", options); }), "enough");
  EXPECT_EQ(generator.scheduler().state().slots_in_use, 0);
}

// Of a longer prompt the end is used, so that a thousand texts do not each carry a megabyte.
TEST(TextGenerator, WithSlideOnlyTheEndOfALongPromptCounts) {
  const TextGenerator generator = make();
  const auto generate = [&](const std::string& prompt) {
    SamplingConfig sampling = generator.sampling();
    sampling.slide = true;
    return generator.generate(prompt, {.sampling = sampling}).tokens;
  };
  std::string text;
  for (int i = 0; i < 100; ++i) text += "abcde"[i * i % 5];
  EXPECT_EQ(generate(std::string(400'000, 'b') + text), generate("b" + text));
  EXPECT_THAT(message_of<DataError>([&] { generate(std::string(size_t{8} << 20, 'a')); }),
              HasSubstr("prompt 1: has 8388608 bytes, at most 1048576 are accepted"));
}

}  // namespace
}  // namespace attune

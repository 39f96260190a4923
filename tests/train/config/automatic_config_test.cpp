#include "attune/train/config/automatic_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/train/config/config_fields.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

constexpr Architecture kTrained[] = {Architecture::encoder_decoder, Architecture::encoder_classifier,
                                     Architecture::encoder_masked_lm, Architecture::decoder_lm};

// English text of so many words in sentences of 12, as it comes.
TextMeasures text_of(Architecture architecture, int64_t words) {
  return {.architecture = architecture,
          .examples = std::max<int64_t>(1, words / (architecture == Architecture::encoder_decoder ? 24 : 12)),
          .words = words,
          .bytes = 6 * words,
          .characters = 6 * words,
          .distinct_characters = 80,
          .processors = 2};
}

Json sections(const std::vector<Choice>& choices) {
  Json json;
  for (const Choice& choice : choices) {
    const size_t dot = choice.key.find('.');
    json[choice.key.substr(0, dot)][choice.key.substr(dot + 1)] = choice.value;
  }
  return json;
}

// As a run would have it.
RunConfig chosen(const TextMeasures& text) {
  RunConfig config = default_config(text.architecture);
  read_fields(sections(choose_config(text)), config, "the choice");
  config.data.train_source = config.data.train_target = config.data.train_files = {};
  (text.architecture == Architecture::encoder_decoder ? config.data.train_source : config.data.train_files) = {"a"};
  if (text.architecture == Architecture::encoder_decoder) config.data.train_target = {"b"};
  return config;
}

RC_GTEST_PROP(ChooseConfig, IsValidForEveryText, ()) {
  TextMeasures text;
  text.architecture = *rc::gen::elementOf(std::vector(std::begin(kTrained), std::end(kTrained)));
  const auto any = [](int64_t most) {
    return static_cast<int64_t>(std::pow(10, *rc::gen::inRange(0, 1000) / 1000.0 * std::log10(most)));
  };
  text.examples = any(int64_t{1} << 28);
  text.words = any(int64_t{1} << 36);
  text.bytes = text.words * *rc::gen::inRange(1, 40);
  text.characters = std::max<int64_t>(1, text.bytes / *rc::gen::inRange(1, 4));
  text.distinct_characters = *rc::gen::inRange(1, 30000);
  text.subword_marks = *rc::gen::element<int64_t>(0, text.words / 5);
  text.separate_punctuation = *rc::gen::arbitrary<bool>();
  text.regression = text.architecture == Architecture::encoder_classifier && *rc::gen::arbitrary<bool>();
  text.processors = *rc::gen::inRange(1, 256);
  text.avx512 = *rc::gen::arbitrary<bool>();
  RunConfig config = chosen(text);
  if (text.regression) config.model.label_scores = LabelScores::none;
  config.validate_for_training();
  RC_ASSERT(config.data.valid_fraction > 0);
  RC_ASSERT(config.data.valid_fraction <= (text.examples < 10 ? 0.5 : 0.1));
  RC_ASSERT(config.train.steps >= 300);
  RC_ASSERT(config.train.steps > config.schedule.warmup_steps);
  RC_ASSERT(config.model.head_dim() >= 32);
  RC_ASSERT(config.model.d_model <= 768);
  if (config.data.tokenizer_type == TokenizerKind::unigram)
    RC_ASSERT(config.data.vocab_size >= text.distinct_characters + 5);
}

RC_GTEST_PROP(ChooseConfig, GivesMoreTextNoLess, ()) {
  const Architecture architecture = *rc::gen::elementOf(std::vector(std::begin(kTrained), std::end(kTrained)));
  const double little = *rc::gen::inRange(200, 1100) / 100.0;
  const double more = little + *rc::gen::inRange(0, 300) / 100.0;
  TextMeasures a = text_of(architecture, static_cast<int64_t>(std::pow(10, little)));
  TextMeasures b = text_of(architecture, static_cast<int64_t>(std::pow(10, more)));
  // Where characters become subwords, there are fewer tokens.
  if (architecture == Architecture::decoder_lm) a.tokenizer_type = b.tokenizer_type = TokenizerKind::unigram;
  const RunConfig small = chosen(a), large = chosen(b);
  RC_ASSERT(small.model.d_model <= large.model.d_model);
  RC_ASSERT(small.model.layers <= large.model.layers);
  RC_ASSERT(small.data.vocab_size <= large.data.vocab_size);
  RC_ASSERT(small.train.steps <= large.train.steps);
  RC_ASSERT(small.train.batch_tokens <= large.train.batch_tokens);
  RC_ASSERT(small.model.dropout >= large.model.dropout);
  RC_ASSERT(small.data.valid_fraction >= large.data.valid_fraction);
}

// No cliffs: a tenth more text.
RC_GTEST_PROP(ChooseConfig, ChangesLittleWithALittleMoreText, ()) {
  const Architecture architecture = *rc::gen::elementOf(std::vector(std::begin(kTrained), std::end(kTrained)));
  const double size = std::pow(10, *rc::gen::inRange(200, 1100) / 100.0);
  TextMeasures a = text_of(architecture, static_cast<int64_t>(size));
  TextMeasures b = text_of(architecture, static_cast<int64_t>(1.1 * size));
  if (architecture == Architecture::decoder_lm) a.tokenizer_type = b.tokenizer_type = TokenizerKind::unigram;
  const RunConfig small = chosen(a), large = chosen(b);
  RC_ASSERT(large.model.d_model <= small.model.d_model + 32);
  RC_ASSERT(large.model.layers <= small.model.layers + 1);
  RC_ASSERT(large.train.steps <= 1.25 * static_cast<double>(small.train.steps));
  RC_ASSERT(large.data.vocab_size <= 1.25 * static_cast<double>(small.data.vocab_size));
}

TEST(ChooseConfig, IsTheMeasuredRecipeAtItsSize) {
  // Multi30k, docs/results/quality.md: 29,000 pairs.
  TextMeasures pairs = text_of(Architecture::encoder_decoder, 740'000);
  pairs.examples = 29'000;
  const RunConfig translation = chosen(pairs);
  EXPECT_EQ(translation.model.d_model, 128);
  EXPECT_EQ(translation.model.heads, 4);
  EXPECT_EQ(translation.model.layers, 4);
  EXPECT_EQ(translation.model.d_ff, 256);
  EXPECT_NEAR(translation.model.dropout, 0.3, 0.02);
  EXPECT_NEAR(static_cast<double>(translation.train.steps), 10000, 1500);
  EXPECT_NEAR(static_cast<double>(translation.train.batch_tokens), 2500, 200);
  // Tiny Shakespeare.
  TextMeasures play = text_of(Architecture::decoder_lm, 200'000);
  play.bytes = play.characters = 1'115'000;
  play.examples = 1;
  const RunConfig characters = chosen(play);
  EXPECT_EQ(characters.data.tokenizer_type, TokenizerKind::characters);
  EXPECT_EQ(characters.model.d_model, 192);
  EXPECT_EQ(characters.model.layers, 6);
  EXPECT_EQ(characters.model.d_ff, 512);
  EXPECT_EQ(characters.model.context_length, 128);
  EXPECT_NEAR(static_cast<double>(characters.train.steps), 3000, 300);
}

TEST(ChooseConfig, TextThatTakesTooLongGetsTheModelOfLess) {
  TextMeasures text = text_of(Architecture::encoder_decoder, 2'000'000'000);
  const RunConfig two = chosen(text);
  text.processors = 64;
  const RunConfig many = chosen(text);
  EXPECT_LT(two.model.d_model, many.model.d_model);
  EXPECT_LT(two.train.steps * two.train.batch_tokens, many.train.steps * many.train.batch_tokens);
  TextMeasures more = text_of(Architecture::encoder_decoder, 4'000'000'000);
  EXPECT_EQ(chosen(more).model.d_model, two.model.d_model);
}

// Four processors without AVX-512 do what two with it do.
TEST(ChooseConfig, ProcessorsWithoutAvx512CountHalf) {
  TextMeasures wide = text_of(Architecture::encoder_decoder, 2'000'000'000), narrow = wide;
  narrow.avx512 = false;
  EXPECT_LT(chosen(narrow).train.steps * chosen(narrow).train.batch_tokens,
            chosen(wide).train.steps * chosen(wide).train.batch_tokens);
  narrow.processors = 2 * wide.processors;
  EXPECT_EQ(sections(choose_config(narrow)), sections(choose_config(wide)));
}

TEST(ChooseConfig, FollowsWhatIsSaid) {
  TextMeasures text = text_of(Architecture::encoder_decoder, 740'000);
  const RunConfig free = chosen(text);
  text.d_model = 512;
  text.steps = 40;
  const RunConfig said = chosen(text);
  EXPECT_EQ(said.model.heads, 8);
  EXPECT_EQ(said.model.d_ff, 2048);
  EXPECT_LT(said.schedule.learning_rate, free.schedule.learning_rate);
  EXPECT_LT(said.schedule.warmup_steps, 40);
  EXPECT_EQ(said.train.valid_every, 4);
  text.steps = std::nullopt;
  text.epochs = 3;
  EXPECT_LT(chosen(text).train.steps, free.train.steps);
  text.validates = false;
  EXPECT_EQ(chosen(text).train.patience, 0);
  EXPECT_EQ(chosen(text).data.valid_fraction, 0);
}

TEST(ChooseConfig, EpochsAreTheOnlyLimitWhereTheyAreSaid) {
  for (const Architecture architecture : kTrained) {
    TextMeasures text = text_of(architecture, 740'000);
    text.epochs = 3;
    RunConfig config = chosen(text);
    EXPECT_EQ(config.train.steps, 0);
    config.train.epochs = 3;
    config.validate_for_training();
    text.steps = 50;
    EXPECT_EQ(chosen(text).train.steps, 50);
  }
}

TEST(ChooseConfig, FollowsTheSizeOfABatch) {
  TextMeasures text = text_of(Architecture::encoder_decoder, 7'400'000);
  const RunConfig free = chosen(text);
  text.batch_tokens = 4 * free.train.batch_tokens;
  const RunConfig said = chosen(text);
  EXPECT_EQ(said.train.batch_tokens, *text.batch_tokens);
  EXPECT_NEAR(4.0 * static_cast<double>(said.train.steps) / static_cast<double>(free.train.steps), 1, 0.1);
  text.batch_tokens = std::nullopt;
  text.accumulate = 4;
  EXPECT_NEAR(4.0 * static_cast<double>(chosen(text).train.steps) / static_cast<double>(free.train.steps), 1, 0.1);
}

TEST(ChooseConfig, AScheduleThatIsSaidHasItsOwnRates) {
  TextMeasures text = text_of(Architecture::decoder_lm, 200'000);
  text.schedule = ScheduleKind::noam;
  text.steps = 5;
  const RunConfig noam = chosen(text);
  noam.validate_for_training();
  EXPECT_EQ(noam.schedule.learning_rate, 0);
  EXPECT_EQ(noam.schedule.final_learning_rate, 0);
  text.schedule = std::nullopt;
  text.learning_rate = 5e-5;
  EXPECT_DOUBLE_EQ(chosen(text).schedule.final_learning_rate, 2.5e-6);
  for (const double rate : {1e-320, 1e6}) {
    text.learning_rate = rate;
    EXPECT_LE(chosen(text).schedule.final_learning_rate, rate);
  }
}

TEST(ChooseConfig, HoldsOutNoMoreThanValidationUses) {
  TextMeasures pairs = text_of(Architecture::encoder_decoder, 20'000'000);
  pairs.examples = 1'000'000;
  EXPECT_EQ(chosen(pairs).data.valid_fraction, 0.0005);
  EXPECT_EQ(chosen(pairs).train.valid_sentences, 0);
  pairs.validates = true;
  EXPECT_EQ(chosen(pairs).train.valid_sentences, 500);
  TextMeasures labelled = text_of(Architecture::encoder_classifier, 20'000'000);
  labelled.examples = 1'000'000;
  EXPECT_EQ(chosen(labelled).data.valid_fraction, 0.004);
}

TEST(ChooseConfig, TheEndOfABookInOneLineIsHeldOut) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_masked_lm}) {
    TextMeasures book = text_of(architecture, 100'000);
    book.examples = 1;
    EXPECT_EQ(chosen(book).data.valid_fraction, 0.1);
    book = text_of(architecture, 100'000'000);
    book.examples = 1;
    EXPECT_LT(chosen(book).data.valid_fraction, 0.01);
  }
}

TEST(ChooseConfig, SeesWhatIsCutAlready) {
  TextMeasures text = text_of(Architecture::encoder_decoder, 740'000);
  text.subword_marks = 30'000;
  EXPECT_EQ(chosen(text).data.tokenizer_type, TokenizerKind::whitespace);
  EXPECT_EQ(chosen(text).data.subword_marker, "@@");
  TextMeasures labelled = text_of(Architecture::encoder_classifier, 60'000);
  EXPECT_EQ(chosen(labelled).data.tokenizer_type, TokenizerKind::unigram);
  labelled.separate_punctuation = true;
  EXPECT_EQ(chosen(labelled).data.tokenizer_type, TokenizerKind::whitespace);
}

class AutomaticConfigFiles : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return (folder_ / name).string();
  }
  // A text of that architecture.
  Json text(Architecture architecture) {
    Json sections;
    sections["model"]["architecture"] = enum_name(architecture);
    if (architecture == Architecture::encoder_decoder) {
      sections["data"]["train_source"] = Json{file("a", "ein Hund\nzwei Hunde\n")};
      sections["data"]["train_target"] = Json{file("b", "a dog\ntwo dogs\n")};
    } else if (architecture == Architecture::encoder_classifier) {
      write_keyword_text(folder_ / "c.tsv", 100, 1);
      sections["data"]["train_files"] = Json{(folder_ / "c.tsv").string()};
    } else {
      sections["data"]["train_files"] = Json{file("d.txt", "Ein Hund,\nzwei Hunde. Drei\n")};
    }
    return sections;
  }
  std::string refusal(Architecture architecture, const std::vector<std::string>& overrides,
                      std::string_view preset = {}) {
    return message_of<ConfigError>([&] { read_automatic_config(text(architecture), overrides, preset); });
  }
  TemporaryFolder folder_;
};

TEST_F(AutomaticConfigFiles, AreMeasured) {
  const auto measures = [&](Architecture architecture) {
    RunConfig config = default_config(architecture);
    const Json data = text(architecture).at("data");
    read_fields(data, config.data, "data");
    return measure_text(config);
  };
  const TextMeasures pairs = measures(Architecture::encoder_decoder);
  EXPECT_EQ(pairs.examples, 2);
  EXPECT_EQ(pairs.words, 8);
  EXPECT_EQ(pairs.bytes, 35);
  EXPECT_EQ(pairs.characters, 31);
  EXPECT_EQ(pairs.distinct_characters, 13);  // e i n H u d z w a o g t s
  const TextMeasures labelled = measures(Architecture::encoder_classifier);
  EXPECT_EQ(labelled.examples, 100);
  EXPECT_GT(labelled.words, 300);
  EXPECT_FALSE(labelled.separate_punctuation);
  const TextMeasures plain = measures(Architecture::decoder_lm);
  EXPECT_EQ(plain.examples, 2);
  EXPECT_EQ(plain.words, 5);
  file("e.tsv", [] {
    std::string lines;
    for (int i = 0; i < 30; ++i) lines += "x\tgut@@ es Wort .\n";
    return lines;
  }());
  RunConfig config = default_config(Architecture::encoder_classifier);
  config.data.train_files = {(folder_ / "e.tsv").string()};
  EXPECT_TRUE(measure_text(config).separate_punctuation);
  EXPECT_EQ(measure_text(config).subword_marks, 30);
  config.data.train_files = {};
  EXPECT_THAT(message_of<ConfigError>([&] { measure_text(config); }), HasSubstr("data.train_files names no file"));
}

TEST_F(AutomaticConfigFiles, AssignmentsStandAboveTheChoice) {
  const AutomaticConfig free = read_automatic_config(text(Architecture::encoder_decoder), {});
  const AutomaticConfig said =
      read_automatic_config(text(Architecture::encoder_decoder), {"model.d_model=96", "train.steps=7"});
  EXPECT_EQ(said.config.model.d_model, 96);
  EXPECT_EQ(said.config.train.steps, 7);
  EXPECT_EQ(said.config.data.train_source, free.config.data.train_source);
  const auto has = [](const AutomaticConfig& c, const std::string& key) {
    return std::ranges::any_of(c.choices, [&](const Choice& choice) { return choice.key == key; });
  };
  EXPECT_TRUE(has(free, "model.d_model"));
  EXPECT_FALSE(has(said, "model.d_model")) << "it is not chosen";
  EXPECT_FALSE(has(said, "train.steps"));
  EXPECT_TRUE(has(said, "data.vocab_size"));
}

TEST_F(AutomaticConfigFiles, ATokenizerThatIsSaidLeavesNoneToChoose) {
  Json pairs = text(Architecture::encoder_decoder);
  const auto keys = [&](const std::vector<std::string>& overrides) {
    std::vector<std::string> names;
    for (const Choice& choice : read_automatic_config(pairs, overrides).choices) names.push_back(choice.key);
    return names;
  };
  EXPECT_THAT(keys({}), IsSupersetOf({"data.tokenizer_type", "data.vocab_size"}));
  file("a", "ei@@ n Hu@@ nd\nzwei Hu@@ nde\n");  // cut already: data.subword_marker would be chosen
  const std::vector<std::string> one = {"data.tokenizer=a.model"};
  const std::vector<std::string> two = {"data.source_tokenizer=a.model", "data.target_tokenizer=b.model"};
  for (const std::vector<std::string>& files : {one, two}) {
    EXPECT_THAT(keys(files), Not(Contains(AnyOf("data.tokenizer_type", "data.vocab_size"))));
    EXPECT_EQ(read_automatic_config(pairs, files).config.data.subword_marker, "");
  }
  const auto shares = [&](const std::vector<std::string>& overrides) {
    return read_automatic_config(pairs, overrides).config.model.share_embeddings;
  };
  EXPECT_TRUE(shares({}));
  EXPECT_TRUE(shares(one));
  EXPECT_FALSE(shares(two));
  EXPECT_TRUE(shares({"data.source_tokenizer=a.model", "data.target_tokenizer=a.model", "data.joint_vocab=false"}));
  EXPECT_FALSE(shares({"data.joint_vocab=false"}));
}

TEST_F(AutomaticConfigFiles, WhatFollowsFromAnAssignmentIsChosenForIt) {
  const auto config = [&](Architecture architecture, const std::vector<std::string>& overrides) {
    return read_automatic_config(text(architecture), overrides).config;
  };
  const RunConfig noam = config(Architecture::encoder_decoder, {"schedule.kind=noam"});
  EXPECT_EQ(noam.schedule.peak(), 1.0);
  const RunConfig slow = config(Architecture::decoder_lm, {"schedule.learning_rate=5e-5"});
  EXPECT_DOUBLE_EQ(slow.schedule.final_learning_rate, 2.5e-6);
  const RunConfig epochs = config(Architecture::encoder_decoder, {"train.epochs=3"});
  EXPECT_EQ(epochs.train.epochs, 3);
  EXPECT_EQ(epochs.train.steps, 0);
  const auto steps_with = [&](const char* batch) {
    const Json sections = text(Architecture::encoder_classifier);
    write_keyword_text(folder_ / "c.tsv", 20000, 1);
    return read_automatic_config(sections, {batch}).config.train.steps;
  };
  EXPECT_GT(steps_with("train.batch_tokens=200"), 2 * steps_with("train.batch_tokens=800"));
}

TEST_F(AutomaticConfigFiles, TheMeanOfCheckpointsHasItsCheckpointsAndNoMovingAverage) {
  const auto config = [&](const std::vector<std::string>& overrides) {
    return read_automatic_config(text(Architecture::encoder_decoder), overrides).config.train;
  };
  EXPECT_GT(config({}).moving_average, 0);
  const TrainConfig averaged = config({"train.average_checkpoints=5"});
  EXPECT_EQ(averaged.keep_checkpoints, 5);
  EXPECT_EQ(averaged.moving_average, 0);
  EXPECT_EQ(averaged.checkpoint_every, averaged.valid_every) << "ten of each";
  EXPECT_EQ(config({}).checkpoint_every, 0) << "at each validation";
  for (const int64_t count : {2, 5, 7, 10, 12, 25}) {
    const TrainConfig train = config({fmt::format("train.average_checkpoints={}", count)});
    const int64_t first_end = (train.patience + 1) * train.valid_every;  // the first validation was the best one
    EXPECT_LT(first_end, train.steps);
    EXPECT_GE(first_end / train.checkpoint_every, count) << count;
  }
  EXPECT_EQ(config({"train.average_checkpoints=12", "train.steps=12"}).checkpoint_every, 1);
  EXPECT_EQ(config({"train.average_checkpoints=12", "train.checkpoint_every=50"}).checkpoint_every, 50) << "it is said";
  EXPECT_EQ(config({"train.average_checkpoints=1"}).moving_average, config({}).moving_average) << "averages nothing";
  const TrainConfig both = config({"train.average_checkpoints=5", "train.moving_average=0.9"});
  EXPECT_EQ(both.moving_average, 0.9) << "it is said";
  EXPECT_THAT(refusal(Architecture::encoder_decoder, {"train.average_checkpoints=5", "train.keep_checkpoints=3"}),
              HasSubstr("only train.keep_checkpoints = 3 are kept"));
  EXPECT_THAT(refusal(Architecture::encoder_decoder, {"train.average_checkpoints=20000"}),
              HasSubstr("train.average_checkpoints = 20000: needs a number from 0 to 10000"));
}

TEST_F(AutomaticConfigFiles, APresetsWarmUpFitsTheStepsThatAreChosen) {
  const Json play = text(Architecture::decoder_lm);
  const AutomaticConfig run = read_automatic_config(play, {}, "gpt2-124m");
  EXPECT_LE(run.config.schedule.warmup_steps, run.config.train.steps / 10);
  EXPECT_EQ(std::ranges::count(run.choices, "schedule.warmup_steps", &Choice::key), 1);
  EXPECT_EQ(read_automatic_config(play, {"schedule.warmup_steps=7"}, "gpt2-124m").config.schedule.warmup_steps, 7);
  const RunConfig preset = read_run_config("", {}, "gpt2-124m");
  const AutomaticConfig long_run = read_automatic_config(play, {"train.steps=100000"}, "gpt2-124m");
  EXPECT_EQ(long_run.config.schedule.warmup_steps, preset.schedule.warmup_steps);
}

TEST_F(AutomaticConfigFiles, APresetKeepsItsModelAndRecipe) {
  const Json play = text(Architecture::decoder_lm);
  const AutomaticConfig run = read_automatic_config(play, {}, "gpt-char");
  const RunConfig preset = read_run_config("", {}, "gpt-char");
  EXPECT_EQ(run.config.model, preset.model);
  EXPECT_EQ(run.config.optimizer, preset.optimizer);
  EXPECT_EQ(run.config.schedule, preset.schedule);
  EXPECT_EQ(run.config.train.steps, preset.train.steps);
  EXPECT_EQ(run.config.data.tokenizer_type, TokenizerKind::characters);
  EXPECT_GT(run.config.data.valid_fraction, 0);
}

TEST_F(AutomaticConfigFiles, ContradictionsAreRefused) {
  EXPECT_THAT(refusal(Architecture::decoder_lm, {"data.train_files=x"}), HasSubstr("data.train_files is said twice"));
  EXPECT_THAT(
      refusal(Architecture::decoder_lm, {"data.prepared=x"}),
      HasSubstr("data.prepared cannot be used when the configuration is chosen from a text; write a configuration "
                "file that names it"));
  EXPECT_THAT(refusal(Architecture::encoder_classifier, {"train.initialize_from=x"}),
              HasSubstr("train.initialize_from has a model of its own"));
  EXPECT_THAT(refusal(Architecture::encoder_classifier, {"model.architecture=decoder_lm"}),
              HasSubstr("model.architecture = \"decoder_lm\" does not read such a text, which is for "
                        "\"encoder_classifier\""));
  EXPECT_THAT(refusal(Architecture::decoder_lm, {}, "transformer-base"),
              HasSubstr("\"encoder_decoder\" does not read such a text"));
  EXPECT_EQ(read_automatic_config(text(Architecture::decoder_lm), {"model.architecture=encoder_masked_lm"})
                .config.model.architecture,
            Architecture::encoder_masked_lm);
  EXPECT_THAT(refusal(Architecture::encoder_decoder, {"model.d_model=33"}), HasSubstr("model.d_model=33"));
}

}  // namespace
}  // namespace attune

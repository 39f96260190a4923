#include "attune/train/config.h"
#include "attune/base/json_fields.h"
#include "attune/kernels/gemm/matmul.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <functional>
#include <limits>
#include <utility>

#include "attune/base/file.h"
#include "attune/io/toml_config.h"
#include "attune/train/config/config_description.h"
#include "attune/train/config/config_help.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::vector<std::string> kFiles = {"data.train_source=a.en", "data.train_target=a.de"};

RunConfig read(const std::string& text, std::vector<std::string> overrides = kFiles) {
  const TemporaryFolder folder;
  write_file(folder / "run.toml", text);
  return read_run_config(folder / "run.toml", overrides);
}

TEST(RunConfig, DefaultsAreValid) {
  EXPECT_NO_THROW(RunConfig{}.validate());
  EXPECT_EQ(RunConfig{}.schedule.peak(), 1.0);
  EXPECT_EQ(ScheduleConfig{.kind = ScheduleKind::cosine}.peak(), 1e-3);
  EXPECT_EQ((ScheduleConfig{.learning_rate = 0.25}).peak(), 0.25);
}

TEST(RunConfig, IsReadFromToml) {
  const RunConfig config =
      read(R"(
[model]
d_model = 64
heads = 4
encoder_attention = "latent"
decoder_attention = {kind = "latent", latent_dim = 16}
norm = "post"
[data]
tokenizer_type = "whitespace"
subword_marker = "@@"
[optimizer]
kind = "adamw"
weight_decay = 0.01
[schedule]
kind = "cosine"
learning_rate = 0.0005
[train]
steps = 5000
best_metric = "loss"
seed = 18
[generation]
beam_size = 5
)",
           {"data.train_source=[\"a\", \"b\"]", "data.train_target=[\"c\", \"d\"]", "train.seed=42"});
  EXPECT_EQ(config.model.d_model, 64);
  EXPECT_TRUE(std::holds_alternative<MultiHeadLatent>(config.model.encoder_attention));
  EXPECT_EQ(std::get<MultiHeadLatent>(config.model.decoder_attention).latent_dim, 16);
  EXPECT_TRUE(std::holds_alternative<MultiHead>(config.model.cross_attention));
  EXPECT_EQ(config.model.norm, NormPlacement::post);
  EXPECT_THAT(config.data.train_source, ElementsAre("a", "b"));
  EXPECT_EQ(config.data.tokenizer_type, TokenizerKind::whitespace);
  EXPECT_EQ(config.optimizer.kind, OptimizerKind::adamw);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::cosine);
  EXPECT_EQ(config.train.best_metric, ValidationMetric::loss);
  EXPECT_EQ(config.train.seed, 42u) << "assignments come after the file";
  EXPECT_EQ(config.generation.beam_size, 5);
  EXPECT_EQ(config.train.batch_tokens, TrainConfig{}.batch_tokens) << "what is not named keeps its default";
}

TEST(RunConfig, NoFileIsAnEmptyFile) {
  const RunConfig config = read_run_config("", kFiles);
  EXPECT_THAT(config.data.train_target, ElementsAre("a.de"));
  EXPECT_EQ(message_of<ConfigError>([] { read_run_config("", {"train.steps=x"}); }),
            "--set train.steps=x: train.steps: is \"x\", needs a whole number");
}

TEST(RunConfig, TheExamplesAreValid) {
  int examples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "examples")) {
    if (entry.path().extension() != ".toml") continue;
    EXPECT_NO_THROW(read_run_config(entry.path())) << entry.path();
    ++examples;
  }
  EXPECT_GE(examples, 2);
}

TEST(RunConfig, ErrorsNameFileSectionAndKey) {
  const auto refusal = [](const std::string& text, const std::vector<std::string>& overrides = kFiles) {
    return message_of<Error>([&] { read(text, overrides); });
  };
  EXPECT_THAT(refusal("[modell]\nx = 1"), HasSubstr("run.toml: unknown section [modell], did you mean [model]?"));
  EXPECT_THAT(refusal("[model]\nd_modl = 1"),
              HasSubstr("run.toml: model: unknown key \"d_modl\", did you mean \"d_model\"?"));
  EXPECT_THAT(refusal("[train]\nsteps = 1.5"), HasSubstr("run.toml: train.steps: is 1.5, needs a whole number"));
  EXPECT_THAT(refusal("\"\" = 3"), HasSubstr("run.toml: unknown section []"));
  EXPECT_THAT(refusal("train = 3"), HasSubstr("run.toml: train: needs a table of keys, found number"));
  EXPECT_THAT(refusal("[model]\nd_model = 9"), HasSubstr("run.toml: model.d_model = 9 is not divisible by heads = 8"));
  EXPECT_THAT(refusal("[schedule]\nkind = \"step\""),
              HasSubstr("needs one of noam, inverse_sqrt, cosine, linear, constant"));
  RunConfig config;
  config.data.train_source = config.data.train_target = {"a"};
  config.train.patience = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { config.validate_for_training(); }),
              HasSubstr("train.patience = 3 needs data.valid_source or data.valid_fraction"));
  EXPECT_THAT(message_of<ConfigError>([] { read_run_config("").validate_for_training(); }),
              HasSubstr("data.train_source names no file"));
  EXPECT_THAT(refusal("", {"data.train_source=a"}),
              HasSubstr("data.train_source names 1 files but data.train_target names 0"));
}

// Its gradient would be 0. Models of the hub are like that, and may be trained further.
TEST(RunConfig, ARouterOfOneExpertWhoseWeightIsAlwaysOneIsNotTrained) {
  RunConfig config;
  config.data.train_source = config.data.train_target = {"a"};
  config.model.feed_forward = Experts{.experts = 4, .experts_per_token = 1};
  EXPECT_NO_THROW(config.validate());
  EXPECT_THAT(message_of<ConfigError>([&] { config.validate_for_training(); }),
              HasSubstr("model.feed_forward: experts_per_token = 1 with normalised_weights = true trains no choice"));
  config.train.initialize_from = "mixture";
  EXPECT_NO_THROW(config.validate_for_training());
  config.train.initialize_from = "";
  config.model.feed_forward = Experts{.experts = 4, .experts_per_token = 1, .normalised_weights = false};
  EXPECT_NO_THROW(config.validate_for_training());
}

TEST(RunConfig, ValidateNamesFieldAndValue) {
  const auto refusal = [](const std::function<void(RunConfig&)>& change) {
    RunConfig config;
    change(config);
    return message_of<ConfigError>([&] { config.validate(); });
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  using C = RunConfig;
  const std::pair<std::function<void(C&)>, const char*> cases[] = {
      {[](C& c) { c.model.layers = 0; }, "model.layers = 0: needs a number from 1 to 1024"},
      {[](C& c) { c.model.source_vocab = -1; }, "model.source_vocab = -1"},
      {[](C& c) { c.data.valid_source = {"a"}; }, "data.valid_source names 1 files but data.valid_target names 0"},
      {[](C& c) { c.data.source_tokenizer = "a"; }, "data.source_tokenizer = \"a\" and data.target_tokenizer = \"\""},
      {[](C& c) { c.data.tokenizer = c.data.source_tokenizer = c.data.target_tokenizer = "a"; }, "serves both sides"},
      {[](C& c) { c.data.subword_marker = "@@"; }, "data.subword_marker = \"@@\" needs data.tokenizer_type"},
      {[](C& c) { c.data.vocab_size = 0; }, "data.vocab_size = 0: needs a number from 8"},
      {[](C& c) { c.data.max_tokens_per_sentence = 0; }, "data.max_tokens_per_sentence = 0"},
      {[](C& c) { c.data.prepared = "p", c.data.train_source = c.data.train_target = {"a"}; },
       "data.train_source names a: data.prepared = \"p\" is the training text"},
      {[](C& c) { c.data.prepared = "p", c.generation.special_tokens = true; },
       "generation.special_tokens = true: data.prepared = \"p\" has bos and eos"},
      {[](C& c) { c.data.prepared = "p", c.data.tokenizer = "t"; }, "data.tokenizer = \"t\": data.prepared = \"p\""},
      {[](C& c) { c.optimizer.beta_1 = 1; }, "optimizer.beta_1 = 1: needs a number from 0 to below 1"},
      {[](C& c) { c.optimizer.beta_2 = -0.5; }, "optimizer.beta_2 = -0.5"},
      {[](C& c) { c.optimizer.epsilon = 0; }, "optimizer.epsilon = 0"},
      {[=](C& c) { c.optimizer.weight_decay = nan; }, "optimizer.weight_decay = nan"},
      {[](C& c) { c.optimizer.clip_norm = -1; }, "optimizer.clip_norm = -1"},
      {[](C& c) { c.schedule.learning_rate = -1; }, "schedule.learning_rate = -1"},
      {[](C& c) { c.schedule.warmup_steps = 0; },
       "schedule.warmup_steps = 0: schedule.kind = \"noam\" needs at least 1"},
      {[](C& c) { c.schedule.final_learning_rate = 2; },
       "schedule.final_learning_rate = 2: needs a number from 0 to 1"},
      {[](C& c) { c.schedule.kind = ScheduleKind::linear, c.train.steps = 4000; },
       "train.steps = 4000: schedule.kind = \"linear\" needs more than schedule.warmup_steps = 4000"},
      {[](C& c) { c.schedule.kind = ScheduleKind::cosine, c.train.steps = 0, c.train.max_minutes = 1; },
       "train.steps = 0: schedule.kind = \"cosine\" needs train.steps or train.epochs"},
      {[](C& c) { c.train.steps = 0; }, "train.steps = 0 is no limit"},
      {[](C& c) { c.train.epochs = -1; }, "train.epochs = -1"},
      {[](C& c) { c.train.batch_tokens = 0; }, "train.batch_tokens = 0"},
      {[](C& c) { c.train.accumulate = 0; }, "train.accumulate = 0"},
      {[](C& c) { c.train.label_smoothing = 1; }, "train.label_smoothing = 1"},
      {[](C& c) { c.train.guided_alignment = 0.5; },
       "train.guided_alignment = 0.5: needs data.train_alignments, which guide the head"},
      {[](C& c) {
         c.train.subword_sampling = 0.1, c.data.train_source = c.data.train_target = c.data.train_alignments = {"a"};
       },
       "train.subword_sampling = 0.1: cannot be used with data.train_alignments, which link the tokens of one fixed "
       "segmentation"},
      {[](C& c) { c.data.valid_fraction = 0.1, c.data.valid_source = c.data.valid_target = {"a"}; },
       "data.valid_fraction = 0.1: cannot be given together with data.valid_source"},
      {[](C& c) { c.train.initialize_from = "m", c.lora.rank = 8, c.train.average_checkpoints = 3; },
       "train.average_checkpoints = 3: adapters (lora.rank = 8) cannot be averaged, since the product of two means is "
       "not the mean of the products; needs 0 or 1"},
      {[](C& c) {
         c.train.initialize_from = "m", c.lora.rank = 8;
         c.model.feed_forward = Experts{.experts = 4, .choice_bias = true, .bias_rate = 0.001};
       },
       "model.feed_forward.bias_rate = 0.001: changes the base model, which adapters (lora.rank = 8) must not; needs "
       "0"},
      {[](C& c) { c.train.seed = uint64_t{1} << 63; }, "train.seed = 9223372036854775808: needs a number below 2^63"},
      {[](C& c) { c.train.log_every = 0; }, "train.log_every = 0"},
      {[](C& c) { c.train.valid_every = -1; }, "train.valid_every = -1"},
      {[](C& c) { c.train.valid_beam_size = 0; }, "train.valid_beam_size = 0"},
      {[](C& c) { c.train.patience = -1; }, "train.patience = -1"},
      {[](C& c) { c.train.keep_checkpoints = -1; }, "train.keep_checkpoints = -1"},
      {[](C& c) { c.train.average_checkpoints = 6; }, "train.average_checkpoints = 6: only train.keep_checkpoints = 5"},
      {[](C& c) { c.train.moving_average = 1; }, "train.moving_average = 1"},
      {[](C& c) { c.train.max_minutes = -1; }, "train.max_minutes = -1"},
      {[](C& c) { c.train.threads = -1; }, "train.threads = -1"},
      {[](C& c) { c.generation.beam_size = 0; }, "generation.beam_size = 0: needs a number from 1 to 1024"},
      {[](C& c) { c.train.valid_beam_size = 256, c.generation.max_length = 1024; },
       "train.valid_beam_size: generation.beam_size = 256 and max_length = 1024: need a product of at most 131072"},
      {[](C& c) { c.generation.max_length = 0; }, "generation.max_length = 0"},
      {[=](C& c) { c.generation.length_penalty = nan; }, "generation.length_penalty = nan"},
      {[](C& c) { c.model.share_embeddings = true, c.data.joint_vocab = false; },
       "model.share_embeddings = true needs one"},
  };
  for (const auto& [change, expected] : cases) EXPECT_THAT(refusal(change), HasSubstr(expected));
}

TEST(RunConfig, LimitsThatAreFineTogether) {
  RunConfig config;
  config.generation.beam_groups = 2;  // of a beam of 4; validation is greedy
  config.train.steps = 0;
  config.train.max_minutes = 5;
  config.train.average_checkpoints = 8;
  config.train.keep_checkpoints = 0;
  config.model.share_embeddings = true;
  config.model.target_vocab = 100;
  EXPECT_NO_THROW(config.validate());
  config.train.guided_alignment = 0;
  EXPECT_NO_THROW(config.validate());
  config.data.joint_vocab = false;
  config.data.tokenizer = "one.model";
  EXPECT_NO_THROW(config.validate());
  config.data.source_tokenizer = config.data.target_tokenizer = std::exchange(config.data.tokenizer, "");
  EXPECT_NO_THROW(config.validate());
}

TEST(RunConfig, WhatIsWrittenIsRead) {
  RunConfig config;
  config.model.encoder_attention = MultiHeadLatent{.latent_dim = 64};
  config.model.cross_attention = MultiHead{.bias = AttentionBias::output};
  config.model.norm_form = NormForm::unbiased_std;
  config.model.positions = LearnedPositions{.max_length = 600};
  config.data.train_source = {"a \"b\".en", "\xC3\xA9.en"};
  config.data.train_target = {"a.de", "b.de"};
  config.data.tokenizer_type = TokenizerKind::bpe;
  config.schedule.kind = ScheduleKind::inverse_sqrt;
  config.schedule.learning_rate = 1.0 / 3;
  config.train.seed = std::numeric_limits<int64_t>::max();
  config.train.best_metric = ValidationMetric::loss;
  config.generation.length_penalty = 1;
  EXPECT_EQ(read(write_toml(config), {}), config);
}

TEST(RunConfig, WhatIsWrittenIsReadForEveryArchitecture) {
  for (const auto& [architecture, name] : EnumNames<Architecture>::values) {
    if (architecture == Architecture::encoder) continue;  // is not trained
    RunConfig config = default_config(architecture);
    config.data.vocab_size = 100;
    EXPECT_EQ(read(write_toml(config), {}), config) << name;
    const bool pairs = architecture == Architecture::encoder_decoder;
    EXPECT_EQ(write_toml(config).find("train_source") != std::string::npos, pairs) << name;
    EXPECT_EQ(write_toml(config).find("train_files") != std::string::npos, !pairs) << name;
    EXPECT_EQ(write_toml(config).find("[generation]") != std::string::npos, pairs) << name;
    EXPECT_EQ(nlohmann::json(parse_toml(describe_config(config), "description")),
              nlohmann::json(parse_toml(write_toml(config), "config")))
        << name;
  }
  EXPECT_EQ(read("[model]\narchitecture = \"decoder_lm\"", {}), default_config(Architecture::decoder_lm));
}

TEST(RunConfig, FieldsOfAnotherArchitectureAreRefused) {
  const auto refusal = [](const std::string& architecture, const std::string& assignment) {
    return message_of<ConfigError>([&] { read_run_config("", {"model.architecture=" + architecture, assignment}); });
  };
  EXPECT_EQ(refusal("decoder_lm", "data.train_source=a"),
            "--set data.train_source=a: data.train_source: architecture = \"decoder_lm\" reads data.train_files (the "
            "architecture comes from --set model.architecture=decoder_lm)");
  EXPECT_EQ(refusal("encoder_decoder", "data.train_files=a"),
            "--set data.train_files=a: data.train_files: architecture = \"encoder_decoder\" reads data.train_source "
            "and data.train_target (the architecture comes from --set model.architecture=encoder_decoder)");
  EXPECT_THAT(refusal("encoder_classifier", "generation.beam_size=2"),
              HasSubstr("--set generation.beam_size=2: generation.beam_size: architecture = \"encoder_classifier\" has "
                        "no use for it"));
  EXPECT_THAT(refusal("encoder_decoder", "sampling.top_k=2"), HasSubstr("sampling.top_k: "));
  EXPECT_EQ(refusal("encoder", "data.train_files=a"),
            "--set model.architecture=encoder: model.architecture = \"encoder\": has no task to train for; "
            "\"encoder_classifier\" and \"encoder_masked_lm\" have one");
  EXPECT_THAT(refusal("decoder_lm", "train.mask_probability=0.3"), HasSubstr("has no use for it"));
  EXPECT_THAT(refusal("encoder_masked_lm", "train.word_dropout=0.3"), HasSubstr("has train.mask_probability"));
  EXPECT_THAT(refusal("decoder_lm", "train.r_drop=-1"), HasSubstr("train.r_drop = -1"));
  EXPECT_THAT(refusal("decoder_lm", "train.layer_dropout=1"), HasSubstr("train.layer_dropout = 1"));
  EXPECT_THAT(refusal("decoder_lm", "train.best_metric=bleu"), HasSubstr("is not measured by it"));
  EXPECT_THAT(refusal("encoder_masked_lm", "train.best_metric=macro_f1"), HasSubstr("is not measured by it"));
  EXPECT_THAT(refusal("encoder_classifier", "train.best_metric=pearson"), HasSubstr("is not measured by it"));
  EXPECT_THAT(refusal("decoder_lm", "train.valid_stride=2000"), HasSubstr("train.valid_stride = 2000"));
  EXPECT_THAT(refusal("encoder_classifier", "data.valid_fraction=1"), HasSubstr("data.valid_fraction = 1"));
  EXPECT_THAT(refusal("encoder_masked_lm", "train.mask_probability=0"), HasSubstr("train.mask_probability = 0"));
  EXPECT_THAT(
      message_of<ConfigError>([] {
        read_run_config("",
                        {"model.architecture=encoder_classifier", "model.positions=learned", "data.max_tokens=600"});
      }),
      HasSubstr("data.max_tokens = 600: model.positions has a table of 512 learned positions; needs at most 512"));
  EXPECT_THAT(
      message_of<ConfigError>([] { read_run_config("", {"model.architecture=decoder_lm"}).validate_for_training(); }),
      HasSubstr("data.train_files names no file"));
}

TEST(RunConfig, TheFileComesAfterThePresetAndAssignmentsComeLast) {
  const TemporaryFolder folder;
  write_file(folder / "run.toml", "[model]\nheads = 8\npositions = \"rotary\"\n[train]\nsteps = 800\n");
  const RunConfig config = read_run_config(folder / "run.toml", {"train.steps=900"}, "gpt-char");
  EXPECT_EQ(config.model.architecture, Architecture::decoder_lm);
  EXPECT_EQ(config.model.d_model, 128);
  EXPECT_EQ(config.model.heads, 8);
  EXPECT_TRUE(std::holds_alternative<RotaryOptions>(config.model.positions)) << "a value is replaced as a whole";
  EXPECT_EQ(config.train.steps, 900);
  EXPECT_EQ(config.train.batch_tokens, 768);
  EXPECT_EQ(config.train.label_smoothing, 0) << "that of the preset's architecture";
}

// The file, the preset or the assignment that brought the error about, not always the file.
TEST(RunConfig, AnErrorNamesWhereItComesFrom) {
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  const auto refusal = [&](const std::string& toml, const std::vector<std::string>& set, const char* preset = "") {
    write_file(file, toml);
    return message_of<ConfigError>([&] { read_run_config(file, set, preset); });
  };
  EXPECT_EQ(refusal("[model]\nheads = 7\n", {"train.steps=5"}),
            file + ": model.d_model = 512 is not divisible by heads = 7");
  EXPECT_EQ(refusal("[model]\nd_model = 256\n", {"train.steps=5", "model.heads=7"}),
            "--set model.heads=7: model.d_model = 256 is not divisible by heads = 7");
  EXPECT_EQ(refusal("", {"model.layers=0"}), "--set model.layers=0: model.layers = 0: needs a number from 1 to 1024");
  EXPECT_EQ(refusal("[data]\ntrain_source = \"a\"\ntrain_target = \"b\"\n", {}, "gpt-char"),
            file +
                ": data.train_source: architecture = \"decoder_lm\" reads data.train_files (the architecture comes "
                "from preset gpt-char)");
  EXPECT_EQ(refusal("[data]\ntrain_source = \"a\"\ntrain_target = \"b\"\n", {"model.architecture=decoder_lm"}),
            file +
                ": data.train_source: architecture = \"decoder_lm\" reads data.train_files (the architecture comes "
                "from --set model.architecture=decoder_lm)");
  EXPECT_EQ(refusal("[train]\nsteps = 100\n", {}, "gpt-char"),
            file + ": train.steps = 100: schedule.kind = \"cosine\" needs more than schedule.warmup_steps = 100");
}

// A preset has keys that the architecture of the file does not have: they are the preset's all the same.
TEST(RunConfig, AKeyOfAnotherArchitectureNamesWhatHasIt) {
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  const auto refusal = [&](const std::string& toml, const std::vector<std::string>& set, const char* preset) {
    write_file(file, toml);
    return message_of<ConfigError>([&] { read_run_config(file, set, preset); });
  };
  const std::string pooler = ": model.pooler: architecture = \"decoder_lm\" does not have it, but encoder_classifier";
  const std::string of_bert = refusal("[model]\narchitecture = \"decoder_lm\"\n", {}, "bert-base");
  EXPECT_THAT(of_bert, HasSubstr("preset bert-base" + pooler));
  EXPECT_THAT(of_bert, EndsWith(" (the architecture comes from " + file + ")"));
  const std::string set = refusal("", {"model.architecture=decoder_lm"}, "bert-tiny");
  EXPECT_THAT(set, HasSubstr("preset bert-tiny: model."));
  EXPECT_THAT(set, EndsWith(" (the architecture comes from --set model.architecture=decoder_lm)"));
  const std::string of_gpt = refusal("[model]\narchitecture = \"encoder_classifier\"\n", {}, "gpt-char");
  EXPECT_THAT(of_gpt, HasSubstr("preset gpt-char: model."));
  EXPECT_THAT(of_gpt, EndsWith(" (the architecture comes from " + file + ")"));
  EXPECT_THAT(refusal("[model]\npooler = true\n", {}, "gpt-char"), HasSubstr(file + pooler));
}

TEST(RunConfig, AnUnknownKeyIsLookedForElsewhere) {
  const auto refusal = [](const std::string& assignment) {
    return message_of<ConfigError>([&] { read_run_config("", {assignment}); });
  };
  EXPECT_EQ(refusal("model.device=cuda"),
            "--set model.device=cuda: model: unknown key \"device\": the key is train.device");
  EXPECT_EQ(refusal("train.device=gpu"),
            "--set train.device=gpu: train.device = gpu: needs cpu, cuda, or cuda:N with the number of a GPU");
  EXPECT_EQ(refusal("train.learning_rate=1"),
            "--set train.learning_rate=1: train: unknown key \"learning_rate\": the key is schedule.learning_rate");
  EXPECT_THAT(refusal("train.batch_size=32"), HasSubstr("the key is train.batch_tokens"));
  EXPECT_EQ(refusal("model.attention.kv_heads=2"),
            "--set model.attention.kv_heads=2: model.attention: architecture = \"encoder_decoder\" does not have it, "
            "but encoder_classifier, encoder_masked_lm, encoder, decoder_lm");
  EXPECT_EQ(refusal("steps=1"), "--set steps=1: unknown section [steps]: the key is train.steps");
  EXPECT_EQ(refusal("lr=1"), "--set lr=1: unknown section [lr]: the key is schedule.learning_rate");
  EXPECT_EQ(refusal("encoder_attention.kind=latent"),
            "--set encoder_attention.kind=latent: unknown section [encoder_attention]: the key is "
            "model.encoder_attention");
  EXPECT_EQ(refusal("something=1"), "--set something=1: unknown section [something]");
  EXPECT_EQ(refusal("model.encoder_attention.window=4"),
            "--set model.encoder_attention.window=4: model.encoder_attention: unknown key \"window\", did you mean "
            "pattern = \"window\"?");
  EXPECT_THAT(refusal("model.layres=2"), HasSubstr("did you mean \"layers\"?"));
}

// However the file, the preset or an earlier assignment spells the value.
TEST(RunConfig, AssignmentsMayComeInAnyOrder) {
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  const AttentionKind windows = MultiHead{.pattern = SlidingWindow{.size = 6}};
  for (const char* spelt : {"", "encoder_attention = \"multi_head\"", "encoder_attention = {kind = \"multi_head\"}",
                            "[model.encoder_attention]\npattern = \"strided\"", "encoder_attention.bias = \"all\""}) {
    write_file(file, "[model]\n" + std::string(spelt) + "\n");
    for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
             {"model.encoder_attention.pattern=window", "model.encoder_attention.pattern.size=6"},
             {"model.encoder_attention.pattern.size=6", "model.encoder_attention.pattern=window"},
             {"model.encoder_attention={pattern={kind=\"window\", size=6}}"}}) {
      const RunConfig config = read_run_config(file, set);
      EXPECT_EQ(pattern_of(config.model.encoder_attention), pattern_of(windows)) << spelt;
    }
  }
  const RunConfig latent =
      read_run_config("", {"model.encoder_attention.latent_dim=8", "model.encoder_attention=latent"});
  EXPECT_EQ(std::get<MultiHeadLatent>(latent.model.encoder_attention).latent_dim, 8);
  const RunConfig of_preset = read_run_config("", {"model.cross_attention.latent_dim=8"}, "transformer-base-latent");
  EXPECT_EQ(std::get<MultiHeadLatent>(of_preset.model.cross_attention).latent_dim, 8);
  const RunConfig replaced = read_run_config("", {"model.attention={kind=\"multi_head\", kv_heads=2}"}, "gpt-char");
  EXPECT_EQ(std::get<MultiHead>(replaced.model.attention), (MultiHead{.kv_heads = 2})) << "a kind has its own defaults";
  EXPECT_EQ(read_run_config("", {"train.steps=5", "train.steps=6"}).train.steps, 6) << "the last of two counts";
  write_file(file, "[schedule]\nkind = \"linear\"\n");
  EXPECT_EQ(read_run_config(file, {"train.steps=3000"}, "gpt-char").schedule.warmup_steps, 100);
}

TEST(RunConfig, AbsolutePaths) {
  RunConfig config;
  config.data.train_source = {"a/../b.en"};
  config.data.tokenizer = "/t.model";
  const RunConfig absolute = with_absolute_paths(config);
  EXPECT_EQ(absolute.data.train_source.front(), (std::filesystem::current_path() / "b.en").string());
  EXPECT_EQ(absolute.data.tokenizer, "/t.model");
  EXPECT_EQ(absolute.data.prepared, "");
}

TEST(RunConfig, TheBestModelIsChosenByWhatTheArchitectureIsFor) {
  EXPECT_EQ(default_config(Architecture::encoder_decoder).best_metric(), ValidationMetric::bleu);
  EXPECT_EQ(default_config(Architecture::encoder_classifier).best_metric(), ValidationMetric::accuracy);
  RunConfig regression = default_config(Architecture::encoder_classifier);
  regression.model.label_scores = LabelScores::none;
  EXPECT_EQ(regression.best_metric(), ValidationMetric::pearson);
  EXPECT_EQ(default_config(Architecture::encoder_masked_lm).best_metric(), ValidationMetric::loss);
  EXPECT_EQ(default_config(Architecture::decoder_lm).best_metric(), ValidationMetric::loss);
}

TEST(RunConfig, DescriptionHasEveryKeyOnce) {
  const std::string text = describe_config({});
  EXPECT_THAT(text,
              HasSubstr("[schedule]\n# How the learning rate changes after the warm-up. One of noam, inverse_sqrt, "
                        "cosine, linear, constant [\"noam\"]\nkind = \"noam\"\n"));
  EXPECT_THAT(text, HasSubstr("beta_2 = 0.98\n"));
  // Read back as TOML it is the default, written out in full.
  EXPECT_EQ(nlohmann::json(parse_toml(text, "description")), nlohmann::json(parse_toml(write_toml(RunConfig{}), "")));
  EXPECT_THAT(text, HasSubstr("One of sinusoidal, learned, "));
  EXPECT_THAT(text, HasSubstr("#   learned.max_length: Rows of the table; 0: "));
  const std::string changed = describe_config(read_run_config("", {"train.steps=7"}));
  EXPECT_THAT(changed, HasSubstr("(updates) [100000]\nsteps = 7\n")) << "the default, and what is set";
}

// Whoever adds a key writes one line in attune/train/config/config_help.cpp.
TEST(RunConfig, EveryKeyHasItsMeaningAndNoOtherHas) {
  const std::string page = configuration_page();  // throws for a key without one
  for (const KeyHelp& help : key_help()) {
    const std::string key = help.key;
    const std::string row = fmt::format("| `{}` | {}", key.substr(key.find('.') + 1), help.meaning);
    EXPECT_THAT(page, HasSubstr(row)) << key << " is no key";
  }
}

TEST(GenerationConfig, LongestOutput) {
  const GenerationConfig config{.max_length = 100, .max_length_ratio = 1.5, .max_length_offset = 10};
  EXPECT_EQ(config.longest_output(0), 10);
  EXPECT_EQ(config.longest_output(3), 14);
  EXPECT_EQ(config.longest_output(60), 100);
  EXPECT_EQ(config.longest_output(std::numeric_limits<int64_t>::max()), 100);
  EXPECT_EQ((GenerationConfig{.max_length = 100, .max_length_ratio = 0}).longest_output(1), 100);
  EXPECT_EQ((GenerationConfig{.max_length_ratio = 0.1, .max_length_offset = 0}).longest_output(1), 1);
}

TEST(RunConfig, PrecisionIsReadAndWritten) {
  RunConfig config = read_run_config("", {"train.precision=bfloat16"});
  EXPECT_EQ(config.train.precision, PrecisionChoice::bfloat16);
  EXPECT_THAT(write_toml(config), HasSubstr("precision = \"bfloat16\""));
  config = read_run_config("", {"train.precision=auto"});
  EXPECT_EQ(config.train.precision, PrecisionChoice::automatic);
  EXPECT_THAT(write_toml(config), HasSubstr("precision = \"auto\""));
  EXPECT_THAT(message_of<ConfigError>([] { read_run_config("", {"train.precision=float16"}); }),
              HasSubstr("train.precision"));
  EXPECT_EQ(precision_note(ProductPrecision::float32, Device{}), "");
  EXPECT_EQ(precision_note(ProductPrecision::bfloat16, Device{}).empty(), has_bfloat16_products());
  EXPECT_EQ(precision_note(ProductPrecision::bfloat16, Cuda{}), "");
}

}  // namespace
}  // namespace attune

#include "attune/train/initial_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/models/build.h"
#include "attune/tensor/buffer.h"
#include "attune/text/chat_template.h"
#include "attune/train/tasks/training_task.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/train/small_tasks.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class InitialModelTest : public ::testing::Test {
 protected:
  static std::string hub(const std::string& name) { return (source_dir() / "tests/hub/models" / name).string(); }
  static std::string set(const std::string& key, const std::string& value) { return key + "=" + value; }

  RunConfig config_of(const std::string& folder, std::vector<std::string> keys) {
    keys.insert(keys.end(), {set("train.initialize_from", folder), "train.steps=2", "train.batch_tokens=64",
                             "schedule.kind=constant", "schedule.learning_rate=1e-3", "schedule.warmup_steps=0"});
    return read_run_config({}, keys);
  }
  std::string file(const std::string& name, const std::string& text) {
    write_file(folder_ / name, text);
    return (folder_ / name).string();
  }

  OneThread one_thread_;
  TemporaryFolder folder_;
};

TEST_F(InitialModelTest, AClassifierOfTheHubBeginsWithModelTokenizerAndForm) {
  const std::string text = file("train.tsv", "good\tthe cat sat\nbad\tthe dog ran away\ngood\ta cat\nbad\ta dog\n");
  const RunConfig config =
      config_of(hub("bert-classifier"), {set("data.train_files", text), "model.labels=[\"bad\", \"good\"]"});
  const TransformerConfig there = open_config(hub("bert-classifier")).model;
  EXPECT_EQ(config.model.d_model, there.d_model);
  EXPECT_EQ(config.model.norm, there.norm);
  EXPECT_TRUE(config.data.tokenizer_frames_texts);
  const TrainedRun run = train(config, folder_ / "run");
  EXPECT_THAT(run.seen.messages.at(0), HasSubstr("; new: head.weight, head.bias")) << "the labels are others";

  const Classifier tuned = Classifier::load(folder_ / "run" / "model"),
                   before = Classifier::load(hub("bert-classifier"));
  EXPECT_EQ(tuned.labels(), (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(tuned.encode("the cat").ids, before.encode("the cat").ids) << "with the hub's special tokens";
  EXPECT_EQ(tuned.classify("the cat").labels.size(), 2);
  EXPECT_TRUE(train(config, folder_ / "run", true).seen.messages.empty()) << "a resumed run has its own weights";
  // The configuration that the run keeps is complete: the folder may go away.
  EXPECT_EQ(read_run_config(folder_ / "run" / "config.toml"), with_absolute_paths(config));
  EXPECT_NO_THROW(read_run_config(folder_ / "run" / "config.toml", {"train.initialize_from=/nowhere"}));
}

TEST_F(InitialModelTest, PairsHaveTypes) {
  const std::string text = file("train.jsonl",
                                "{\"label\": 0, \"a\": \"the cat sat\", \"b\": \"a dog\"}\n"
                                "{\"label\": 1, \"a\": \"the dog\", \"b\": \"the dog ran\"}\n");
  const RunConfig config = config_of(
      hub("bert-classifier"),
      {set("data.train_files", text), "data.text_field=a", "data.second_text_field=b", "model.labels=[\"0\", \"1\"]"});
  std::filesystem::create_directories(folder_ / "run");
  const auto task = make_training_task(config, folder_ / "run", false);
  InitialModel(config.train.initialize_from).fill(config, task->model());
  task->begin_epoch(0);
  task->save_model(folder_ / "run" / "model");
  // The loss of training is that of the classifier's own probabilities.
  const Classifier classifier = Classifier::load(folder_ / "run" / "model");
  double expected = 0;
  for (const auto& [pair, label] : {std::pair{TextPair{"the cat sat", "a dog"}, 0}, {{"the dog", "the dog ran"}, 1}}) {
    const std::vector<Encoding> encoded = {classifier.encode(pair)};
    const std::vector<float> logits = classifier.logits(encoded).at(0);
    expected -= std::log(classifier.probabilities(logits).at(static_cast<size_t>(label)));
  }
  EXPECT_NEAR(task->batch(0, 0).loss({}).loss.item(), expected / 2, 1e-5);
}

TEST_F(InitialModelTest, ABodyGetsANewHead) {
  const std::string text = file("train.tsv", "good\tthe cat sat\nbad\tthe dog ran away\n");
  const RunConfig config =
      config_of(hub("roberta-masked"),
                {set("data.train_files", text), "model.architecture=encoder_classifier", "model.pooling=mean"});
  const TrainedRun run = train(config, folder_ / "run");
  EXPECT_THAT(run.seen.messages.at(0), HasSubstr("; new: head.weight, head.bias"));
  EXPECT_EQ(Classifier::load(folder_ / "run" / "model").labels(), (std::vector<std::string>{"bad", "good"}));
}

TEST_F(InitialModelTest, AMaskedLanguageModelGoesOn) {
  const std::string text = file("train.txt", "w1 w2 w3 w4 w5\nw7 w8 w9\n");
  const RunConfig config = config_of(hub("roberta-masked"), {set("data.train_files", text)});
  train(config, folder_ / "run");
  const MaskedLmFolder tuned = open_masked_lm_folder(folder_ / "run" / "model");
  EXPECT_TRUE(tuned.tokenizer_frames_texts);
  EXPECT_EQ(tuned.tokenizer->encode_for_model("w1 w2").ids,
            open_masked_lm_folder(hub("roberta-masked")).tokenizer->encode_for_model("w1 w2").ids);
}

TEST_F(InitialModelTest, ALanguageModelLearnsAnswersAlone) {
  const std::string text = file("train.jsonl",
                                "{\"prompt\": \"the cat sat\", \"answer\": \" down\"}\n"
                                "{\"id\": 7, \"prompt\": \"a dog\", \"answer\": \" ran away from the cat\"}\n");
  const RunConfig config =
      config_of(hub("gpt2"), {set("data.train_files", text), "data.text_unit=answer", set("data.valid_files", text)});
  std::filesystem::create_directories(folder_ / "run");
  const auto task = make_training_task(config, folder_ / "run", false);
  task->begin_epoch(0);
  const auto tokenizer = open_language_model_folder(hub("gpt2")).tokenizer;
  const auto answers =
      static_cast<int64_t>(tokenizer->encode(" down").size() + tokenizer->encode(" ran away from the cat").size() + 2);
  const TrainingBatch batch = task->batch(0, 0);
  EXPECT_EQ(batch.labels, answers) << "each with eos";
  EXPECT_EQ(batch.loss({}).labels, answers);
  EXPECT_EQ(task->validate().loss.tokens, answers);
  EXPECT_NEAR(task->validate().loss.loss, batch.loss({}).loss.item(), 1e-5);

  const TrainedRun run = train(config, folder_ / "tuned");
  const TextGenerator tuned = TextGenerator::load(folder_ / "tuned" / "model");
  EXPECT_EQ(tuned.encode_prompt("a dog"), TextGenerator::load(hub("gpt2")).encode_prompt("a dog"));
}

TEST_F(InitialModelTest, ATokenizerMayHaveMoreTokensThanItsModel) {
  std::filesystem::copy(hub("gpt2"), folder_ / "base");
  Json tokenizer = read_json_file(folder_ / "base" / "tokenizer.json");
  tokenizer["added_tokens"].push_back({{"id", 400},
                                       {"content", "<extra>"},
                                       {"single_word", false},
                                       {"lstrip", false},
                                       {"rstrip", false},
                                       {"normalized", false},
                                       {"special", true}});
  write_json_file(folder_ / "base" / "tokenizer.json", tokenizer);
  const std::string text = file("train.txt", "the cat sat down\n\na dog ran away from the cat\n");
  const RunConfig config = config_of((folder_ / "base").string(), {set("data.train_files", text)});
  ASSERT_EQ(config.model.vocab, 400);
  EXPECT_NO_THROW(train(config, folder_ / "run"));
}

// With its special tokens and its template of chats: all of its files are in the folder of the run.
TEST_F(InitialModelTest, AResumedRunHasTheTokenizerOfTheHub) {
  const std::string text = file("train.txt", "w1 w2 w3 w4 the cat sat\nw5 w6 w7 a dog ran away\n");
  for (const char* name : {"gpt2", "gpt2-rules"}) {  // tokenizer.json with settings beside it; vocab.txt
    const auto base = folder_ / name, run = folder_ / (std::string(name) + "-run");
    std::filesystem::copy(hub(name), base);
    write_file(base / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}");
    std::filesystem::create_directory(base / "additional_chat_templates");
    write_file(base / "additional_chat_templates" / "tool_use.jinja", "{{ tools | length }}");
    RunConfig config = config_of(base.string(), {set("data.train_files", text)});
    train(config, run);
    config.train.steps = 4;
    EXPECT_EQ(train(config, run, true).result.step, 4) << name;
    const auto before = open_language_model_folder(base).tokenizer,
               after = open_language_model_folder(run / "model").tokenizer;
    EXPECT_EQ(after->bos_id(), before->bos_id()) << name;
    EXPECT_EQ(after->eos_id(), before->eos_id()) << name;
    EXPECT_EQ(after->encode_for_model("w1 the cat").ids, before->encode_for_model("w1 the cat").ids) << name;
    const std::optional<ChatTemplate> chat = ChatTemplate::load(run / "model");
    ASSERT_TRUE(chat) << name;
    EXPECT_EQ(chat->render({{"user", "a"}}), ChatTemplate::load(base)->render({{"user", "a"}})) << name;
    EXPECT_EQ(chat->render_json("[]", R"({"tools": []})"), "0") << name;
  }
}

TEST_F(InitialModelTest, TranslationKeepsTheTokensOfTheHub) {
  const std::string source = file("train.src", "the cat sat\na dog ran\n"),
                    target = file("train.tgt", "a cat\na dog\n");
  const RunConfig config =
      config_of(hub("marian"), {set("data.train_source", source), set("data.train_target", target),
                                set("data.valid_source", source), set("data.valid_target", target)});
  const ModelFolder before = open_model_folder(hub("marian"));
  EXPECT_EQ(config.generation, before.generation);
  train(config, folder_ / "run");
  const ModelFolder after = open_model_folder(folder_ / "run" / "model");
  EXPECT_EQ(after.generation, before.generation);
  EXPECT_EQ(after.model->config().source_vocab, before.model->config().source_vocab);
  const Translator translator(open_model_folder(folder_ / "run" / "model"));
  EXPECT_NO_THROW(translator.translate({"the cat sat"}));
}

// Of a model with a table of positions, sentences that it can read are learnt.
TEST_F(InitialModelTest, SentencesAreNoLongerThanTheModelReads) {
  const TransformerConfig bart = open_config(hub("bart")).model;
  const auto longest = [](const RunConfig& config) { return config.data.max_tokens_per_sentence; };
  EXPECT_EQ(longest(config_of(hub("bart"), {})), bart.longest_sequence());
  EXPECT_EQ(longest(config_of(hub("marian"), {})), DataConfig{}.max_tokens_per_sentence);
  EXPECT_EQ(longest(config_of(hub("bart"), {"data.max_tokens_per_sentence=9"})), 9);
}

// With adapters over int8 weights a model of mostly matrices takes little more than a quarter of the memory.
TEST_F(InitialModelTest, Int8WeightsTakeAQuarterOfTheMemory) {
  RunConfig config = rhyme_config(folder_);
  config.model.d_model = 256;
  config.model.d_ff = 1024;
  config.model.layers = 2;
  config.train.steps = 1;
  train(config, folder_ / "base");
  config.train.initialize_from = (folder_ / "base").string();
  config.lora.rank = 2;
  const auto bytes = [&](BasePrecision precision) {
    config.lora.base_precision = precision;
    const InitialModel initial(config.train.initialize_from);
    const int64_t before = allocator_statistics().bytes_in_use;
    const auto model = build_without_values(initial.folder().config().model);
    initial.fill(config, *model);
    return allocator_statistics().bytes_in_use - before;
  };
  const int64_t wide = bytes(BasePrecision::float32), int8 = bytes(BasePrecision::int8);
  EXPECT_GT(wide, 6 << 20);
  EXPECT_LT(static_cast<double>(int8), 0.31 * static_cast<double>(wide));  // 0.30 where an allocator rounds up (ASan)
}

// What keeps the load of experts even belongs to a run.
TEST_F(InitialModelTest, AMixtureIsBalancedInItsOwnWay) {
  const std::string text = file("train.txt", "the cat sat on the mat\nthe dog ran in the fog\n");
  const auto config = [&](const std::string& folder, std::vector<std::string> keys) {
    keys.push_back(set("data.train_files", text));
    return config_of(folder, keys);
  };
  const RunConfig of_hub = config(hub("mixtral-window"), {"model.feed_forward.balance_loss=0.02"});
  EXPECT_EQ(std::get<Experts>(of_hub.model.feed_forward).balance_loss, 0.02);
  EXPECT_NO_THROW(train(of_hub, folder_ / "tuned"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                train(config(hub("mixtral-window"), {"model.feed_forward.experts_per_token=1"}), folder_ / "other");
              }),
              HasSubstr("model.feed_forward = {\"kind\":\"experts\""));

  RunConfig moved = rhyme_config(folder_);
  moved.model.feed_forward =
      Experts{.experts = 4, .d_ff = 16, .choice_bias = true, .balance_loss = 0, .bias_rate = 0.01};
  moved.train.steps = 2;
  train(moved, folder_ / "moved");
  const std::string folder = (folder_ / "moved").string();
  EXPECT_THAT(message_of<ConfigError>([&] { config(folder, {"lora.rank=2"}).validate(); }), HasSubstr("bias_rate"));
  EXPECT_NO_THROW(train(config(folder, {"lora.rank=2", "model.feed_forward.bias_rate=0"}), folder_ / "adapted"));
}

TEST_F(InitialModelTest, WhatContradictsTheModelIsSaid) {
  const std::string text = file("train.tsv", "good\tthe cat\nbad\tthe dog\n");
  const auto refusal = [&](const std::string& folder, std::vector<std::string> keys) {
    keys.push_back(set("data.train_files", text));
    return message_of<ConfigError>([&] { train(config_of(folder, keys), folder_ / "other"); });
  };
  const int64_t d_model = open_config(hub("bert-classifier")).model.d_model;
  EXPECT_THAT(refusal(hub("bert-classifier"), {"model.d_model=48"}),
              HasSubstr(fmt::format("model.d_model = 48: train.initialize_from = \"{}\" has {}", hub("bert-classifier"),
                                    d_model)));
  EXPECT_THAT(refusal(hub("bert-classifier"), {"model.norm=pre"}), HasSubstr("model.norm = \"pre\": train.initialize"));
  EXPECT_THAT(refusal(hub("gpt2"), {"model.architecture=encoder_classifier"}),
              HasSubstr("model.architecture = \"encoder_classifier\": train.initialize_from = "));
  EXPECT_THAT(message_of<FileError>([&] { config_of((folder_ / "nowhere").string(), {}); }), HasSubstr("nowhere"));
}

TEST_F(InitialModelTest, ALabelThatTheModelLacksNamesTheRemedy) {
  const std::string text = file("train.tsv", "good\tthe cat sat\nbad\tthe dog ran away\ngood\ta cat\nbad\ta dog\n");
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> keys = {set("data.train_files", text)};
    keys.insert(keys.end(), more.begin(), more.end());
    train(config_of(hub("bert-classifier"), keys), folder_ / "run");
  };
  EXPECT_THAT(message_of<DataError>([&] { run({}); }),
              testing::AllOf(HasSubstr("train.tsv:1: the label is \"good\", expected one of LABEL_0, LABEL_1, "),
                             HasSubstr("; model.labels = [] takes the labels of the text, and a new head")));
  EXPECT_NO_THROW(run({"model.labels=[]"}));
  const std::string other = file("valid.tsv", "fair\ta cat\n");
  std::filesystem::remove_all(folder_ / "run");
  EXPECT_THAT(message_of<DataError>([&] {
                run({"model.labels=[]", set("data.valid_files", other)});
              }),
              ::testing::EndsWith("valid.tsv:1: the label is \"fair\", expected one of bad, good"))
      << "it would not help";
}

TEST_F(InitialModelTest, ATokenizerThatCannotBeLearntIsSaid) {
  const std::string text = file("train.tsv", "good\tthe cat sat\nbad\tthe dog ran away\n");
  const auto messages = [&](const std::string& run, std::vector<std::string> keys) {
    keys.insert(keys.end(), {set("data.train_files", text), "model.labels=[]"});
    return train(config_of(hub("bert-classifier"), keys), folder_ / run).seen.messages;
  };
  EXPECT_THAT(
      messages("set", {"data.tokenizer_type=bpe", "data.vocab_size=99"}),
      ::testing::Contains("data.tokenizer_type = \"bpe\", data.vocab_size = 99: not used, the tokenizer is that of "
                          "train.initialize_from = \"" +
                          hub("bert-classifier") + "\""));
  EXPECT_THAT(messages("some", {"data.tokenizer_type=unigram", "data.vocab_size=99"}),
              ::testing::Contains(::testing::StartsWith("data.vocab_size = 99: not used, ")))
      << "a default is not named, as in the config.toml of a run, which has every key";
  EXPECT_THAT(messages("not_set", {}), ::testing::Not(::testing::Contains(HasSubstr("not used"))));
}

TEST_F(InitialModelTest, TakesTheFolderOfARun) {
  write_keyword_text(folder_ / "train.tsv", 60, 1);
  write_keyword_text(folder_ / "valid.tsv", 10, 2);
  RunConfig first = keyword_config(folder_);
  first.train.steps = 3;
  train(first, folder_ / "first");
  const RunConfig second =
      config_of((folder_ / "first").string(), {set("data.train_files", first.data.train_files[0])});
  EXPECT_EQ(second.model.labels, (std::vector<std::string>{"blue", "green", "red"}));
  const TrainedRun run = train(second, folder_ / "second");
  EXPECT_THAT(run.seen.messages.at(0), ::testing::EndsWith((folder_ / "first" / "model").string())) << "all of them";
  EXPECT_LT(run.seen.steps.at(0).loss, 2.0);
}

}  // namespace
}  // namespace attune

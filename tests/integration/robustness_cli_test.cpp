// What docs/robustness.md promises of the program: bad rows are named, nothing in a model commands a terminal, options
// mean what they say, work is bounded.

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <thread>

#include "attune/base/descriptor.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"
#include "attune/text/character_tokenizer.h"
#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kSnowman = "\xE2\x98\x83";  // in no vocabulary here

class RobustnessCli : public CliFixture {
 protected:
  // Whatever reads this token has no finite numbers from there on.
  static void spoil(Module& model, int32_t token) {
    for (const NamedParameter& p : named_parameters(model)) {
      if (p.name != "source_embedding.weight" && p.name != "embedding.weight") continue;
      const auto columns = static_cast<size_t>(p.tensor->size(1));
      p.tensor->values<float>()[static_cast<size_t>(token) * columns] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  std::string spoilt_translator() const {
    const ModelFolder files = load_model_folder(model_);
    spoil(*files.model, files.source_tokenizer->unk_id());
    save_model_folder(folder_ / "spoilt", *files.model, *files.source_tokenizer, *files.target_tokenizer,
                      files.generation);
    return (folder_ / "spoilt").string();
  }
  std::string spoilt_classifier() const {
    write_small_classifier(folder_ / "spoilt");
    const ClassifierFolder files = load_classifier_folder(folder_ / "spoilt");
    spoil(*files.model, files.tokenizer->unk_id());
    save_model_folder(folder_ / "spoilt_classifier", *files.model, *files.tokenizer, files.max_tokens);
    return (folder_ / "spoilt_classifier").string();
  }
  std::string spoilt_language_model() const {
    write_small_language_model(folder_ / "spoilt", TextUnit::line);
    const LanguageModelFolder files = load_language_model_folder(folder_ / "spoilt");
    spoil(*files.model, files.tokenizer->unk_id());
    save_model_folder(folder_ / "spoilt_lm", *files.model, *files.tokenizer, files.sampling, files.text_unit);
    write_file(folder_ / "spoilt_lm" / "chat_template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    return (folder_ / "spoilt_lm").string();
  }
};

TEST_F(RobustnessCli, ARowThatIsNotFiniteIsNamedAndEndsNothingBeforeIt) {
  const std::vector<std::string> lines = {"The dog.", "A cat.", kSnowman, "The garden."};
  const std::string input = file("in", joined(lines)), model = spoilt_translator();
  const std::vector<std::string> good = split_lines(output_of({"translate", model_, "--file", input}));
  const CommandResult stopped = run_attune({"translate", model, "--file", input});
  EXPECT_THAT(refusal(stopped), AllOf(HasSubstr("in:3: "), HasSubstr("not finite")));
  EXPECT_EQ(split_lines(stopped.output), (std::vector<std::string>{good[0], good[1]}));

  const CommandResult skipped = run_attune({"translate", model, "--file", input, "--on-error", "skip"});
  EXPECT_EQ(skipped.status, 0);
  EXPECT_THAT(skipped.errors, AllOf(HasSubstr("in:3: the model's logits are not finite\n"),
                                    HasSubstr("attune: 1 of 4 lines was skipped\n")));
  EXPECT_EQ(split_lines(skipped.output), (std::vector<std::string>{good[0], good[1], "", good[3]}));

  const std::string classifier = spoilt_classifier();
  for (const std::string command : {"classify", "embed"}) {
    const char* const what = command == "embed" ? "in:3: its vector is not finite" : "in:3: a label's logit is ";
    const CommandResult ended = run_attune({command, classifier, "--file", input});
    EXPECT_THAT(refusal(ended), HasSubstr(what));
    EXPECT_EQ(split_lines(ended.output).size(), 2u);
    const CommandResult whole = run_attune({command, classifier, "--file", input, "--on-error", "skip"});
    EXPECT_EQ(whole.status, 0);
    EXPECT_THAT(whole.errors, AllOf(HasSubstr(what), HasSubstr("attune: 1 of 4 lines was skipped\n")));
    ASSERT_EQ(split_lines(whole.output).size(), 4u);
    EXPECT_THAT(whole.output, testing::StartsWith(ended.output));
    const CommandResult none = run_attune({command, classifier, "--on-error", "skip", kSnowman, "caf\xE9"});
    EXPECT_EQ(none.status, 1);
    EXPECT_THAT(none.errors, HasSubstr("2 of 2 lines were skipped"));
    EXPECT_THAT(refusal(run_attune({command, classifier, "--on-error", "pray", "a"})), HasSubstr("--on-error pray"));
  }
}

TEST_F(RobustnessCli, SkippedLinesAreMarked) {
  const std::string input = file("in", joined({"The dog.", "caf\xE9", kSnowman, "A cat."}));
  const std::string model = spoilt_classifier();
  const auto skipping = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, {model, "--file", input, "--on-error", "skip"});
    const CommandResult result = run_attune(std::move(arguments));
    EXPECT_EQ(result.status, 0) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr("2 of 4 lines were skipped"));
    return result.output;
  };
  for (const char* command : {"embed", "classify"}) {
    std::vector<std::string> arguments = {command};
    if (arguments[0] == "classify") arguments.emplace_back("--json");
    const std::vector<Json> lines = json_lines(skipping(arguments));
    ASSERT_EQ(lines.size(), 4u);
    for (const size_t i : {0, 3}) EXPECT_FALSE(lines[i].contains("error"));
    EXPECT_THAT(lines[1].at("error").get<std::string>(), HasSubstr("in:2: the line is not valid UTF-8"));
    EXPECT_THAT(lines[2].at("error").get<std::string>(), HasSubstr("in:3: "));
    EXPECT_EQ(lines[2].at("text"), kSnowman);
    EXPECT_EQ(lines[2].size(), 2u);
  }
  const std::vector<std::string> labels = split_lines(skipping({"classify"}));
  ASSERT_EQ(labels.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(labels[i].empty(), i == 1 || i == 2);

  const std::string npy = (folder_ / "vectors.npy").string();
  skipping({"embed", "--output", npy});
  const std::string bytes = read_file(npy);
  constexpr size_t kWidth = 32;  // of the model
  ASSERT_GT(bytes.size(), 4 * kWidth * sizeof(float));
  std::vector<float> values(4 * kWidth);
  std::memcpy(values.data(), bytes.data() + bytes.size() - values.size() * sizeof(float),
              values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(std::isnan(values[i]), i / kWidth == 1 || i / kWidth == 2) << i;
}

TEST_F(RobustnessCli, WhatIsMeasuredOnANumberThatIsNotFiniteIsNamed) {
  const std::string source = file("in", joined({"The dog.", "A cat.", kSnowman, "The garden."}));
  const std::string reference = file("reference", joined({"The dog.", "A cat.", "A cat.", "The garden."}));
  EXPECT_THAT(
      refusal(run_attune({"evaluate", spoilt_translator(), "--source", source, "--reference", reference, "--json"})),
      HasSubstr("in:3: the loss is not finite"));

  const std::string labelled = file("c.tsv", fmt::format("good\tThe dog.\n\nbad\tA cat.\ngood\t{}\n", kSnowman));
  std::filesystem::remove_all(folder_ / "spoilt");
  EXPECT_THAT(refusal(run_attune({"evaluate", spoilt_classifier(), "--data", labelled})),
              HasSubstr("c.tsv:4: a label's logit is "));

  const std::string text = file("l.txt", fmt::format("The dog\ndog\n{} dog\n", kSnowman));
  std::filesystem::remove_all(folder_ / "spoilt");
  EXPECT_THAT(refusal(run_attune({"evaluate", spoilt_language_model(), "--data", text, "--json"})),
              HasSubstr("l.txt: text 3: the loss is not finite"));
}

TEST_F(RobustnessCli, APromptOfAFileIsNamedByItsPlace) {
  const std::string model = spoilt_language_model();
  const CommandResult whole = run_attune({"generate", model, "--file", file("p.txt", kSnowman)});
  EXPECT_EQ(whole.status, 1);
  EXPECT_THAT(whole.errors, AllOf(HasSubstr("p.txt: 1 of its "), HasSubstr("p.txt: sampling: the logit of token ")));
  const CommandResult line =
      run_attune({"generate", model, "--chat", "--file", file("c.txt", fmt::format("The dog\n\n{}\n", kSnowman))});
  EXPECT_EQ(line.status, 1);
  EXPECT_THAT(line.errors, HasSubstr("c.txt:3: sampling: the logit of token "));
}

TEST_F(RobustnessCli, NothingInAModelCommandsATerminalOrBreaksATable) {
  write_small_classifier(folder_ / "labels");
  Json config = read_json_file(folder_ / "labels" / "config.json");
  const std::string hostile =
      "\x1b]0;owned\x07\tb\xC2\x9B"
      "31m\u202eg\u2066h\u2028";
  config["labels"] = {hostile, "good", "so so"};
  write_json_file(folder_ / "labels" / "config.json", config);
  const std::string model = (folder_ / "labels").string();
  const std::string labels = output_of({"classify", model, "--top", "3", "A dog."});
  EXPECT_THAT(labels, HasSubstr("\\x1b]0;owned\\x07\\tb\\u009b31m\\u202eg\\u2066h\\u2028\t"));
  EXPECT_EQ(std::count(labels.begin(), labels.end(), '\t'), 5);
  EXPECT_THAT(output_of({"inspect", model}), AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xC2\x9B"))));
  const std::string json = output_of({"classify", model, "--json", "A dog."});
  EXPECT_EQ(parse_json(json, "").at("labels").size(), 3u);
  EXPECT_THAT(json, AllOf(HasSubstr("\\u2028"), Not(HasSubstr("\u2028")))) << "it would end a line for Python";

  const CharacterTokenizer tokenizer({"\t", "\x1b", "a"});
  tokenizer.save(folder_ / "tokenizer.json");
  const std::string pieces = output_of({"tokenizer", "info", (folder_ / "tokenizer.json").string(), "--pieces"});
  EXPECT_THAT(pieces, AllOf(HasSubstr("4\t\\t\n5\t\\x1b\n6\ta\n"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(refusal(run_attune({"translate", "no\x1bsuch\xC2\x9Bmodel", "a"})),
              AllOf(HasSubstr("no\\x1bsuch\\u009bmodel"), Not(HasSubstr("\x1b"))));
}

// What a text itself contains is kept: languages from right to left need it.
TEST_F(RobustnessCli, MarksOfDirectionStayInATextThatIsDecoded) {
  const std::string text = "a\u2067b\u2069";
  CharacterTokenizer({"a", "b", "\u2067", "\u2069"}).save(folder_ / "tokenizer.json");
  const std::string tokenizer = (folder_ / "tokenizer.json").string();
  const std::string ids = output_of({"tokenizer", "encode", tokenizer, "--ids", text});
  EXPECT_EQ(output_of({"tokenizer", "decode", tokenizer}, ids), text + "\n");
  EXPECT_THAT(output_of({"tokenizer", "info", tokenizer, "--pieces"}), HasSubstr("\\u2067"));
}

TEST_F(RobustnessCli, AnEmptyValueIsNoMissingOption) {
  for (const char* option : {"--file", "--output", "--shortlist", "--prefixes", "--early-stopping"})
    EXPECT_THAT(refusal(run_attune({"translate", model_, option, "", "A dog."})),
                AllOf(HasSubstr(option), HasSubstr("is empty")));
  EXPECT_THAT(refusal(run_attune({"train", "--preset", "", "--out", "x"})), HasSubstr("--preset: is empty"));
  EXPECT_EQ(output_of({"translate", model_, ""}), "\n") << "a text may be empty";
}

TEST_F(RobustnessCli, ANumberWithoutASignHasNone) {
  write_small_language_model(folder_ / "lm");
  const std::string model = (folder_ / "lm").string();
  EXPECT_THAT(refusal(run_attune({"generate", model, "--seed", "-1", "--prompt", "a"})),
              AllOf(HasSubstr("--seed"), HasSubstr("-1: needs a number from 0")));
}

TEST_F(RobustnessCli, WhatFollowsTheEndOfAFileAndALinkToNowhereAreRefused) {
  refusal(run_attune({"tokenizer", "info", file("v.json", std::string("{\"type\": \"bytes\"}") + '\0' + "garbage")}));
  write_small_language_model(folder_ / "lm");
  const std::string model = (folder_ / "lm").string();
  const std::string config = read_file(folder_ / "lm" / "config.json");
  write_file(folder_ / "lm" / "config.json", config + '\0' + "garbage");
  EXPECT_THAT(refusal(run_attune({"generate", model, "--prompt", "a"})), HasSubstr("config.json: is not valid JSON"));
  write_file(folder_ / "lm" / "config.json", config);
  std::filesystem::remove(folder_ / "lm" / "generation_config.json");
  std::filesystem::create_symlink("nowhere", folder_ / "lm" / "generation_config.json");
  EXPECT_THAT(refusal(run_attune({"generate", model, "--prompt", "a"})), HasSubstr("generation_config.json"));
}

TEST_F(RobustnessCli, UnknownCharactersOfAPromptAreCounted) {
  write_small_language_model(folder_ / "lm");
  const CommandResult result = run_attune({"generate", (folder_ / "lm").string(), "--max-tokens", "2", "--prompt", "a",
                                           "--prompt", fmt::format("The {} dog {}", kSnowman, kSnowman)});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.errors, "attune: prompt 2: 2 of its 11 tokens are unknown to the model\n");
}

TEST_F(RobustnessCli, TokenizersOfEveryKindAreTrainedAndShown) {
  const std::string input = file("in", joined(small_text(20)));
  for (const std::string kind : {"characters", "bytes", "whitespace"}) {
    const std::string output = (folder_ / (kind + ".json")).string();
    EXPECT_THAT(output_of({"tokenizer", "train", "--input", input, "--output", output, "--kind", kind}),
                HasSubstr(": " + kind + ", "));
    EXPECT_THAT(output_of({"tokenizer", "info", output}), HasSubstr(kind));
    EXPECT_THAT(refusal(run_attune({"tokenizer", "train", "--input", input, "--output", (folder_ / "x.model").string(),
                                    "--kind", kind})),
                HasSubstr("is a .json file"));
  }
  const CommandResult few = run_attune(
      {"tokenizer", "train", "--input", input, "--output", (folder_ / "few.model").string(), "--vocab-size", "8000"});
  EXPECT_EQ(few.status, 0);
  EXPECT_THAT(few.errors, HasSubstr("--vocab-size 8000 is more than the text yields: the vocabulary has "));
  write_small_language_model(folder_ / "lm");
  write_small_classifier(folder_ / "classifier");
  for (const char* model : {"lm", "classifier"}) {
    EXPECT_THAT(output_of({"tokenizer", "info", (folder_ / model).string()}), HasSubstr("vocabulary"));
    EXPECT_THAT(output_of({"tokenizer", "encode", (folder_ / model).string(), "The dog."}), HasSubstr("T"));
  }
}

TEST_F(RobustnessCli, EvaluateRefusesWhatItWouldIgnore) {
  write_small_language_model(folder_ / "lm");
  write_small_classifier(folder_ / "classifier");
  const std::string text = file("text", "The dog.\n"), labels = file("labels.tsv", "good\tThe dog.\n");
  EXPECT_THAT(refusal(run_attune({"evaluate", (folder_ / "lm").string(), "--data", text, "--beam-size", "4"})),
              HasSubstr("--beam-size is not for a language model"));
  EXPECT_THAT(refusal(run_attune({"evaluate", (folder_ / "classifier").string(), "--data", labels, "--stride", "4"})),
              HasSubstr("--stride is not for a classifier"));
  EXPECT_THAT(
      refusal(run_attune({"evaluate", model_, "--source", text, "--reference", text, "--label-field", "label"})),
      HasSubstr("--label-field is for classifiers and language models"));
  output_of({"evaluate", (folder_ / "classifier").string(), "--data", labels, "--format", "tsv", "--threads", "1"});
}

TEST_F(RobustnessCli, ASignalEndsAWideSearchAndALongText) {
  const ModelFolder files = load_model_folder(model_);
  for (const NamedParameter& p : named_parameters(*files.model))  // never an end
    if (p.name == "projection.bias")
      p.tensor->values<float>()[static_cast<size_t>(files.target_tokenizer->eos_id())] = -1e4f;
  save_model_folder(folder_ / "endless", *files.model, *files.source_tokenizer, *files.target_tokenizer,
                    {.beam_size = 64, .max_length = 2000, .max_length_ratio = 0});
  const std::string input = file("in", joined(small_text(200))), output = (folder_ / "out").string();
  for (const int signal : {SIGTERM, SIGHUP}) {
    RunningCommand running(attune_command(
        {"translate", (folder_ / "endless").string(), "--file", input, "--output", output, "--threads", "1"}));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    const auto sent = std::chrono::steady_clock::now();
    running.send(signal);
    running.send(signal);  // as from a launcher that passes on what all of its job got
    const CommandResult result = running.wait();
    EXPECT_EQ(result.status, 128 + signal) << result.errors;
    EXPECT_LT(std::chrono::steady_clock::now() - sent, std::chrono::seconds(20));
    EXPECT_FALSE(std::filesystem::exists(output));
  }
}

TEST_F(RobustnessCli, SigtermEndsAProgramWhoseOutputNobodyReads) {
  write_small_language_model(folder_ / "lm");
  CommandOptions options;
  options.hold_back = true;
  RunningCommand running(attune_command({"generate", (folder_ / "lm").string(), "--prompt", "a", "--slide",
                                         "--max-tokens", "16000000", "--threads", "1"}),
                         options);
  std::this_thread::sleep_for(std::chrono::seconds(2));
  running.send(SIGTERM);
  EXPECT_TRUE(running.ends_within(std::chrono::seconds(60)));
  EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(RobustnessCli, SigtermEndsAProgramWhosePipeNobodyReads) {
  write_small_classifier(folder_ / "topics");
  std::string text;
  for (int line = 0; line < 1000000; ++line) text += "A dog.\n";
  const std::string input = file("in", text), pipe = (folder_ / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  RunningCommand running(
      attune_command({"classify", (folder_ / "topics").string(), "--file", input, "--output", pipe}));
  std::this_thread::sleep_for(std::chrono::seconds(2));
  running.send(SIGTERM);
  EXPECT_TRUE(running.ends_within(std::chrono::seconds(60)));
  EXPECT_EQ(running.wait().status, 128 + SIGTERM);
}

TEST_F(RobustnessCli, SigtermEndsGenerateClassifyAndEmbedWithStatus143) {
  write_small_language_model(folder_ / "lm");
  write_small_classifier(folder_ / "topics");
  const std::string embedder = (source_dir() / "tests/hub/models/bert-classifier").string();
  std::string text;
  for (int line = 0; line < 1000000; ++line) text += "A dog.\n";
  const std::string input = file("in", text), output = (folder_ / "out").string();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"generate", (folder_ / "lm").string(), "--prompt", "a", "--slide", "--max-tokens",
                                 "16000000", "--threads", "1"},
        std::vector<std::string>{"classify", (folder_ / "topics").string(), "--file", input, "--output", output},
        std::vector<std::string>{"embed", embedder, "--file", input, "--output", output}}) {
    RunningCommand running(attune_command(words));
    std::this_thread::sleep_for(std::chrono::seconds(2));
    running.send(SIGTERM);
    const CommandResult result = running.wait();
    EXPECT_EQ(result.status, 128 + SIGTERM) << words[0] << ": " << result.errors;
    EXPECT_FALSE(std::filesystem::exists(output)) << words[0];
  }
}

// A training of a tiny model whose batches are of many lengths, with so much address space.
CommandResult train_within(int megabytes, const std::string& source, const std::filesystem::path& run) {
  return run_command(
      {"bash", "-c",
       fmt::format("ulimit -v {}; exec '{}' train --preset transformer-base --out '{}' "
                   "--set data.train_source={} --set data.train_target={} --set model.layers=1 "
                   "--set data.tokenizer_type=whitespace --set train.steps=30 --set train.batch_tokens=40 "
                   "--set schedule.warmup_steps=5 --set model.d_model=32 --set model.heads=2 "
                   "--set model.d_ff=64 --set train.threads=2",
                   megabytes * 1024, attune_binary(), run.string(), source, source)});
}

TEST_F(RobustnessCli, LittleAddressSpaceIsAMessage) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space";
#endif
  const std::string source = file("train.src", joined(small_text(60)));
  for (const int megabytes : {150, 200, 250, 300, 400, 500, 600, 700}) {
    const CommandResult result = train_within(megabytes, source, folder_ / fmt::format("run{}", megabytes));
    EXPECT_EQ(result.signal, 0) << megabytes << " MB: " << result.errors;
    if (result.status == 0) continue;
    EXPECT_EQ(result.status, 1) << megabytes << " MB: " << result.errors;
    EXPECT_THAT(result.errors,
                ::testing::AnyOf(HasSubstr("ulimit -v"), HasSubstr("Thread creation failed"), HasSubstr("libgomp"),
                                 HasSubstr("error while loading shared libraries")))
        << megabytes << " MB";
  }
}

// What is kept for products to come is bounded, so that normal use of a tiny model takes little.
TEST_F(RobustnessCli, ATinyModelTakesLittleAddressSpace) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need the address space";
#endif
  const std::string source = file("train.src", joined(small_text(60)));
  const CommandResult result = train_within(1000, source, folder_ / "run");
  EXPECT_EQ(result.status, 0) << result.errors;
}

}  // namespace
}  // namespace attune

// What is wrong is said in one line, and nothing crashes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "attune/base/json_fields.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"
#include "tests/integration/cli_fixture.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

class CliErrorsTest : public CliFixture {
 protected:
  /// A copy of the model to be damaged.
  fs::path copy() const {
    const fs::path path = folder_ / "copy";
    fs::remove_all(path);
    fs::copy(model_, path);
    return path;
  }
  /// What a command that loads the model, and one that only looks at it, say of it.
  std::string refusal_of_model(const fs::path& model) const {
    const std::string message = refusal(run_attune({"translate", model.string(), "The dog."}));
    refusal(run_attune({"evaluate", model.string(), "--source", text_, "--reference", text_}));
    refusal(run_attune({"inspect", model.string(), "--attention", "The dog.", "--html", (folder_ / "a").string()}));
    EXPECT_FALSE(fs::exists(folder_ / "a"));
    return message;
  }

  const std::string text_ = file("text", "The dog.\n");
};

TEST_F(CliErrorsTest, UsageErrors) {
  EXPECT_THAT(refusal(run_attune({})), HasSubstr("see --help"));
  EXPECT_THAT(refusal(run_attune({"trian"})), HasSubstr("unknown command \"trian\", did you mean \"train\"?"));
  EXPECT_THAT(refusal(run_attune({"poem"})), HasSubstr("unknown command \"poem\" (see --help)"));
  EXPECT_THAT(refusal(run_attune({"translate"})), HasSubstr("model"));
  EXPECT_THAT(refusal(run_attune({"tokenizer"})), HasSubstr("see --help"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--beam-size", "many", "a"})), HasSubstr("many"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--beam-size", "0", "a"})), HasSubstr("beam_size = 0"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--n-best", "4", "a"})), HasSubstr("the beam size, 3"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--n-best", "99999999999999999999", "a"})),
              HasSubstr("--n-best: 99999999999999999999: is too large"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--n-best", "-99999999999999999999", "a"})),
              HasSubstr("--n-best: -99999999999999999999: is too small"));
  EXPECT_THAT(
      refusal(run_attune({"demo-corpus", "--out", (folder_ / "demo").string(), "--seed", "18446744073709551616"})),
      HasSubstr("--seed: 18446744073709551616: is too large"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--batch-size", "0", "a"})), HasSubstr("--batch-size 0"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--threads", "-2", "a"})), HasSubstr("--threads -2"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--file", text_, "a"})), HasSubstr("give one of them"));
  EXPECT_THAT(refusal(run_attune({"evaluate", "--reference", text_})), HasSubstr("needs a model, or --hypotheses"));
  EXPECT_THAT(refusal(run_attune({"evaluate", model_, "--reference", text_})),
              HasSubstr("needs --source and --reference"));
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--target", "a"})), HasSubstr("needs --attention"));
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--attention", " "})), HasSubstr("no tokens"));
  EXPECT_THAT(refusal(run_attune({"draw", "attention", model_, " "})), HasSubstr("attune: text: the sentence has no"));
}

TEST_F(CliErrorsTest, OptionsThatWouldDoNothingAreRefused) {
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--html", "a.html"})), HasSubstr("--html needs --attention"));
  for (const char* option : {"--json", "--layers"})
    EXPECT_THAT(refusal(run_attune({"inspect", model_, "--attention", "The dog.", option})),
                HasSubstr(std::string(option) + ": --attention writes an HTML page"));
  EXPECT_THAT(refusal(run_attune({"inspect", "--preset", "gpt2-124m", "--attention", "The dog."})),
              HasSubstr("--preset gpt2-124m has no weights"));
  for (const char* option : {"--beam-size", "--batch-size", "--threads"})
    EXPECT_THAT(refusal(run_attune({"evaluate", "--hypotheses", text_, "--reference", text_, option, "1"})),
                HasSubstr(std::string(option) + " is not for --hypotheses"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--patience", "2", "a"})),
              HasSubstr("--patience 2: needs --early-stopping patience, here it is first"));
  EXPECT_EQ(run_attune({"translate", model_, "--early-stopping", "patience", "--patience", "2", "The dog."}).status, 0);
}

TEST_F(CliErrorsTest, AModelThatIsNotThereIsNamed) {
  EXPECT_EQ(refusal(run_attune({"translate", "the dog"})),
            "attune: the dog: is no model folder (attune translate MODEL TEXT)\n");
  EXPECT_THAT(refusal(run_attune({"classify", "the dog"})), HasSubstr("(attune classify MODEL TEXT)"));
  EXPECT_THAT(refusal(run_attune({"embed", "the dog"})), HasSubstr("(attune embed MODEL TEXT)"));
  EXPECT_THAT(refusal(run_attune({"generate", "the dog"})), HasSubstr("(attune generate MODEL --prompt TEXT)"));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "encode", "the dog"})),
              HasSubstr("the dog: is no tokenizer and no model folder (attune tokenizer encode TOKENIZER TEXT)"));
  EXPECT_THAT(refusal(run_attune({"draw", "attention", "none", "a"})), HasSubstr("none: is no model folder"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--ensemble", "none", "a"})),
              HasSubstr("none: is no model folder"));
}

TEST_F(CliErrorsTest, AFileIsNoModel) {
  const std::string given = file("m.bin", "GGML"), expected = "attune: " + given + ": is a file, a model is a folder\n";
  for (const char* command : {"translate", "generate", "classify", "embed"})
    EXPECT_EQ(refusal(run_attune({command, given}, {.input = "a\n"})), expected) << command;
  EXPECT_EQ(refusal(run_attune({"quantize", given, "--out", (folder_ / "out").string()})), expected);
}

TEST_F(CliErrorsTest, AGgufFileIsRecognised) {
  const std::string given = file("m.gguf", "GGUF" + std::string(2 << 20, '\x01'));
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"inspect", given},
                                             {"draw", "block", given},
                                             {"translate", given, "The dog."},
                                             {"train", given, "--describe-config"}})
    EXPECT_THAT(refusal(run_attune(words)),
                AllOf(HasSubstr("attune: " + given + ": is a GGUF file of llama.cpp, which Attune does not read"),
                      HasSubstr("config.json, *.safetensors and the tokenizer")))
        << words[0];
}

TEST_F(CliErrorsTest, ARepeatedOptionTakesOneWord) {
  EXPECT_EQ(run_attune({"translate", model_, "--ensemble", model_, "The dog."}).output,
            run_attune({"translate", model_, "The dog."}).output);
  const std::string config = file("a.toml", "[train]\nstep = 3\n");
  EXPECT_THAT(refusal(run_attune({"train", "--set", "train.seed=3", config, "--describe-config"})),
              HasSubstr("a.toml: train: unknown key \"step\""));
}

TEST_F(CliErrorsTest, ADeviceIsNamedWithItsKey) {
  const auto refused = [&](const std::string& assignment) {
    return refusal(run_attune({"train", "--set", assignment, "--out", (folder_ / "run").string()}));
  };
  EXPECT_THAT(refused("train.device=gpu"),
              HasSubstr("--set train.device=gpu: train.device = gpu: needs cpu, cuda, or cuda:N"));
  EXPECT_THAT(refused("train.device=cuda:77"), HasSubstr("--set train.device=cuda:77: train.device = cuda:77: "));
  EXPECT_FALSE(fs::exists(folder_ / "run"));
}

TEST_F(CliErrorsTest, LinesBeforeAMalformedOneAreTranslated) {
  const auto translate = [&](const std::string& third) {
    return run_attune({"translate", model_}, {.input = "The dog.\n\n" + third + "\nThe cat.\n"});
  };
  const CommandResult not_utf8 = translate("caf\xE9");
  EXPECT_THAT(refusal(not_utf8), HasSubstr("standard input:3: the line is not valid UTF-8"));
  EXPECT_EQ(split_lines(not_utf8.output).size(), 2u);
  EXPECT_EQ(not_utf8.output, run_attune({"translate", model_}, {.input = "The dog.\n\n"}).output);

  std::string many_words;
  for (int i = 0; i < 1100; ++i) many_words += "dog ";
  const CommandResult too_many = translate(many_words);
  EXPECT_THAT(refusal(too_many), AllOf(HasSubstr("standard input:3: "), HasSubstr("at most 1024")));
  EXPECT_EQ(too_many.output, not_utf8.output);

  const CommandResult too_long = translate(std::string((1 << 20) + 2, 'a'));
  EXPECT_THAT(refusal(too_long), HasSubstr("standard input:3: a line of more than 1048576 bytes"));
  EXPECT_EQ(too_long.output, not_utf8.output);

  const std::string output = file("out", "as it was");
  const std::string input = file("in", "The dog.\ncaf\xE9\n");
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--file", input, "--output", output})), HasSubstr("in:2: "));
  EXPECT_EQ(read_file(output), "as it was");
  EXPECT_THAT(refusal(run_attune({"translate", model_, "good", "caf\xE9"})), HasSubstr("text 2 of the command line"));
}

TEST_F(CliErrorsTest, FilesThatAreNotThereOrCannotBeWritten) {
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--file", "/nowhere/a"})), HasSubstr("/nowhere/a"));
  const std::string below_a_file = text_ + "/out";
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--output", below_a_file, "a"})), HasSubstr(below_a_file));
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--attention", "The dog.", "--html", below_a_file})),
              HasSubstr(below_a_file));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "info", "/nowhere/a.model"})), HasSubstr("/nowhere/a.model"));
  const std::string cut_off = file("cut.gz", "");
  write_gzip(cut_off, "The dog.\n");
  fs::resize_file(cut_off, fs::file_size(cut_off) - 9);
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--file", cut_off})), HasSubstr("gzip data is cut off"));
}

TEST_F(CliErrorsTest, AnOutputFileThatIsStandardOutputIsRefused) {
  const std::string log = file("log", "old\n");
  const std::string words = " translate " + model_ + " 'The dog.' --output ";
  const CommandResult result = run_command({"sh", "-c", attune_binary() + words + "/dev/stdout >> " + log});
  EXPECT_THAT(refusal(result), HasSubstr("/dev/stdout: is standard output: leave out the option that names it"));
  EXPECT_EQ(read_file(log), "old\n");
  EXPECT_THAT(refusal(run_attune({"translate", model_, "The dog.", "--output", "-"})),
              HasSubstr("-: is standard output: leave out"));
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--attention", "The dog.", "--html", "-"})),
              HasSubstr("cannot write -: it is standard output"));
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(CliErrorsTest, AnOutputFileThatIsAnInputIsRefused) {
  const std::string config = file("run.toml", "[model]\nnorm = \"post\"\n"), old = read_file(text_);
  fs::create_hard_link(text_, folder_ / "same");
  for (const std::string& out : {text_, (folder_ / "same").string()})
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"translate", model_, "--file", text_, "--output", out},
             {"translate", model_, "The dog.", "--prefixes", text_, "--output", out},
             {"translate", model_, "The dog.", "--shortlist", text_, "--output", out},
             {"classify", model_, "--file", text_, "--output", out},
             {"embed", model_, "--file", text_, "--output", out},
             {"evaluate", model_, "--source", text_, "--reference", config, "--output", out},
             {"evaluate", model_, "--source", config, "--reference", text_, "--output", out},
             {"shortlist", model_, "--source", text_, "--target", config, "--output", out},
             {"shortlist", model_, "--source", config, "--target", text_, "--output", out},
             {"tokenizer", "train", "--input", config, text_, "--output", out},
             {"bench", "train", "--batches", text_, "--trace", out},
             {"bench", "serve", text_, "--path", "/translate", "--answers", out}})
      EXPECT_EQ(refusal(run_attune(words)),
                "attune: " + out + ": is an input too, which the output would replace: name another file\n")
          << words[0];
  EXPECT_EQ(read_file(text_), old);
  for (const char* kind : {"block", "schedule"})
    EXPECT_THAT(refusal(run_attune({"draw", kind, config, "--out", config})), HasSubstr("is an input too"));
  const std::string words = attune_binary() + " translate " + model_ + " --output " + text_ + " < " + text_;
  EXPECT_THAT(refusal(run_command({"sh", "-c", words})), HasSubstr("is an input too"));
}

TEST_F(CliErrorsTest, AnOutputFileInAFolderThatIsReadIsRefused) {
  const fs::path model = copy();
  const std::string out = model / kConfigFile, old = read_file(out);
  const std::string expected =
      "attune: " + out + ": is in " + model.string() + ", which is an input: name another file\n";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"translate", model, "The dog.", "--output", out},
           {"translate", model_, "The dog.", "--ensemble", model, "--output", out},
           {"evaluate", model, "--source", text_, "--reference", text_, "--output", out},
           {"shortlist", model, "--source", text_, "--target", text_, "--output", out},
           {"inspect", model, "--attention", "The dog.", "--html", out},
           {"draw", "attention", model, "The dog.", "--out", out}})
    EXPECT_EQ(refusal(run_attune(words)), expected) << words[0];
  for (const char* command : {"classify", "embed"})
    EXPECT_EQ(refusal(run_attune({command, model, "The dog.", "--output", out})), expected) << command;
  const fs::path link = folder_ / "link";
  fs::create_symlink(out, link);
  EXPECT_THAT(refusal(run_attune({"translate", model, "The dog.", "--output", link})), HasSubstr("is an input: name"));
  EXPECT_EQ(read_file(out), old);

  const fs::path run = folder_ / "run";
  fs::create_directory(run);
  write_file(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n");
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"report", run}, {"draw", "metrics", run}}) {
    std::vector<std::string> arguments = words;
    arguments.insert(arguments.end(), {"--out", run / "metrics.jsonl"});
    EXPECT_THAT(refusal(run_attune(arguments)), HasSubstr("metrics.jsonl: is in " + run.string())) << words[0];
  }
  for (int i = 0; i < 2; ++i) output_of({"draw", "metrics", run, "--out", run / "loss.svg"});  // a picture again
}

TEST_F(CliErrorsTest, AnOutputFileThatCannotBeWrittenIsFoundBeforeTheWork) {
  const std::string out = text_ + "/out", unread = file("unread", "\xFF\n");  // the work would fail otherwise
  EXPECT_THAT(refusal(run_attune({"shortlist", model_, "--source", unread, "--target", unread, "--output", out})),
              HasSubstr("cannot write " + out));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "train", "--input", unread, "--output", out + ".model"})),
              HasSubstr("cannot write " + out + ".model"));
  for (const char* kind : {"attention", "decode"}) {
    const CommandResult result = run_attune({"bench", kind, "--svg", out});
    EXPECT_THAT(refusal(result), HasSubstr("cannot write " + out)) << kind;
    EXPECT_EQ(result.output, "") << kind;
  }
}

TEST_F(CliErrorsTest, OptionsThatNothingReadsAreRefused) {
  const std::string out = (folder_ / "vocabulary.json").string();
  EXPECT_EQ(refusal(run_attune(
                {"tokenizer", "train", "--input", text_, "--output", out, "--kind", "whitespace", "--byte-fallback"})),
            "attune: --byte-fallback is not for --kind whitespace\n");
  EXPECT_EQ(refusal(run_attune({"compare", (folder_ / "run").string(), "--beam-size", "4"})),
            "attune: --beam-size needs --source and --reference\n");
  const std::string prefixes = file("prefixes", "a\nb\nc\n");
  EXPECT_THAT(refusal(run_attune({"translate", model_, "The dog.", "--prefixes", prefixes})),
              HasSubstr("prefixes: has more lines than the text, which has 1"));
}

// "--option=" is an empty value; a word behind an option, or of a text, is what it is.
TEST_F(CliErrorsTest, AnEmptyValueIsNotTheNextWord) {
  EXPECT_EQ(refusal(run_attune({"translate", model_, "--output=", "The dog."})),
            "attune: --output: is empty (see --help)\n");
  EXPECT_EQ(output_of({"translate", model_, "--scores", "--", "--output="}),
            output_of({"translate", model_, "--scores", "--file", file("word", "--output=\n")}));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "The dog.", "--prefixes", "--output="})),
              HasSubstr("--output="));
  EXPECT_EQ(run_attune({"evaluate", model_, "--source", text_, "--reference", text_, "--output",
                        (folder_ / "missing" / "out").string()})
                .status,
            1);
}

TEST_F(CliErrorsTest, DevicesAndPipesAreOutputs) {
  const std::string translate = attune_binary() + " translate " + model_ + " 'The dog.' --output ";
  const CommandResult timed = run_command({"sh", "-c", translate + "/dev/null > /dev/null"});
  EXPECT_EQ(timed.status, 0) << timed.errors;
  const std::string pipe = (folder_ / "pipe").string();
  const CommandResult piped =
      run_command({"sh", "-c", "mkfifo " + pipe + " && { " + translate + pipe + " & cat " + pipe + "; }"});
  EXPECT_EQ(piped.output, output_of({"translate", model_, "The dog."}));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "The dog.", "--output", "/dev/full"})),
              HasSubstr("cannot write /dev/full: "));
}

TEST_F(CliErrorsTest, HelpThatCannotBeWritten) {
  for (const char* words : {" --help", " --version", " train --help"}) {
    const CommandResult result = run_command({"sh", "-c", attune_binary() + words + " > /dev/full"});
    EXPECT_EQ(result.status, 1) << words;
    EXPECT_EQ(result.errors, "attune: cannot write standard output\n");
  }
  const CommandResult gone = run_attune({"--help"}, {.input = "", .close_output = true});
  EXPECT_EQ(gone.status, 128 + SIGPIPE);
  EXPECT_EQ(gone.errors, "");
}

TEST_F(CliErrorsTest, AReaderThatHasGone) {
  std::string input;
  for (int i = 0; i < 600; ++i) input += "The dog.\n";
  const CommandResult result = run_attune({"translate", model_}, {.input = input, .close_output = true});
  EXPECT_EQ(result.status, 128 + SIGPIPE);
  EXPECT_EQ(result.errors, "") << "`head` is no error";
}

TEST_F(CliErrorsTest, TextsOfDifferentLength) {
  const std::string one = file("one", "a\n"), two = file("two", "a\nb\n"), none = file("none", "");
  EXPECT_THAT(refusal(run_attune({"evaluate", model_, "--source", one, "--reference", two})),
              AllOf(HasSubstr("one has 1 lines"), HasSubstr("two has 2")));
  EXPECT_THAT(refusal(run_attune({"evaluate", "--hypotheses", two, "--reference", one})), HasSubstr("two has 2 lines"));
  EXPECT_THAT(refusal(run_attune({"evaluate", model_, "--source", none, "--reference", none})),
              HasSubstr("has no line"));
  refusal(run_attune({"evaluate", "--hypotheses", none, "--reference", none}));
  EXPECT_THAT(refusal(run_attune({"evaluate", "--hypotheses", one, "--reference", one, "--bleu-tokenizer", "zh"})),
              HasSubstr("one of 13a, none"));
  EXPECT_THAT(refusal(run_attune({"evaluate", model_, "--hypotheses", one, "--reference", one})),
              HasSubstr("without a model"));
}

TEST_F(CliErrorsTest, ModelsThatAreDamaged) {
  EXPECT_THAT(refusal_of_model("/nowhere/model"), HasSubstr("/nowhere/model"));
  EXPECT_THAT(refusal_of_model(text_), HasSubstr("text"));

  fs::path model = copy();
  fs::resize_file(model / kParameterFile, fs::file_size(model / kParameterFile) - 1000);
  EXPECT_THAT(refusal_of_model(model), HasSubstr(kParameterFile));
  refusal(run_attune({"inspect", model.string()}));

  model = copy();
  std::string bytes = read_file(model / kParameterFile);
  bytes.replace(0, 8, std::string(7, '\xFF') + '\x7F');  // a header of 2^63 bytes
  write_file(model / kParameterFile, bytes);
  EXPECT_THAT(refusal_of_model(model), HasSubstr(kParameterFile));
  refusal(run_attune({"inspect", model.string()}));

  model = copy();
  write_file(model / kParameterFile, std::string("\x10\0\0\0\0\0\0\0{\"a\":{\"dtype\":1}}", 24));
  EXPECT_THAT(refusal_of_model(model), HasSubstr(kParameterFile));

  model = copy();
  write_file(model / "tokenizer.model", "no tokenizer");
  EXPECT_THAT(refusal_of_model(model), HasSubstr("tokenizer.model"));
  fs::remove(model / "tokenizer.model");
  EXPECT_THAT(refusal_of_model(model), HasSubstr("needs tokenizer.json, tokenizer.model"));
}

TEST_F(CliErrorsTest, ATensorOfTheWrongShape) {
  const fs::path model = copy();
  std::vector<NamedTensor> tensors;
  const SafetensorsReader reader(model / kParameterFile);
  for (const std::string& name : reader.names()) tensors.push_back({name, reader.load(name)});
  Tensor& tensor = tensors.at(0).tensor;
  const int64_t numbers = tensor.numel();
  tensor = tensor.reshape({1, numbers});
  write_safetensors(model / kParameterFile, tensors);
  EXPECT_THAT(refusal_of_model(model), AllOf(HasSubstr(tensors[0].name), HasSubstr(fmt::format("[1, {}]", numbers))));
}

TEST_F(CliErrorsTest, ConfigurationsThatCannotBe) {
  const fs::path model = copy();
  const Json good = read_json_file(model / kConfigFile);
  const auto with = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    write_json_file(model / kConfigFile, json);
    refusal(run_attune({"inspect", model.string()}));
    return refusal_of_model(model);
  };
  EXPECT_THAT(with("heads", 5), HasSubstr("d_model = 32 is not divisible by heads = 5"));
  EXPECT_THAT(with("d_modle", 32), HasSubstr("unknown key \"d_modle\", did you mean \"d_model\"?"));
  EXPECT_THAT(with("layers", 1000), HasSubstr("model.safetensors: holds"));
  EXPECT_THAT(with("d_model", "x\ny"), HasSubstr("config.json"));
  write_file(model / kConfigFile, "{");
  EXPECT_THAT(refusal_of_model(model), HasSubstr("not valid JSON"));

  const auto run = [&](const std::string& toml) { return refusal(run_attune({"inspect", file("run.toml", toml)})); };
  const std::string data = "[data]\ntrain_source = \"a\"\ntrain_target = \"b\"\n";
  EXPECT_THAT(run(data + "[model]\nd_model = 30\nheads = 4"), HasSubstr("run.toml: model"));
  EXPECT_THAT(run(data + "[modle]\n"), HasSubstr("did you mean [model]?"));
  EXPECT_THAT(run(data + "[model]\nlayres = 4\n"), HasSubstr("did you mean \"layers\"?"));
  EXPECT_THAT(run("[model"), HasSubstr("run.toml:1"));
}

TEST_F(CliErrorsTest, HostileNamesStayOnOneLine) {
  const fs::path model = copy();
  Json json = read_json_file(model / kConfigFile);
  json["two\nlines\x1b[31m"] = 1;
  write_json_file(model / kConfigFile, json);
  const std::string message = refusal_of_model(model);
  EXPECT_THAT(message, HasSubstr("config.json"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << "a file may not steer the terminal";
  const CommandResult corpus = run_attune(
      {"demo-corpus", "--out", (folder_ / "a\x1b[31m").string(), "--train", "20", "--valid", "2", "--test", "2"});
  EXPECT_EQ(corpus.status, 0) << corpus.errors;
  EXPECT_THAT(corpus.errors, AllOf(HasSubstr("a\\x1b[31m"), Not(HasSubstr("\x1b"))));
  EXPECT_THAT(output_of({"tokenizer", "train", "--input", text_, "--output", (folder_ / "b\x1b.json").string(),
                         "--kind", "characters"}),
              HasSubstr("wrote " + folder_.path().string() + "/b\\x1b.json"));
}

TEST_F(CliErrorsTest, TokenizerInputs) {
  const auto train = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"tokenizer", "train", "--input", text_});
    return refusal(run_attune(options));
  };
  const std::string out = (folder_ / "t.model").string();
  EXPECT_THAT(train({"--output", out, "--kind", "magic"}), HasSubstr("one of unigram, bpe, whitespace"));
  EXPECT_THAT(train({"--output", out, "--kind", "whitespace"}), HasSubstr("is a .json file"));
  EXPECT_THAT(train({"--output", out, "--vocab-size", "5"}), HasSubstr("vocab_size = 5"));
  EXPECT_THAT(train({"--output", out, "--vocab-size", "99999999999"}), HasSubstr("99999999999"));
  EXPECT_THAT(train({"--output", text_ + "/t.model", "--vocab-size", "12"}), HasSubstr("text/t.model"));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "decode", model_, "1", "x"})), HasSubstr("\"x\" is no token id"));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "decode", model_}, {.input = "4 5\n300\n"})),
              HasSubstr("standard input:2: token id 300 is outside the vocabulary of 300"));
  EXPECT_THAT(refusal(run_attune({"tokenizer", "encode", model_}, {.input = "\xFF\n"})), HasSubstr("standard input:1"));
}

}  // namespace
}  // namespace attune

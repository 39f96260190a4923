// Runs from outside: their folders stand for their models, they are compared and reported, and resumed from anywhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>

#include "attune/base/json_fields.h"
#include "tests/integration/cli_fixture.h"
#include "tests/train/reverse_task.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

/// What a program says on a terminal.
std::string on_terminal(const std::vector<std::string>& arguments) {
  int terminal = -1;
  const pid_t process = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (process == 0) {
    std::vector<char*> words;
    for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
    words.push_back(nullptr);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  std::string text;
  std::array<char, 4096> buffer{};
  for (ssize_t got; (got = ::read(terminal, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(got));
  ::close(terminal);
  ::waitpid(process, nullptr, 0);
  return text;
}

class RunsCliTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ::setenv("OMP_NUM_THREADS", "1", 0);
    shared_ = std::make_unique<TemporaryFolder>();
    write_reverse_text(*shared_, "train", 200, 2, 5, 1);
    write_reverse_text(*shared_, "valid", 10, 2, 5, 2);
    for (const char* seed : {"1", "2"})
      train_run(std::string("seed") + seed, {"--set", std::string("train.seed=") + seed});
    train_run("other", {"--set", "model.d_ff=40"});
  }
  static void TearDownTestSuite() { shared_.reset(); }

  static CommandResult train_run(const std::string& name, std::vector<std::string> more = {}) {
    RunConfig config = reverse_config(*shared_);
    config.train = {
        .steps = 6, .batch_tokens = 64, .log_every = 2, .valid_every = 3, .checkpoint_every = 3, .threads = 1};
    write_file(*shared_ / "run.toml", write_toml(config));
    std::vector<std::string> words = {"train", *shared_ / "run.toml", "--out", *shared_ / name};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_attune(words);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result;
  }
  static std::string run(const std::string& name) { return *shared_ / name; }
  /// A folder with what compare reads of a run; `model` is the section of config.toml.
  std::string written(const std::string& name, const std::string& model) const {
    fs::create_directories(folder_ / name);
    write_file(folder_ / name / "config.toml", "[model]\n" + model + "\n[train]\nseed = 1\n");
    write_file(folder_ / name / "metrics.jsonl", "{\"step\":1,\"loss\":1}\n");
    return (folder_ / name).string();
  }

  static inline std::unique_ptr<TemporaryFolder> shared_;
  TemporaryFolder folder_;
};

TEST_F(RunsCliTest, OneNameForEachQuantity) {
  const std::string text = train_run("names").errors;
  EXPECT_THAT(text, HasSubstr("step 2 of 6  loss "));
  EXPECT_THAT(text, Not(HasSubstr("33%")));
  EXPECT_THAT(text, HasSubstr(" seconds of training\n"));
  const std::vector<std::string> lines = split_lines(text);
  std::string said;  // of the validation at step 3
  for (const std::string& line : lines)
    if (line.starts_with("step 3: ")) said = line;
  Json training, validation;
  for (const std::string& line : split_lines(read_file(*shared_ / "names" / "metrics.jsonl"))) {
    const Json json = Json::parse(line);
    if (json["step"] == 2) training = json;
    if (json["step"] == 3 && json.contains("valid_loss")) validation = json;
    if (json["step"] == 0) {
      EXPECT_GT(json["parameters"].get<int64_t>(), 1000);
    }
  }
  EXPECT_THAT(said, HasSubstr(fmt::format("validation loss {:.4f} (training {:.4f})  nll {:.4f} (training {:.4f})",
                                          validation["valid_loss"].get<double>(), training["loss"].get<double>(),
                                          validation["valid_nll"].get<double>(), training["nll"].get<double>())));
  EXPECT_NEAR(std::exp(validation["valid_nll"].get<double>()), validation["valid_perplexity"].get<double>(), 1e-6);
  for (const char* name : {"tokens", "seconds", "memory_mib", "tensor_memory_mib"})
    EXPECT_GT(training[name].get<double>(), 0) << name;
  const std::string unsmoothed = train_run("unsmoothed", {"--set", "train.label_smoothing=0"}).errors;
  EXPECT_THAT(unsmoothed, Not(HasSubstr("nll"))) << "it would be the same number";
}

// Before the log has a line, the figure of training is the mean of all steps so far, not the first step's.
TEST_F(RunsCliTest, AValidationStandsBesideTheStepsBeforeIt) {
  const auto validation = [](const std::string& name, const std::string& every) {
    for (const std::string& line : split_lines(train_run(name, {"--set", "train.log_every=" + every}).errors))
      if (line.starts_with("step 3: validation loss ")) return line;
    return std::string();
  };
  const std::string logged = validation("logged", "3");
  EXPECT_THAT(logged, HasSubstr(" (training "));
  EXPECT_EQ(validation("unlogged", "100"), logged);
}

TEST_F(RunsCliTest, TheTimeLeftIsSaidOnceAStepHasBeenTimed) {
  const std::vector<std::string> lines = split_lines(train_run("timed", {"--set", "train.log_every=1"}).errors);
  for (int step = 1; step < 6; ++step) {
    const std::string head = fmt::format("step {} of 6  ", step);
    const auto line = std::ranges::find_if(lines, [&](const std::string& text) { return text.starts_with(head); });
    ASSERT_NE(line, lines.end()) << head;
    EXPECT_EQ(line->ends_with(" left"), step > 1) << *line;
  }
}

TEST_F(RunsCliTest, TheFolderOfARunStandsForItsModel) {
  EXPECT_EQ(output_of({"translate", run("seed1"), "a b"}), output_of({"translate", run("seed1") + "/model", "a b"}));
  EXPECT_EQ(output_of({"inspect", run("seed1")}), output_of({"inspect", run("seed1") + "/model"}));
  fs::copy(run("seed1"), folder_ / "open", fs::copy_options::recursive);
  fs::remove_all(folder_ / "open" / "model");
  EXPECT_THAT(
      refusal(run_attune({"translate", folder_ / "open", "a"})),
      HasSubstr("the run has not ended; " + (folder_ / "open" / "best").string() + " is its best model so far"));
  fs::remove_all(folder_ / "open" / "best");
  EXPECT_THAT(refusal(run_attune({"translate", folder_ / "open", "a"})), HasSubstr("the run has no model yet"));
}

TEST_F(RunsCliTest, TheModelMayComeAfterTheText) {
  const std::string model = run("seed1") + "/model";
  EXPECT_EQ(output_of({"translate", "a b", run("seed1")}, "",
                      "attune: the model, " + model + ", is expected before the text\n"),
            output_of({"translate", model, "a b"}));
  EXPECT_THAT(refusal(run_attune({"translate", "a b", "c d"})), HasSubstr("a b"));
}

TEST_F(RunsCliTest, NothingToResumeIsSaid) {
  EXPECT_THAT(refusal(run_attune({"train", "--out", folder_ / "none", "--resume"})),
              HasSubstr("there is no run to resume: it has no config.toml"));
  EXPECT_THAT(train_run("fresh", {"--resume"}).errors,
              HasSubstr("has no checkpoint: there is nothing to resume, the run begins\n"));
}

TEST_F(RunsCliTest, ARunIsResumedFromAnyDirectory) {
  const std::string home = (*shared_ / "train.src").parent_path();
  const std::string go =
      "cd " + home + " && " + attune_binary() +
      " train run.toml --out moved --set data.train_source=train.src --set data.train_target=train.tgt";
  train_run("unused");  // writes run.toml
  ASSERT_EQ(run_command({"sh", "-c", go}).status, 0);
  const CommandResult more = run_command(
      {"sh", "-c", "cd / && " + attune_binary() + " train --out " + run("moved") + " --resume --set train.steps=8"});
  EXPECT_EQ(more.status, 0) << more.errors;
  EXPECT_THAT(more.errors, HasSubstr("going on from step 6"));
}

TEST_F(RunsCliTest, PicturesDoNotGoToATerminal) {
  const std::string said = on_terminal(attune_command({"draw", "metrics", run("seed1")}));
  EXPECT_THAT(said, HasSubstr("give --out metrics.svg"));
  EXPECT_THAT(said, Not(HasSubstr("<svg")));
}

TEST_F(RunsCliTest, CompareShowsWhatDiffers) {
  const std::string table = output_of({"compare", run("seed1"), run("seed2"), run("other")});
  for (const char* row : {"model.d_ff ", "train.seed ", "parameters ", "training ", "best valid_nll ", "memory_mib "})
    EXPECT_THAT(table, HasSubstr(row));
  EXPECT_THAT(table, Not(HasSubstr("model.heads")));
  EXPECT_THAT(table, HasSubstr("over 2 seeds"));
  const Json json = Json::parse(output_of({"compare", run("seed1"), run("seed2"), run("other"), "--json"}));
  ASSERT_EQ(json["runs"].size(), 3u);
  EXPECT_TRUE(json["runs"][0]["minutes"].is_number());
  EXPECT_EQ(json["differing_keys"], (Json{"model.d_ff", "train.seed"}));
  ASSERT_EQ(json["seeds"].size(), 1u);
  const auto value = [&](size_t i) { return json["runs"][i]["best"]["valid_nll"]["value"].get<double>(); };
  const Json spread = json["seeds"][0]["best"]["valid_nll"];
  EXPECT_NEAR(spread["mean"].get<double>(), (value(0) + value(1)) / 2, 1e-12);
  EXPECT_NEAR(spread["standard_deviation"].get<double>(), std::abs(value(0) - value(1)) / std::sqrt(2.0), 1e-12);
}

TEST_F(RunsCliTest, CompareShowsTheTimeOfAShortRun) {
  fs::copy(run("seed1"), folder_ / "short", fs::copy_options::recursive);
  write_file(folder_ / "short" / "metrics.jsonl", "{\"step\":2,\"time\":100.0,\"seconds\":2.14,\"loss\":4.5}\n");
  EXPECT_THAT(output_of({"compare", folder_ / "short", run("other")}), HasSubstr("2.1 seconds "));
}

TEST_F(RunsCliTest, RunsOfOneSeedAreNoSeeds) {
  fs::copy(run("seed1"), folder_ / "again", fs::copy_options::recursive);
  const std::string again = folder_ / "again";
  EXPECT_THAT(output_of({"compare", run("seed1"), again}), Not(HasSubstr("seeds")));
  EXPECT_EQ(Json::parse(output_of({"compare", run("seed1"), again, "--json"}))["seeds"], Json::array());
  EXPECT_THAT(output_of({"compare", run("seed1"), again, run("seed2")}), HasSubstr("over 3 runs of 2 seeds ("));
}

TEST_F(RunsCliTest, CompareShowsOfAChoiceTheFieldsThatDiffer) {
  const auto with_attention = [&](const std::string& name, const std::string& attention) {
    return written(name, "architecture = \"decoder_lm\"\nattention = " + attention);
  };
  const std::string table = output_of(
      {"compare", with_attention("full", R"({kind = "multi_head", kv_heads = 2, bias = "all", pattern = "full"})"),
       with_attention("local",
                      R"({kind = "multi_head", kv_heads = 1, bias = "all", pattern = {kind = "window", size = 4}})"),
       with_attention("latent", R"({kind = "latent", latent_dim = 8, bias = "all", pattern = "full"})")});
  for (const char* value :
       {"multi_head (kv_heads 2, pattern full) ", "multi_head (kv_heads 1, pattern window) ", " latent\n"})
    EXPECT_THAT(table, HasSubstr(value));
  EXPECT_THAT(table, Not(HasSubstr("bias")));
}

TEST_F(RunsCliTest, OfSeveralArchitecturesCompareShowsWhatAllOfThemHave) {
  const Json json = Json::parse(output_of(
      {"compare", written("lm", "architecture = \"decoder_lm\"\nd_ff = 8\ncontext_length = 4"),
       written("translator", "architecture = \"encoder_decoder\"\nd_ff = 16\ndecoder_layers = 2"), "--json"}));
  EXPECT_EQ(json["differing_keys"], (Json{"model.architecture", "model.d_ff"}));
}

TEST_F(RunsCliTest, CompareTellsWhetherADifferenceMayBeChance) {
  const DataConfig data = reverse_config(*shared_).data;
  const std::vector<std::string> words = {
      "compare",     run("seed1"),         run("seed1"), "--source", data.valid_source[0],
      "--reference", data.valid_target[0], "--samples",  "20"};
  EXPECT_THAT(output_of(words), HasSubstr("+0.00, 95 % between +0.00 and +0.00, p = 1.000 (may be chance)"));
  EXPECT_THAT(refusal(run_attune({"compare", run("seed1"), "--source", data.valid_source[0]})),
              HasSubstr("belong together"));
}

TEST_F(RunsCliTest, CompareScoresAllRunsByOneTokenizer) {
  const DataConfig data = reverse_config(*shared_).data;
  train_run("characters", {"--set", "data.tokenizer_type=characters"});
  const auto tokenizer_of = [&](const std::string& first, const std::string& second) {
    return Json::parse(output_of({"compare", run(first), run(second), "--source", data.valid_source[0], "--reference",
                                  data.valid_target[0], "--samples", "20", "--json"}))["bleu_tokenizer"];
  };
  EXPECT_EQ(tokenizer_of("seed1", "seed2"), "none");
  EXPECT_EQ(tokenizer_of("seed1", "characters"), "13a");
}

TEST_F(RunsCliTest, CompareTranslatesOnTheDeviceAndInThePrecisionThatAreNamed) {
  const DataConfig data = reverse_config(*shared_).data;
  const auto with = [&](const char* option, const char* value) {
    return run_attune({"compare", run("seed1"), run("seed2"), "--source", data.valid_source[0], "--reference",
                       data.valid_target[0], option, value});
  };
  EXPECT_THAT(refusal(with("--device", "gpu")), HasSubstr("device = gpu: needs cpu, cuda"));
  EXPECT_THAT(refusal(with("--precision", "float16")), HasSubstr("--precision"));
  const CommandResult narrow = with("--precision", "bfloat16");
  EXPECT_EQ(narrow.status, 0) << narrow.errors;
}

TEST_F(RunsCliTest, CompareCountsCharactersAndTakesTheBestModelOfARunThatHasNotEnded) {
  fs::copy(run("seed1"), folder_ / "für übermorgen", fs::copy_options::recursive);
  fs::remove_all(folder_ / "für übermorgen" / "model");
  const DataConfig data = reverse_config(*shared_).data;
  const std::vector<std::string> words = {"compare",           folder_ / "für übermorgen", run("seed1"),
                                          "--source",          data.valid_source[0],       "--reference",
                                          data.valid_target[0]};
  const std::vector<std::string> lines = split_lines(output_of(words));
  // The last column begins at the same character in every line of the table.
  const auto characters_before = [](const std::string& text, size_t at) {
    return std::count_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at),
                         [](char c) { return (c & 0xC0) != 0x80; });
  };
  const auto column = characters_before(lines[0], lines[0].rfind("  ") + 2);
  size_t rows = 0;
  for (; rows < lines.size() && !lines[rows].empty(); ++rows)
    EXPECT_EQ(characters_before(lines[rows], lines[rows].rfind("  ") + 2), column) << lines[rows];
  EXPECT_THAT(lines[rows - 1], HasSubstr("test BLEU"));
  fs::remove_all(folder_ / "für übermorgen" / "best");
  EXPECT_THAT(refusal(run_attune(words)), HasSubstr("the run has no model yet, which --source asks for"));
}

// metrics.jsonl as version 0.1.0 wrote it.
TEST_F(RunsCliTest, RunsOfEarlierVersionsAreComparedAndDrawn) {
  fs::copy(run("seed1"), folder_ / "old", fs::copy_options::recursive);
  write_file(folder_ / "old" / "metrics.jsonl",
             "{\"step\":2,\"time\":100.0,\"loss\":4.5,\"nll\":4.2}\n{\"step\":3,\"time\":160.0,\"valid_loss\":4.1}\n");
  const std::string old = folder_ / "old";
  EXPECT_THAT(output_of({"compare", old, run("other")}), AllOf(HasSubstr("1.0 minutes "), HasSubstr("4.1000 at 3")));
  EXPECT_THAT(output_of({"draw", "metrics", old, "--x", "time"}), HasSubstr(">minutes<"));
  EXPECT_THAT(refusal(run_attune({"draw", "metrics", old, "--x", "tokens"})), HasSubstr("use --x step"));
}

TEST_F(RunsCliTest, MetricsAreDrawnInPanels) {
  const std::string svg = output_of(
      {"draw", "metrics", run("seed1"), run("seed2"), "--values", "loss,valid_loss,valid_bleu", "--x", "tokens"});
  EXPECT_THAT(svg, AllOf(HasSubstr(">nats<"), HasSubstr(">BLEU<"), HasSubstr(">tokens<")));
  EXPECT_THAT(output_of({"draw", "metrics", run("seed1"), "--smooth", "0.5"}), HasSubstr("smoothed"));
  EXPECT_THAT(refusal(run_attune({"draw", "metrics", run("seed1"), "--smooth", "1"})), HasSubstr("--smooth 1"));
  EXPECT_THAT(refusal(run_attune({"draw", "metrics", run("seed1"), "--x", "epoch"})), HasSubstr("step, time, tokens"));
}

TEST_F(RunsCliTest, TheReportIsOnePageOfItsOwn) {
  const std::string file = folder_ / "report.html";
  output_of({"report", run("seed1"), "--out", file});
  const std::string page = read_file(file);
  for (const char* part : {"Curves", "Translations by step", "Attention", "Configuration", "Cross-attention, layer",
                           "step 3", "step 6", "best valid_bleu", "train.batch_tokens"})
    EXPECT_THAT(page, HasSubstr(part));
  double largest = 0;
  for (const Json& line : json_lines(read_file(fs::path(run("seed1")) / "metrics.jsonl")))
    largest = std::max(largest, line.value("memory_mib", 0.0));
  EXPECT_THAT(page, HasSubstr(fmt::format("<td>memory_mib</td><td>{:.6g}</td>", largest)));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), Not(HasSubstr("src=")), Not(HasSubstr("href="))));
  EXPECT_THAT(refusal(run_attune({"report", folder_ / "none"})), HasSubstr("none"));
}

TEST_F(RunsCliTest, TheFiguresOfTheAveragedModelAreKept) {
  const std::string said = train_run("averaged", {"--set", "train.average_checkpoints=2"}).errors;
  double bleu = -1;
  for (const Json& line : json_lines(read_file(fs::path(run("averaged")) / "metrics.jsonl")))
    bleu = line.value("averaged_valid_bleu", bleu);
  const size_t averaged = said.find("averaged model: step 6: validation loss ");
  ASSERT_NE(averaged, std::string::npos) << said;
  EXPECT_THAT(said.substr(averaged), HasSubstr(fmt::format("  BLEU {:.2f}", bleu)));
  const std::string file = folder_ / "report.html";
  output_of({"report", run("averaged"), "--out", file});
  EXPECT_THAT(read_file(file), HasSubstr(fmt::format("<td>averaged_valid_bleu</td><td>{:.6g}</td>", bleu)));
  EXPECT_THAT(output_of({"draw", "metrics", run("averaged"), "--values", "valid_bleu,averaged_valid_bleu"}),
              HasSubstr(">BLEU<"));
}

TEST_F(RunsCliTest, CompareShowsTheFiguresOfTheAveragedModel) {
  train_run("mean1", {"--set", "train.average_checkpoints=2", "--set", "train.seed=1"});
  train_run("mean2", {"--set", "train.average_checkpoints=2", "--set", "train.seed=2"});
  const auto logged = [](const std::string& name) {
    return json_lines(read_file(fs::path(run(name)) / "metrics.jsonl")).back().at("averaged_valid_nll").get<double>();
  };
  const std::vector<std::string> words = {"compare", run("mean1"), run("mean2"), run("seed1")};
  const std::string table = output_of(words);
  std::map<std::string, std::vector<std::string>> rows;  // by their first two words, which tell best from averaged
  for (const std::string& line : split_lines(table)) {
    std::istringstream stream(line);
    std::string first, second;
    stream >> first >> second;
    for (std::string cell; stream >> cell;) rows[first + " " + second].push_back(cell);
  }
  EXPECT_EQ(rows["averaged_checkpoints 2"], (std::vector<std::string>{"2", "-"}));
  ASSERT_EQ(rows["averaged valid_nll"].size(), 3u + 3u) << table;  // those of the runs, and of the seeds
  EXPECT_EQ(rows["averaged valid_nll"][0], fmt::format("{:.4f}", logged("mean1")));
  EXPECT_EQ(rows["averaged valid_nll"][1], fmt::format("{:.4f}", logged("mean2")));
  EXPECT_EQ(rows["averaged valid_nll"][2], "-");
  EXPECT_THAT(table, HasSubstr("\nbest valid_nll "));
  std::vector<std::string> for_programs = words;
  for_programs.emplace_back("--json");
  const Json json = Json::parse(output_of(for_programs));
  EXPECT_EQ(json["runs"][0]["averaged_checkpoints"], 2);
  EXPECT_EQ(json["runs"][0]["averaged"]["valid_nll"], (Json{{"value", logged("mean1")}, {"step", 6}}));
  EXPECT_EQ(json["runs"][2]["averaged_checkpoints"], Json());
  EXPECT_EQ(json["runs"][2]["averaged"], Json::object());
  ASSERT_EQ(json["seeds"].size(), 1u);
  EXPECT_NEAR(json["seeds"][0]["averaged"]["valid_nll"]["mean"].get<double>(), (logged("mean1") + logged("mean2")) / 2,
              1e-12);
  EXPECT_THAT(output_of({"compare", run("seed1"), run("seed2")}), Not(HasSubstr("averaged")));
}

TEST_F(RunsCliTest, ASampleThatCannotBeShownLeavesTheReport) {
  fs::copy(run("seed1"), folder_ / "long", fs::copy_options::recursive);
  std::string source;
  for (int i = 0; i < 201; ++i) source += "a ";
  const Json sample = {{"step", 3}, {"source", source}, {"reference", "a"}, {"translation", "a"}};
  write_file(folder_ / "long" / "samples.jsonl", sample.dump() + "\n");
  const std::string file = folder_ / "report.html";
  output_of({"report", folder_ / "long", "--out", file});
  EXPECT_THAT(read_file(file), AllOf(HasSubstr("<p>the first sample: the model reads 202 tokens, at most 128"),
                                     HasSubstr("Configuration")));
  EXPECT_THAT(refusal(run_attune({"report", folder_ / "long", "--text", source})),
              HasSubstr("attune: --text: the model reads 202 tokens"));
}

}  // namespace
}  // namespace attune

// Pictures and the benchmark of the attention operation, through the binary.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "attune/base/json_fields.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// What is wrong with a text as XML, or "": tags that do not match, attributes without quotes, bare markup.
std::string xml_error(const std::string& text) {
  static const std::regex tag(R"re(^<(/?)([a-z]+)((?: [a-zA-Z:-]+="[^"<&]*")*)(/?)>)re");
  static const std::regex entity("^&(?:amp|lt|gt|quot);");
  if (!valid_utf8(text)) return "not UTF-8";
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size();) {
    const auto from = text.cbegin() + static_cast<std::ptrdiff_t>(at);
    const std::string here = text.substr(at, 60);
    std::smatch match;
    if (text[at] == '<') {
      // A path may be long; the expression would recurse over each character of its value.
      const size_t end = text.find('>', at);
      if (end == std::string::npos) return "a tag without an end: " + here;
      std::string head = text.substr(at, end + 1 - at);
      if (const size_t d = head.find(" d=\""); d != std::string::npos) {
        const size_t close = head.find('"', d + 4);
        if (close == std::string::npos || head.find_first_of("<&", d) < close) return "a path without quotes: " + here;
        head.erase(d, close + 1 - d);
      }
      if (!std::regex_search(head, match, tag)) return "not a tag: " + here;
      if (match[1].length() > 0) {
        if (open.empty() || open.back() != match[2]) return "closes what is not open: " + here;
        open.pop_back();
      } else if (match[4].length() == 0) {
        open.push_back(match[2]);
      }
      at = end + 1;
    } else if (text[at] == '&') {
      if (!std::regex_search(from, text.cend(), match, entity)) return "bare &: " + here;
      at += static_cast<size_t>(match.length());
    } else {
      if (static_cast<unsigned char>(text[at]) < 0x20 && text[at] != '\n') return "a control character: " + here;
      ++at;
    }
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

/// The picture, checked to be one.
std::string picture(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "draw");
  std::string svg = output_of(arguments);
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", 0), 0u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
  EXPECT_LT(svg.size(), 200000u);
  return svg;
}

/// What attune draw says of what it cannot draw.
std::string no_picture(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "draw");
  const CommandResult result = run_attune(std::move(arguments));
  EXPECT_EQ(result.output, "");
  return refusal(result);
}

TEST(Draw, TheCheckOfXmlFindsWhatIsWrong) {
  EXPECT_EQ(xml_error("<svg a=\"1\"><path d=\"M0 0\"/><text>a &amp; b</text></svg>\n"), "");
  for (const char* wrong : {"<svg>", "</svg>", "<svg><g></svg></g>", "<svg a=1></svg>", "<svg>a & b</svg>", "<svg",
                            "<svg>a < b</svg>", "<svg>\x01</svg>", "<svg>\xff</svg>"})
    EXPECT_NE(xml_error(wrong), "") << wrong;
}

TEST(Draw, Positions) {
  EXPECT_THAT(picture({"positions", "--length", "8", "--d-model", "6"}), HasSubstr("sin(pos / 10000^"));
  EXPECT_THAT(picture({"positions", "--kind", "rotary", "--d-head", "8"}), HasSubstr("pair i"));
  EXPECT_THAT(picture({"positions", "--kind", "alibi", "--heads", "4"}), HasSubstr("slope 0.0625"));
  EXPECT_THAT(picture({"positions", "--kind", "relative", "--clip", "3"}), HasSubstr("clipped at 3"));
  EXPECT_LT(picture({"positions", "--length", "128", "--d-model", "128"}).size(), 100000u);
  EXPECT_EQ(picture({"positions"}), picture({"positions"}));
}

TEST(Draw, MasksCountTheirPairs) {
  EXPECT_THAT(picture({"mask", "--length", "8"}), HasSubstr("64 of 64 pairs"));
  EXPECT_THAT(picture({"mask", "--length", "8", "--causal"}), HasSubstr("36 of 64 pairs"));
  EXPECT_THAT(picture({"mask", "--length", "8", "--pattern", "window", "--size", "2"}), HasSubstr("22 of 64 pairs"));
  EXPECT_THAT(picture({"mask", "--length", "8", "--pattern", "strided", "--stride", "2", "--causal"}),
              HasSubstr("27 of 64 pairs"));  // the 8 + 7 of |i - j| < 2, and 6 + 4 + 2 at even distances
  const std::string padded = picture({"mask", "--lengths", "3,5"});
  EXPECT_THAT(padded, HasSubstr("9 of 9 pairs"));
  EXPECT_THAT(padded, HasSubstr("25 of 25 pairs"));
  EXPECT_THAT(padded, HasSubstr(">padding<"));
}

TEST(Draw, Schedules) {
  const std::string all = picture({"schedule"});
  for (const char* kind : {"noam", "inverse_sqrt", "cosine", "linear", "constant"})
    EXPECT_THAT(all, HasSubstr(std::string(">") + kind + "<"));
  EXPECT_THAT(picture({"schedule", "--schedules", "noam", "--log-x", "--log-y"}), Not(HasSubstr(">cosine<")));
  const TemporaryFolder folder;  // the legend cuts long paths
  std::filesystem::copy(source_dir() / "examples/demo.toml", folder.path());
  EXPECT_THAT(picture({"schedule", (folder / "demo.toml").string()}), HasSubstr("demo.toml: "));
}

TEST(Draw, SchedulesOfEpochsHaveAsManyStepsAsIsSaid) {
  const TemporaryFolder folder;
  const std::string config = folder / "run.toml";
  const auto drawn = [&](const std::string& limits, std::vector<std::string> more = {}) {
    write_file(config, "[schedule]\nkind = \"linear\"\nwarmup_steps = 10\n[train]\n" + limits);
    more.insert(more.begin(), {"schedule", config});
    return picture(more);
  };
  const std::string expected = drawn("steps = 500\n");
  EXPECT_EQ(drawn("epochs = 3\nsteps = 0\n", {"--steps", "500"}), expected);
  EXPECT_EQ(drawn("epochs = 3\n", {"--steps", "500"}), expected);
  EXPECT_EQ(drawn("epochs = 3\nsteps = 500\n", {"--steps", "600"}), expected) << "training ends there too";
  EXPECT_EQ(drawn("epochs = 3\nsteps = 600\n", {"--steps", "500"}), expected);
  EXPECT_THAT(no_picture({"schedule", config}),
              HasSubstr("run.toml: train.epochs = 3: how many steps these are depends on the text; --steps says it"));
  EXPECT_THAT(no_picture({"schedule", config, "--steps", "1"}), HasSubstr("--steps 1: needs 2 to "));
}

TEST(Draw, BlocksShowWhereTheNormStands) {
  // Of two stacks with five sublayers; pre-norm has one more after each stack.
  EXPECT_EQ(count_of(picture({"block", "--set", "model.norm=post"}), ">LayerNorm<"), 5u);
  EXPECT_EQ(count_of(picture({"block", "--set", "model.norm=pre"}), ">LayerNorm<"), 7u);
  EXPECT_THAT(picture({"block", "--preset", "transformer-base"}), HasSubstr("ReLU, 512 to 2048 to 512"));
  const std::string llama = picture({"block", "--preset", "llama-style-small"});
  for (const char* part : {"RMSNorm", "SwiGLU", "rotary", "Masked multi-head attention", "next token"})
    EXPECT_THAT(llama, HasSubstr(part));
  EXPECT_THAT(picture({"block", "--preset", "transformer-base-latent"}), HasSubstr("latent of 128"));
  EXPECT_THAT(picture({"block", "--preset", "bert-base"}), HasSubstr("Linear, tanh"));
  const std::string changed = picture({"block", "--preset", "bert-base", "--set", "model.norm=pre"});
  for (const char* part : {"pre-norm: x + sublayer(norm(x))", "30522 to 768", "768 to 2 labels"})
    EXPECT_THAT(changed, HasSubstr(part));
  const std::string sandwich = picture({"block", "--set", "model.norm=sandwich"});
  EXPECT_EQ(count_of(sandwich, ">LayerNorm<"), 12u);
  EXPECT_THAT(sandwich, HasSubstr("x + norm(sublayer(norm(x)))"));
  EXPECT_THAT(picture({"block", "--set", "model.architecture=decoder_lm", "--set", "model.parallel_residual=true"}),
              HasSubstr("both read the layer"));
}

TEST(Draw, BlocksAndInspectSayWhichLayersAreLocal) {
  const TemporaryFolder folder;
  const std::string config = folder / "lm.toml";
  write_file(config,
             "[model]\narchitecture = \"decoder_lm\"\nlayers = 5\npositions = \"none\"\nlocal_window = 32\n"
             "layer_attention = [\"local\", \"local\", \"local\", \"global\", \"local\"]\n");
  const std::string local = "layers 1 to 3, 5: window, size 32, positions rotary";
  EXPECT_THAT(output_of({"inspect", config}), HasSubstr("  local attention     " + local + "\n"));
  EXPECT_THAT(output_of({"inspect", "--preset", "gpt2-124m"}), Not(HasSubstr("local")));
  std::string text = std::regex_replace(picture({"block", config}), std::regex("<[^>]*>"), "");
  std::ranges::replace(text, '\n', ' ');  // words stand in several lines
  EXPECT_THAT(text, HasSubstr("local in " + local));
}

TEST(Draw, BlocksEndAsTheirModelsDo) {
  const std::string regression =
      picture({"block", "--set", "model.architecture=encoder_classifier", "--set", "model.label_scores=none"});
  EXPECT_THAT(regression, HasSubstr(">number<"));
  EXPECT_THAT(regression, Not(HasSubstr(">Softmax<")));
  const TemporaryFolder folder;
  write_small_embedder(folder / "embedder");
  const std::string embedder = (folder / "embedder").string(), states = picture({"block", embedder});
  EXPECT_THAT(states, HasSubstr(">states<"));
  EXPECT_THAT(states, Not(HasSubstr(">Softmax<")));
  EXPECT_THAT(no_picture({"block", embedder, "--set", "model.norm=post"}), HasSubstr("is the folder of a model"));
}

TEST(Draw, AttentionOfAModel) {
  const TemporaryFolder folder;
  write_small_model(folder / "model");
  const std::string model = (folder / "model").string();
  const std::string svg = picture({"attention", model, "The dog."});
  EXPECT_THAT(svg, HasSubstr("Cross-attention, layer 2 of 2"));
  EXPECT_THAT(svg, HasSubstr(">head 4<"));
  EXPECT_THAT(svg, Not(HasSubstr(">head 0<")));
  EXPECT_THAT(picture({"attention", model, "a < b & \"c\" \x01", "--kind", "encoder", "--layer", "1"}),
              HasSubstr("Encoder self-attention, layer 1 of 2"));
  EXPECT_THAT(no_picture({"attention", model, "The dog.", "--layer", "3"}), HasSubstr("--layer 3: needs 1 to 2"));
  EXPECT_THAT(no_picture({"attention", model, "The dog.", "--layer", "0"}), HasSubstr("--layer 0: needs 1 to 2"));
  EXPECT_THAT(no_picture({"attention", model, "The dog.", "--kind", "both"}), HasSubstr("encoder, decoder, cross"));
  write_small_language_model(folder / "lm");
  EXPECT_THAT(picture({"attention", (folder / "lm").string(), "The dog."}), HasSubstr("Self-attention, layer"));
  write_small_classifier(folder / "classifier");
  EXPECT_THAT(picture({"attention", (folder / "classifier").string(), "The dog."}), HasSubstr(">head 1<"));
  EXPECT_THAT(no_picture({"attention", (folder / "none").string(), "a"}), HasSubstr("none"));
  write_small_embedder(folder / "embedder");
  EXPECT_THAT(no_picture({"attention", (folder / "embedder").string(), "a"}),
              HasSubstr("\"encoder\" cannot be drawn\n"));
}

TEST(Draw, AttentionOfALongTextIsRefusedInTokens) {
  const TemporaryFolder folder;
  write_small_model(folder / "model");
  const std::string model = (folder / "model").string();
  const Translator translator = Translator::load(model);
  const auto tokens = [&](const std::string& text) { return translator.source_tokenizer().encode(text).size(); };
  std::string longest;
  while (tokens(longest + "a ") < 128) longest += "a ";  // with eos, or with the start token, at most 128
  const std::string longer = longest + "a ";
  const std::string reads =
      fmt::format("the model reads {} tokens, at most 128 can be drawn; attune inspect --attention shows up to 200\n",
                  tokens(longer) + 1);
  EXPECT_EQ(no_picture({"attention", model, longer}), "attune: text: " + reads);
  EXPECT_EQ(no_picture({"attention", model, "a", "--target", longer}), "attune: --target: " + reads);
  EXPECT_THAT(output_of({"draw", "attention", model, longest, "--target", longest}), HasSubstr("Cross-attention"));
}

TEST(Draw, MetricsOfRuns) {
  const TemporaryFolder folder;
  for (const std::string run : {"a", "b"}) {
    make_directories(folder / run);
    write_file(folder / run / "metrics.jsonl",
               "{\"step\":1,\"time\":1.5,\"loss\":4.5}\n{\"step\":2,\"time\":2.5,\"loss\":null}\n"
               "{\"step\":3,\"time\":2.5,\"loss\":2.5,\"valid_loss\":2.75}\n{\"step\":4,\"los");
  }
  const std::string a = (folder / "a").string(), b = (folder / "b").string();
  EXPECT_THAT(picture({"metrics", a}), HasSubstr(">valid_loss<"));
  EXPECT_THAT(picture({"metrics", a, b, "--values", "loss", "--log-y"}), HasSubstr("/b loss<"));
  write_file(folder / "b" / "metrics.jsonl",
             "{\"step\":1,\"loss\":4.5,\"guided_loss\":0.5}\n{\"step\":2,\"loss\":4,\"guided_loss\":0.25}\n");
  EXPECT_THAT(picture({"metrics", b, "--values", "loss,guided_loss"}), HasSubstr("loss, guided_loss")) << "one panel";
  write_file(folder / "b" / "metrics.jsonl",
             "{\"step\":1,\"time\":null,\"loss\":4}\n{\"step\":2,\"time\":60,\"loss\":3}\n"
             "{\"step\":3,\"time\":\"\",\"loss\":3}\n{\"step\":4,\"time\":120,\"loss\":2}\n");
  EXPECT_THAT(picture({"metrics", b, "--x", "time"}), HasSubstr(">minutes<")) << "lines without a time are left out";
  EXPECT_THAT(no_picture({"metrics", a, "--values", "bleu"}), HasSubstr("has no \"bleu\", but loss, valid_loss"));
  EXPECT_THAT(no_picture({"metrics", (folder / "c").string()}), HasSubstr("/c"));
  write_file(folder / "b" / "metrics.jsonl", "{\"loss\":1}\n");
  EXPECT_THAT(no_picture({"metrics", b}), HasSubstr("metrics.jsonl:1: needs an object with a whole number \"step\""));
  write_file(std::filesystem::path(b) / "metrics.jsonl", "{\"step\": 1e300, \"loss\": 1}\n");
  EXPECT_THAT(no_picture({"metrics", b}), HasSubstr("metrics.jsonl:1: needs an object with a whole number \"step\""));
  write_file(folder / "b" / "metrics.jsonl", "hello\n");
  EXPECT_THAT(no_picture({"metrics", b}), HasSubstr("metrics.jsonl:1"));
}

// Fonts draw an ideograph as wide as it is high.
TEST(Draw, WideCharactersStayInThePicture) {
  const TemporaryFolder folder;
  std::string name;
  for (int i = 0; i < 30; ++i) name += "字";
  std::filesystem::copy(source_dir() / "examples/demo.toml", folder / (name + ".toml"));
  const std::string go = "cd " + folder.path().string() + " && " + attune_binary() + " draw schedule " + name + ".toml";
  const CommandResult result = run_command({"sh", "-c", go});
  EXPECT_EQ(result.errors, "");
  std::smatch width, place;
  ASSERT_TRUE(std::regex_search(result.output, width, std::regex("viewBox=\"0 0 ([0-9]+) ")));
  ASSERT_TRUE(std::regex_search(result.output, place, std::regex("<text x=\"([0-9.]+)\"[^>]*>" + name)));
  EXPECT_GE(std::stod(width[1]), std::stod(place[1]) + 30 * 12);
}

TEST(Draw, WhatCannotBeDrawnIsSaidInOneLine) {
  EXPECT_THAT(no_picture({}), HasSubstr("see --help"));
  EXPECT_THAT(no_picture({"poem"}), HasSubstr("see --help"));
  EXPECT_THAT(no_picture({"positions", "--kind", "magic"}), HasSubstr("sinusoidal, rotary, alibi, relative"));
  EXPECT_THAT(no_picture({"positions", "--length", "0"}), HasSubstr("--length 0: needs 1 to 128"));
  EXPECT_THAT(no_picture({"positions", "--length", "1000000000000"}), HasSubstr("needs 1 to 128"));
  EXPECT_THAT(no_picture({"positions", "--d-model", "7"}), HasSubstr("7"));
  EXPECT_THAT(no_picture({"positions", "--base", "0"}), HasSubstr("--base 0"));
  EXPECT_THAT(no_picture({"mask", "--pattern", "dense"}),
              HasSubstr("attune: --pattern: is \"dense\", needs one of full, window, strided, fixed"));
  EXPECT_THAT(no_picture({"mask", "--pattern", "fixed", "--stride", "2", "--summary", "3"}), HasSubstr("summary = 3"));
  EXPECT_THAT(no_picture({"mask", "--lengths", "3,0"}), HasSubstr("--lengths 0"));
  EXPECT_THAT(no_picture({"schedule", "--schedules", "noam,warp"}), HasSubstr("warp"));
  EXPECT_THAT(no_picture({"schedule", "--warmup", "0"}), HasSubstr("--warmup 0"));
  EXPECT_THAT(no_picture({"schedule", "no-such.toml"}), HasSubstr("no-such.toml"));
  EXPECT_THAT(no_picture({"block", "--preset", "transformer-bass"}), HasSubstr("did you mean \"transformer-base\"?"));
  EXPECT_THAT(no_picture({"block", "--preset", "bert-base", "--set", "model.nrom=pre"}), HasSubstr("nrom"));
  EXPECT_THAT(no_picture({"mask", "--out", "/no/such/folder/a.svg"}), HasSubstr("/no/such/folder"));
}

TEST(Draw, OptionsThatWouldDoNothingAreRefused) {
  const std::string demo = (source_dir() / "examples/demo.toml").string();
  EXPECT_THAT(no_picture({"schedule", demo, "--schedules", "noam"}), HasSubstr("--schedules is not for " + demo));
  EXPECT_THAT(no_picture({"schedule", demo, "--steps", "7"}), HasSubstr("which has train.steps = "));
  EXPECT_THAT(no_picture({"positions", "--kind", "alibi", "--d-model", "64"}),
              HasSubstr("--d-model is not for --kind alibi"));
  EXPECT_THAT(no_picture({"positions", "--clip", "3"}), HasSubstr("--clip is not for --kind sinusoidal"));
  EXPECT_THAT(no_picture({"positions", "--kind", "relative", "--base", "3"}), HasSubstr("--base is not for"));
  EXPECT_THAT(no_picture({"mask", "--size", "3"}), HasSubstr("--size is not for --pattern full"));
  EXPECT_THAT(no_picture({"mask", "--pattern", "window", "--stride", "3"}), HasSubstr("--stride is not for"));
  EXPECT_THAT(no_picture({"mask", "--lengths", "5,12", "--length", "3"}), HasSubstr("--length is not for --lengths"));
}

TEST(Draw, HelpHasExamples) {
  for (const std::string kind : {"positions", "mask", "schedule", "block", "attention", "metrics"})
    EXPECT_THAT(output_of({"draw", kind, "--help"}), HasSubstr("Examples:\n  attune draw " + kind + " "));
}

TEST(BenchAttention, MemoryAndSparseWorkGrowLinearly) {
  const TemporaryFolder folder;
  const std::string chart = (folder / "chart.svg").string();
  const Json json = Json::parse(
      output_of({"bench", "attention", "--lengths", "512,1024", "--patterns", "full,window", "--size", "64", "--heads",
                 "2", "--d-head", "16", "--causal", "--repeats", "1", "--json", "--svg", chart}));
  EXPECT_EQ(xml_error(read_file(chart)), "");
  EXPECT_EQ(json["heads"], 2);
  EXPECT_EQ(json["causal"], true);
  ASSERT_EQ(json["results"].size(), 4u);
  for (const Json& row : json["results"]) {
    const auto length = row["length"].get<int64_t>(), pairs = row["pairs"].get<int64_t>();
    EXPECT_GT(row["forward_ms"].get<double>(), 0);
    EXPECT_GT(row["forward_backward_ms"].get<double>(), 0);
    EXPECT_GE(row["forward_bytes"].get<int64_t>(), length * 2 * 16 * 4);  // the output
    EXPECT_GT(row["forward_backward_bytes"].get<int64_t>(), row["forward_bytes"].get<int64_t>());
    EXPECT_GE(row["score_entries"].get<int64_t>(), pairs);
    EXPECT_EQ(pairs, 2 * (row["pattern"] == "full" ? length * (length + 1) / 2 : 64 * length - 63 * 64 / 2));
  }
  const auto& results = json["results"];
  const auto ratio = [&](size_t pattern, const char* field) {
    return results[2 + pattern][field].get<double>() / results[pattern][field].get<double>();
  };
  for (const size_t pattern : {0u, 1u}) {
    EXPECT_LT(ratio(pattern, "forward_bytes"), 2.3);
    EXPECT_LT(ratio(pattern, "forward_backward_bytes"), 2.3);
  }
  EXPECT_GT(ratio(0, "score_entries"), 3.5);
  EXPECT_LT(ratio(1, "score_entries"), 2.2);
}

TEST(BenchAttention, RefusesWhatCannotBe) {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{{"--lengths", "0"},
                                                                                       {"--patterns", "dense"},
                                                                                       {"--heads", "0"},
                                                                                       {"--repeats", "0"},
                                                                                       {"--size", "0"},
                                                                                       {"--lengths", "16777216"}}) {
    std::vector<std::string> arguments = {"bench", "attention", "--d-head", "1024"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const CommandResult result = run_attune(arguments);
    EXPECT_GT(result.status, 0);
    EXPECT_EQ(split_lines(result.errors).size(), 1u) << result.errors;
  }
}

TEST(BenchDecode, CountsTheCacheOfEachKind) {
  const TemporaryFolder folder;
  const std::string chart = (folder / "chart.svg").string();
  const std::vector<std::string> words = {
      "bench",    "decode", "--contexts", "20,300", "--batch", "1,3",   "--d-model",    "32", "--heads",      "4",
      "--layers", "2",      "--d-ff",     "64",     "--vocab", "50",    "--latent-dim", "12", "--rotary-dim", "4",
      "--steps",  "1",      "--repeats",  "1",      "--json",  "--svg", chart};
  const Json json = Json::parse(output_of(words));
  EXPECT_EQ(xml_error(read_file(chart)), "");
  ASSERT_EQ(json["results"].size(), 16u);
  for (const Json& row : json["results"]) {
    const std::string kind = row["kind"];
    const int64_t numbers = kind == "standard" ? 64 : kind == "grouped" ? 32 : 16;
    EXPECT_EQ(row["cache_bytes_per_token"].get<int64_t>(), 2 * numbers * 4) << kind;
    EXPECT_EQ(row["cache_bytes"].get<int64_t>(),
              2 * numbers * 4 * row["context"].get<int64_t>() * row["batch"].get<int64_t>());
    EXPECT_GT(row["tokens_per_s"].get<double>(), 0);
  }
  const CommandResult result = run_attune({"bench", "decode", "--kinds", "other"});
  EXPECT_GT(result.status, 0);
  EXPECT_EQ(split_lines(result.errors).size(), 1u) << result.errors;
}

TEST(BenchDecode, ExpertsAreMoreWeightsAndTheSameCache) {
  std::vector<std::string> words = {"bench",     "decode", "--contexts", "20",      "--batch",         "1",
                                    "--d-model", "32",     "--heads",    "4",       "--layers",        "2",
                                    "--d-ff",    "64",     "--vocab",    "50",      "--steps",         "1",
                                    "--repeats", "1",      "--json",     "--kinds", "standard,experts"};
  const Json results = Json::parse(output_of(words))["results"];
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1]["cache_bytes"], results[0]["cache_bytes"]);
  // Eight experts of half the width in each of two layers are 3 dense networks of 2 x 32 x 64 numbers more.
  EXPECT_GT(results[1]["model_bytes"].get<int64_t>() - results[0]["model_bytes"].get<int64_t>(),
            2 * 3 * 2 * 32 * 64 * 4);
  words.insert(words.end(), {"--experts-per-token", "3"});
  EXPECT_EQ(split_lines(run_attune(words).errors),
            std::vector<std::string>{"attune: --d-ff 64: must be divisible by --experts-per-token 3"});
}

}  // namespace
}  // namespace attune

// generate, classify, evaluate and inspect as their users run them, on language models and classifiers with random
// weights.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numbers>
#include <regex>

#include "attune/base/json_fields.h"
#include "attune/inference/classifier.h"
#include "attune/inference/text_generator.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TextModelsCliTest : public CliFixture {
 protected:
  static void SetUpTestSuite() {
    CliFixture::SetUpTestSuite();
    write_small_language_model(*shared_ / "lm");
    write_small_classifier(*shared_ / "classifier");
  }

  const std::string lm_ = (*shared_ / "lm").string(), classifier_ = (*shared_ / "classifier").string();
};

TEST_F(TextModelsCliTest, GenerateSaysWhatTheLibrarySays) {
  const TextGenerator generator = TextGenerator::load(lm_);
  SamplingConfig sampling = generator.sampling();
  EXPECT_EQ(sampling.max_tokens, 40) << "from generation_config.json";
  const auto ended = [](const std::string& text) { return text.ends_with('\n') ? text : text + "\n"; };
  const std::string text = generator.generate("The dog").text;
  EXPECT_EQ(output_of({"generate", lm_, "--prompt", "The dog"}), ended(text));
  EXPECT_EQ(output_of({"generate", lm_, "--prompt", "The dog", "--echo"}), ended("The dog" + text));
  EXPECT_EQ(output_of({"generate", lm_, "The dog"}), ended(text));
  EXPECT_EQ(
      output_of({"generate", "The dog", lm_}, "", "attune: the model, " + lm_ + ", is expected before the text\n"),
      ended(text));
  EXPECT_EQ(output_of({"generate", lm_}, "The dog\n"), ended(text)) << "the line end of the input is no prompt";
  EXPECT_EQ(output_of({"generate", lm_, "--file", file("prompt", "The dog\n")}), ended(text));
  EXPECT_EQ(output_of({"generate", lm_}, ""), ended(generator.generate("").text));

  GenerateOptions options;
  options.sampling = SamplingConfig{.repetition_penalty = 1.2,
                                    .temperature = 0.7,
                                    .top_k = 9,
                                    .top_p = 0.9,
                                    .min_p = 0.01,
                                    .max_tokens = 70,
                                    .seed = 5,
                                    .slide = true};
  EXPECT_EQ(
      output_of({"generate", lm_, "--prompt", "A", "--repetition-penalty", "1.2", "--temperature", "0.7", "--top-k",
                 "9", "--top-p", "0.9", "--min-p", "0.01", "--max-tokens", "70", "--seed", "5", "--slide"}),
      ended(generator.generate("A", options).text));
}

TEST_F(TextModelsCliTest, GenerateWritesSeveralTexts) {
  const TextGenerator generator = TextGenerator::load(lm_);
  GenerateOptions options;
  options.samples = 3;
  options.sampling = SamplingConfig{.max_tokens = 12};
  const std::vector<std::string> prompts = {"[a, b]", "The {}"};
  const auto expected = generator.generate(prompts, options);
  const std::vector<std::string> arguments = {"generate", lm_,   "--prompt", prompts[0],     "--prompt",
                                              prompts[1], "--n", "3",        "--max-tokens", "12"};
  auto with_json = arguments;
  with_json.push_back("--json");
  const CommandResult found = run_attune(with_json);
  EXPECT_THAT(found.errors, HasSubstr("prompt 1: 2 of its 6 tokens are unknown to the model"));
  const auto lines = json_lines(found.output);
  ASSERT_EQ(lines.size(), 6u);
  std::string plain;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(lines[i].at("prompt"), prompts[i / 3]);
    EXPECT_EQ(lines[i].at("sample"), i % 3);
    EXPECT_EQ(lines[i].at("text"), expected[i].text);
    EXPECT_EQ(lines[i].at("tokens"), Json(expected[i].tokens));
    EXPECT_EQ(lines[i].at("finish_reason"), enum_name(expected[i].finish_reason));
    plain += (i > 0 ? "---\n" : "") + expected[i].text + (expected[i].text.ends_with('\n') ? "" : "\n");
  }
  EXPECT_EQ(run_attune(arguments).output, plain);
}

TEST_F(TextModelsCliTest, GenerateStops) {
  const TextGenerator generator = TextGenerator::load(lm_);
  const std::string text = generator.generate("The dog").text;
  ASSERT_GT(text.size(), 12u);
  const std::string stop = text.substr(6, 3);
  const auto json = json_lines(
      output_of({"generate", lm_, "--prompt", "The dog", "--stop", "[never, this]", "--stop", stop, "--json"}));
  EXPECT_EQ(json.at(0).at("text"), text.substr(0, text.find(stop)));
  EXPECT_EQ(json.at(0).at("finish_reason"), "stop");

  const CommandResult full = run_attune({"generate", lm_, "--prompt", "The dog", "--max-tokens", "500"});
  EXPECT_EQ(full.status, 0);
  EXPECT_EQ(full.errors, "attune: the text ends where the model's context of 48 tokens does; --slide goes on\n");
}

TEST_F(TextModelsCliTest, AnInterruptedTextStays) {
  const std::string out = (folder_ / "out").string();
  const std::string script = fmt::format(
      "set -m; '{}' generate '{}' --prompt The --max-tokens 9000000 --slide > '{}' & p=$!; "
      "for i in $(seq 600); do [ -s '{}' ] && break; sleep 0.1; done; kill -INT $p; wait $p",
      attune_binary(), lm_, out, out);
  // Without job control (set -m), a shell's job in the background ignores SIGINT.
  const CommandResult result = run_command({"bash", "-c", script});
  EXPECT_EQ(result.status, 130) << result.errors;
  EXPECT_GT(read_file(out).size(), 0u);
  EXPECT_EQ(read_file(out).back(), '\n');
  EXPECT_THAT(result.errors, ::testing::Not(HasSubstr("attune: "))) << "the shell alone reports its job";
}

TEST_F(TextModelsCliTest, ADraftChangesNoGreedyText) {
  const std::string model = (*shared_ / "lm").string(), draft = (folder_ / "draft").string();
  write_small_language_model(draft, TextUnit::stream, 2);
  const std::vector<std::string> arguments = {"generate", model, "--prompt", "The dog", "--temperature", "0", "--json"};
  std::vector<std::string> with = arguments;
  with.insert(with.end(), {"--draft", draft, "--draft-tokens", "3"});
  EXPECT_EQ(output_of(with), output_of(arguments));
  with.back() = "0";
  EXPECT_THAT(refusal_of(with), HasSubstr("draft_tokens = 0"));
  EXPECT_THAT(refusal_of({"generate", model, "--prompt", "a", "--draft", (*shared_ / "classifier").string()}),
              HasSubstr("decoder_lm"));
}

TEST_F(TextModelsCliTest, GenerateRefusals) {
  EXPECT_THAT(refusal_of({"generate", lm_, "--prompt", "a", "--draft-tokens", "3"}),
              HasSubstr("--draft-tokens 3: needs --draft"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--temperature", "-1"}), HasSubstr("temperature = -1"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--top-p", "0"}), HasSubstr("top_p = 0"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--n", "0"}), HasSubstr("--n 0"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--stop", ""}), HasSubstr("stop string"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--prompt", "a", "--file", "b"}), HasSubstr("give one of them"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--file", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--prompt", "\xFF"}), HasSubstr("--prompt: is not valid UTF-8"));
  EXPECT_THAT(refusal_of({"generate", lm_}, "ok\n\xFF\n"), HasSubstr("standard input:2"));
  EXPECT_THAT(refusal_of({"generate", lm_, "--prompt", std::string(49, 'a')}),
              HasSubstr("has 49 tokens, the model's context_length is 48"));
  EXPECT_THAT(refusal_of({"generate", classifier_}),
              HasSubstr("architecture is \"encoder_classifier\", generation needs \"decoder_lm\" (attune classify"));
  EXPECT_THAT(refusal_of({"translate", lm_, "a"}), HasSubstr("(attune generate runs it)"));
  EXPECT_THAT(refusal_of({"classify", lm_, "a"}), HasSubstr("classification needs \"encoder_classifier\""));
}

TEST_F(TextModelsCliTest, ClassifySaysWhatTheLibrarySays) {
  const Classifier classifier = Classifier::load(classifier_);
  const std::vector<std::string> texts = {"The dog sleeps.", "", "[the dog, the cat]", "A cat sees the house."};
  const std::vector<Classification> expected = classifier.classify(texts);
  std::string plain, top;
  for (const Classification& result : expected) {
    const auto part = [&](size_t i) {
      return fmt::format("{}\t{:.4f}", classifier.labels()[static_cast<size_t>(result.labels[i].label)],
                         result.labels[i].probability);
    };
    plain += part(0) + "\n";
    top += part(0) + "\t" + part(1) + "\n";
  }
  EXPECT_EQ(output_of({"classify", classifier_}, joined(texts)), plain);
  EXPECT_EQ(output_of({"classify", classifier_, "--top", "2", "--batch-size", "1"}, joined(texts)), top);
  std::vector<std::string> arguments = {"classify", classifier_, "--top", "2"};
  arguments.insert(arguments.end(), texts.begin(), texts.end());
  EXPECT_EQ(output_of(arguments), top);
  const std::string out = (folder_ / "out").string();
  EXPECT_EQ(output_of({"classify", classifier_, "--file", file("texts", joined(texts)), "--output", out}), "");
  EXPECT_EQ(read_file(out), plain);

  const auto lines = json_lines(output_of({"classify", classifier_, "--json"}, joined(texts)));
  const auto two = json_lines(output_of({"classify", classifier_, "--json", "--top", "2"}, "A dog.\n"));
  EXPECT_EQ(two.at(0).at("labels").size(), 2u);
  ASSERT_EQ(lines.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(lines[i].at("text"), texts[i]);
    EXPECT_EQ(lines[i].at("labels").size(), 3u);
    const std::string label = lines[i].at("label");
    EXPECT_EQ(lines[i].at("labels").at(label), lines[i].at("probability"));
    EXPECT_NEAR(lines[i].at("probability").get<double>(), expected[i].labels[0].probability, 1e-6);
  }
}

TEST_F(TextModelsCliTest, LongTextsAreCutWithANote) {
  std::string text;
  for (const std::string& line : small_text(10)) text += line + " ";
  const CommandResult result = run_attune({"classify", classifier_, text, "The dog."});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(split_lines(result.output).size(), 2u);
  EXPECT_EQ(result.errors, "attune: 1 of 2 texts was cut: the model reads 24 tokens, with bos and eos\n");
}

TEST_F(TextModelsCliTest, EmbeddedTextsAreCutWithANote) {
  std::string text;
  for (const std::string& line : small_text(10)) text += line + " ";
  const CommandResult result = run_attune({"embed", classifier_, text, "The dog."});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.errors, "attune: 1 of 2 texts was cut: the model reads 24 tokens, with bos and eos\n");
  const auto lines = json_lines(result.output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_GT(lines[0].at("cut_tokens").get<int64_t>(), 0);
  EXPECT_FALSE(lines[1].contains("cut_tokens"));
  EXPECT_EQ(run_attune({"embed", classifier_, "The dog."}).errors, "");
}

TEST_F(TextModelsCliTest, ClassifyRefusals) {
  EXPECT_THAT(refusal_of({"classify", classifier_, "--top", "0", "a"}), HasSubstr("--top 0"));
  EXPECT_THAT(refusal_of({"classify", classifier_, "--batch-size", "0", "a"}), HasSubstr("--batch-size 0"));
  EXPECT_THAT(refusal_of({"classify", classifier_, "--file", "b", "a"}), HasSubstr("give one of them"));
  EXPECT_THAT(refusal_of({"classify", classifier_}, "\xFF\n"), HasSubstr("standard input:1"));
}

TEST_F(TextModelsCliTest, EvaluateMeasuresAClassifier) {
  const std::vector<std::string> texts = small_text(30), labels = {"bad", "good", "so so"};
  const Classifier classifier = Classifier::load(classifier_);
  const auto results = classifier.classify(texts);
  std::string tsv, jsonl;
  int64_t right = 0;
  std::map<std::pair<size_t, size_t>, int64_t> confusion;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t label = i % 3, predicted = static_cast<size_t>(results[i].labels[0].label);
    right += label == predicted ? 1 : 0;
    ++confusion[{label, predicted}];
    tsv += labels[label] + "\t" + texts[i] + "\n";
    jsonl += Json({{"stars", labels[label]}, {"review", texts[i]}}).dump() + "\n";
  }
  const std::string data = file("test.tsv", tsv);
  const Json json = Json::parse(output_of({"evaluate", classifier_, "--data", data, "--json"}));
  EXPECT_EQ(json.at("texts"), 30);
  EXPECT_NEAR(json.at("accuracy").get<double>(), static_cast<double>(right) / 30, 1e-9);
  for (size_t r = 0; r < 3; ++r)
    for (size_t c = 0; c < 3; ++c) EXPECT_EQ(json.at("confusion").at("matrix")[r][c], (confusion[{r, c}]));
  EXPECT_EQ(json.at("labels").at("so so").at("support"), 10);
  const Json other = Json::parse(output_of({"evaluate", classifier_, "--data", file("other", jsonl), "--format",
                                            "jsonl", "--label-field", "stars", "--text-field", "review", "--json"}));
  EXPECT_EQ(other, json);
  const std::string table = output_of({"evaluate", classifier_, "--data", data});
  for (const char* row : {"accuracy ", "macro F1 ", "nats a text", "3 so so ", "Right label (row)"})
    EXPECT_THAT(table, HasSubstr(row));

  const std::string html = (folder_ / "labels.html").string(), svg = (folder_ / "labels.svg").string();
  EXPECT_EQ(output_of({"evaluate", classifier_, "--data", data, "--confusion", html}), table);
  EXPECT_THAT(read_file(html), AllOf(HasSubstr("<svg "), HasSubstr("<th>so so</th>"),
                                     HasSubstr(fmt::format("<tr><th>bad</th><td>{}</td><td>{}</td><td>{}</td></tr>",
                                                           confusion[{0, 0}], confusion[{0, 1}], confusion[{0, 2}]))));
  output_of({"evaluate", classifier_, "--data", data, "--confusion", svg});
  const std::string drawn = read_file(svg), legend = "1   share of the label's texts";
  EXPECT_THAT(drawn, AllOf(HasSubstr("<svg "), HasSubstr("so so")));
  std::smatch width, place;
  ASSERT_TRUE(std::regex_search(drawn, width, std::regex("viewBox=\"0 0 ([0-9]+) ")));
  ASSERT_TRUE(std::regex_search(drawn, place, std::regex("<text x=\"([0-9.]+)\"[^>]*>" + legend + "<")));
  EXPECT_GE(std::stod(width[1]), std::stod(place[1]) + 11 * 0.56 * static_cast<double>(legend.size()))
      << "the legend is wider than the cells of three labels";
  EXPECT_THAT(refusal_of({"evaluate", classifier_, "--data", data, "--confusion", data}),
              HasSubstr(data + ": is an input too"));
  EXPECT_THAT(refusal_of({"evaluate", classifier_, "--data", data, "--confusion", "labels.png"}),
              HasSubstr("--confusion labels.png: needs .html or .svg"));
}

TEST_F(TextModelsCliTest, ARegressionIsTrainedMeasuredAndRun) {
  std::string train, scored;
  const std::vector<std::string> texts = small_text(30);
  for (size_t i = 0; i < texts.size(); ++i)
    train += fmt::format("{}\t{}\n", 2.5 + static_cast<double>(i % 5) / 4, texts[i]);
  const std::string data = file("train.tsv", train), run = (folder_ / "run").string(), model = run + "/model";
  const CommandResult trained = run_attune({"train",
                                            "--out",
                                            run,
                                            "--set",
                                            "model.architecture=encoder_classifier",
                                            "--set",
                                            "model.label_scores=none",
                                            "--set",
                                            "model.d_model=16",
                                            "--set",
                                            "model.heads=2",
                                            "--set",
                                            "model.layers=1",
                                            "--set",
                                            "model.d_ff=16",
                                            "--set",
                                            "data.train_files=" + data,
                                            "--set",
                                            "data.valid_files=" + data,
                                            "--set",
                                            "data.tokenizer_type=whitespace",
                                            "--set",
                                            "train.steps=5"});
  EXPECT_EQ(trained.status, 0);
  for (const char* part : {", a regression: score\n", "  Pearson ", "  Spearman ", "best validation: Pearson "})
    EXPECT_THAT(trained.errors, HasSubstr(part));
  for (const char* part : {"nll", "perplexity", "accuracy"})
    EXPECT_THAT(trained.errors, ::testing::Not(HasSubstr(part)));

  const Json json = Json::parse(output_of({"evaluate", model, "--data", data, "--json"}));
  const Json last = json_lines(read_file(run + "/metrics.jsonl")).back();
  EXPECT_EQ(json.at("texts"), 30);
  EXPECT_NEAR(json.at("mean_squared_error").get<double>(), last.at("valid_loss").get<double>(), 1e-4);
  EXPECT_NEAR(json.at("pearson").get<double>(), last.at("valid_pearson").get<double>(), 1e-3);
  EXPECT_TRUE(json.contains("spearman"));
  EXPECT_FALSE(json.contains("accuracy"));
  const std::string table = output_of({"evaluate", model, "--data", data});
  for (const char* row : {"MSE ", "Pearson ", "Spearman ", "texts "}) EXPECT_THAT(table, HasSubstr(row));
  EXPECT_THAT(refusal_of({"evaluate", model, "--data", data, "--confusion", "labels.html"}), HasSubstr("no labels"));
  EXPECT_THAT(refusal_of({"evaluate", model, "--data", file("t.tsv", "good\tThe dog.\n")}),
              HasSubstr("t.tsv:1: the label \"good\" is no finite number"));

  const double number = Classifier::load(model).classify(texts[0]).labels.at(0).probability;
  EXPECT_NEAR(number, 3, 1.5);
  EXPECT_EQ(output_of({"classify", model, texts[0]}), fmt::format("score\t{:.4f}\n", number));
  EXPECT_THAT(output_of({"draw", "metrics", run, "--out", (folder_ / "loss.svg").string()}), "");
  EXPECT_THAT(read_file(folder_ / "loss.svg"), HasSubstr("squared error"));
}

TEST_F(TextModelsCliTest, EvaluateMeasuresALanguageModel) {
  const std::string text = joined(small_text(10));
  const std::string data = file("valid.txt", text);
  const Json json = Json::parse(output_of({"evaluate", lm_, "--data", data, "--json"}));
  EXPECT_EQ(json.at("tokens"), text.size() - 1) << "one a character; nothing predicts the first";
  EXPECT_EQ(json.at("bytes"), text.size());
  const double loss = json.at("nll"), tokens = json.at("tokens"), bytes = json.at("bytes");
  EXPECT_NEAR(json.at("perplexity").get<double>(), std::exp(loss), 1e-6 * std::exp(loss));
  EXPECT_NEAR(json.at("bits_per_byte").get<double>(), loss * tokens / bytes / std::numbers::ln2, 1e-9);
  EXPECT_EQ(json.at("text_unit"), "stream");
  EXPECT_EQ(json.at("stride"), 48);
  const Json more_context = Json::parse(output_of({"evaluate", lm_, "--data", data, "--stride", "8", "--json"}));
  EXPECT_EQ(more_context.at("tokens"), json.at("tokens"));
  EXPECT_NE(more_context.at("nll"), json.at("nll"));
  EXPECT_THAT(output_of({"evaluate", lm_, "--data", data}),
              AllOf(HasSubstr("bits a byte"), HasSubstr("windows of 48 tokens that advance by 48")));

  write_small_language_model(folder_ / "lines", TextUnit::line);
  const Json lines = Json::parse(output_of({"evaluate", (folder_ / "lines").string(), "--data", data, "--json"}));
  EXPECT_EQ(lines.at("documents"), 10);
  EXPECT_EQ(lines.at("tokens"), text.size()) << "bos comes first, eos for each line end";
}

TEST_F(TextModelsCliTest, EvaluateRefusals) {
  const std::string text = file("text", "a\n");
  EXPECT_THAT(refusal_of({"evaluate", lm_}), HasSubstr("\"decoder_lm\" needs --data"));
  EXPECT_THAT(refusal_of({"evaluate", classifier_, "--source", text, "--reference", text}), HasSubstr("needs --data"));
  write_small_embedder(folder_ / "embedder");
  EXPECT_THAT(refusal_of({"evaluate", (folder_ / "embedder").string()}), HasSubstr("predicts no label"));
  EXPECT_THAT(refusal_of({"evaluate", lm_, "--data", text, "--source", text}), HasSubstr("that translates"));
  EXPECT_THAT(refusal_of({"evaluate", lm_, "--data", text, "--stride", "49"}),
              HasSubstr("stride 49: needs a number from 1 to the model's context of 48"));
  EXPECT_THAT(refusal_of({"evaluate", lm_, "--data", "/nowhere"}), HasSubstr("/nowhere"));
  EXPECT_THAT(refusal_of({"evaluate", classifier_, "--data", text, "--format", "xml"}), HasSubstr("--format xml"));
  EXPECT_THAT(refusal_of({"evaluate", classifier_, "--data", file("t.tsv", "awful\tThe dog.\n")}), HasSubstr("awful"));
}

TEST_F(TextModelsCliTest, InspectKnowsEveryArchitecture) {
  for (const std::string& folder : {lm_, classifier_}) {
    const Json json = Json::parse(output_of({"inspect", folder, "--json", "--layers"}));
    const TransformerConfig config = read_model_config(folder);
    int64_t sum = 0;
    for (const char* part : {"embedding", "encoder", "decoder", "projection", "head"})
      sum += json.at("parameters").value(part, int64_t{0});
    EXPECT_EQ(sum, count_parameters(config).total());
    EXPECT_EQ(json.at("parameters").at("total"), sum);
  }
  EXPECT_EQ(Json::parse(output_of({"inspect", lm_, "--json"})).at("cache_bytes_per_token").at("self_attention"),
            2 * 4 * 2 * 2 * 8);
  EXPECT_THAT(output_of({"inspect", lm_, "--layers"}),
              AllOf(HasSubstr("grouped-query, 2 key heads"), HasSubstr("rotary"), HasSubstr("48 tokens"),
                    HasSubstr("decoder 1"), HasSubstr("for the context")));
  EXPECT_THAT(output_of({"inspect", classifier_}),
              AllOf(HasSubstr("3: bad, good, so so"), HasSubstr("learned, 24"), testing::Not(HasSubstr("Cache"))));
  EXPECT_THAT(output_of({"inspect", "--preset", "gpt2-124m"}), HasSubstr("124,439,808"));
  EXPECT_THAT(refusal_of({"inspect", "--preset", "gpt2-124"}), HasSubstr("did you mean \"gpt2-124m\""));
  EXPECT_THAT(refusal_of({"inspect"}), HasSubstr("one of them"));
}

TEST_F(TextModelsCliTest, AttentionOfOneTextIsDrawn) {
  const std::string html = (folder_ / "a.html").string();
  const auto maps_of = [&](const std::string& folder) {
    output_of({"inspect", folder, "--attention", "The dog sleeps.", "--html", html});
    const std::string page = read_file(html), begin = "id=\"data\">";
    const size_t data = page.find(begin) + begin.size();
    return Json::parse(page.substr(data, page.find("</script>", data) - data));
  };
  const Json lm = maps_of(lm_);
  ASSERT_EQ(lm.size(), 1u);
  EXPECT_EQ(lm[0].at("keys").size(), 15u);
  EXPECT_EQ(lm[0].at("layers").size(), 2u);
  EXPECT_EQ(lm[0].at("causal"), true);
  const Json classifier = maps_of(classifier_);
  ASSERT_EQ(classifier.size(), 1u);
  EXPECT_EQ(classifier[0].at("keys").front(), "<s>");
  EXPECT_EQ(classifier[0].at("keys").back(), "</s>");
  EXPECT_THAT(read_file(html), HasSubstr("<dt>Label</dt>"));
  EXPECT_THAT(refusal_of({"inspect", lm_, "--attention", std::string(60, 'a')}), HasSubstr("context_length is 48"));
  EXPECT_THAT(refusal_of({"inspect", lm_, "--attention", "a", "--target", "b"}), HasSubstr("does not translate"));
}

// What a config.json asks for is not believed.
TEST_F(TextModelsCliTest, DamagedFolders) {
  for (const auto& [folder, command] : {std::pair(lm_, "generate"), std::pair(classifier_, "classify")}) {
    const std::filesystem::path copy = folder_ / "copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(folder, copy);
    const Json good = read_json_file(copy / kConfigFile);
    Json bad = good;
    bad["vocab"] = 1 << 24;
    bad["layers"] = 1000;
    write_json_file(copy / kConfigFile, bad);
    EXPECT_THAT(refusal_of({command, copy.string()}, "a\n"), HasSubstr("model.safetensors: holds"));
    bad = good;
    bad["heads"] = 5;
    write_json_file(copy / kConfigFile, bad);
    EXPECT_THAT(refusal_of({command, copy.string()}, "a\n"), HasSubstr("config.json"));
    write_json_file(copy / kConfigFile, good);
    for (const char* name : {"vocabulary.json", "tokenizer.model"}) std::filesystem::remove(copy / name);
    EXPECT_THAT(refusal_of({command, copy.string()}, "a\n"), HasSubstr("needs tokenizer.json, tokenizer.model"));
  }
}

}  // namespace
}  // namespace attune

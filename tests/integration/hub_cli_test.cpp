// The commands on folders of the Hugging Face hub: the small ones of tests/hub/models, as they are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/ops/linear/precision.h"
#include "attune/text/tokenizer.h"
#include "attune/train/config.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::filesystem::path model(const std::string& name) {
  return source_dir() / "tests/hub/models" / name;
}

TEST(HubCli, InspectDescribesEveryFolder) {
  for (const char* name : {"gpt2", "bert-classifier", "deepseek-v3-yarn", "marian", "t5"})
    EXPECT_THAT(output_of({"inspect", model(name).string()}), HasSubstr("d_model")) << name;
}

TEST(HubCli, GenerateContinuesAPrompt) {
  const std::string folder = model("gpt2").string();
  const std::string expected = TextGenerator::load(model("gpt2")).generate("Hello world").text;
  const std::vector<Json> found = json_lines(output_of({"generate", folder, "--prompt", "Hello world", "--json"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("text"), expected);
  EXPECT_EQ(found[0].at("line"), 1);
}

TEST(HubCli, GenerateWritesAChatWithTheFoldersTemplate) {
  const TemporaryFolder folder;
  std::filesystem::copy(model("gpt2"), folder.path(), std::filesystem::copy_options::recursive);
  EXPECT_THAT(refusal(run_attune({"generate", folder.path().string(), "--chat", "--prompt", "Hi"})),
              HasSubstr("chat template"));
  write_file(folder / "chat_template.jinja",
             "{% for m in messages %}<{{ m.role }}> {{ m.content }} {% endfor %}<assistant>");
  const std::string expected = TextGenerator::load(model("gpt2")).generate("<user> Hello <assistant>").text;
  const std::vector<Json> found =
      json_lines(output_of({"generate", folder.path().string(), "--chat", "--prompt", "Hello", "--json"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("text"), expected);

  // An empty line has no answer; the others say which line they are for.
  const std::vector<Json> lines =
      json_lines(output_of({"generate", folder.path().string(), "--chat", "--n", "2", "--json"}, "Hello\n\nworld\n"));
  ASSERT_EQ(lines.size(), 4u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("line"), i < 2 ? 1 : 3);
    EXPECT_EQ(lines[i].at("sample"), i % 2);
    EXPECT_EQ(lines[i].at("prompt"), i < 2 ? "<user> Hello <assistant>" : "<user> world <assistant>");
  }
}

TEST(HubCli, EvaluateSaysWhatAnEncoderIsFor) {
  EXPECT_THAT(refusal_of({"evaluate", model("roberta-masked").string(), "--data", "text.txt"}),
              HasSubstr("attune embed gives its vectors"));
}

TEST(HubCli, AModelForAnotherCommandIsNamed) {
  EXPECT_THAT(
      refusal_of({"translate", model("gpt2").string(), "A text."}),
      HasSubstr("architecture is \"decoder_lm\", translation needs \"encoder_decoder\" (attune generate runs it)"));
  EXPECT_THAT(refusal_of({"generate", model("t5").string(), "--prompt", "A text."}),
              HasSubstr("(attune translate runs it)"));
}

TEST(HubCli, TranslateGivesALineForEachLine) {
  for (const char* name : {"marian", "t5"}) {
    const Translator translator = Translator::load(model(name));
    const std::vector<std::string> texts = {"Hello world!", "A second sentence."};
    std::string expected;
    for (const Translation& translation : translator.translate(texts)) expected += translation.text() + "\n";
    EXPECT_EQ(output_of({"translate", model(name).string()}, texts[0] + "\n" + texts[1] + "\n"), expected) << name;
  }
}

// Any token may stand for a language: the target's begins each output.
TEST(HubCli, TranslateTakesLanguages) {
  const std::string folder = model("t5").string();
  const std::string language = load_tokenizer(model("t5"))->piece(40);
  TranslateOptions options;
  options.target_language = options.source_language = language;
  const std::string expected = Translator::load(model("t5")).translate("Hello", options).text();
  EXPECT_EQ(output_of({"translate", folder, "Hello", "--source-lang", language, "--target-lang", language}),
            expected + "\n");
  EXPECT_NE(expected, Translator::load(model("t5")).translate("Hello").text());
  EXPECT_THAT(refusal(run_attune({"translate", folder, "Hello", "--target-lang", "Klingon"})),
              HasSubstr("the vocabulary has no token for the language \"Klingon\""));
}

// The reference is measured as a translation into the language, and of a source that is framed for it.
TEST(HubCli, EvaluateMeasuresInTheLanguages) {
  const TemporaryFolder folder;
  write_file(folder / "source", "Hello\n");
  write_file(folder / "reference", "Hello world\n");
  const auto nll = [&](const std::vector<std::string>& languages) {
    std::vector<std::string> words = {
        "evaluate",    model("t5").string(),           "--json", "--source", (folder / "source").string(),
        "--reference", (folder / "reference").string()};
    words.insert(words.end(), languages.begin(), languages.end());
    return Json::parse(output_of(words)).at("nll").get<double>();
  };
  const auto tokenizer = load_tokenizer(model("t5"));
  const double without = nll({}), target = nll({"--target-lang", tokenizer->piece(40)});
  EXPECT_NE(target, without);
  EXPECT_NE(nll({"--target-lang", tokenizer->piece(41)}), target);
  EXPECT_NE(nll({"--target-lang", tokenizer->piece(40), "--source-lang", tokenizer->piece(40)}), target);
}

TEST(HubCli, ClassifyTakesTextsAndPairs) {
  const std::string folder = model("bert-classifier").string();
  const Classifier classifier = Classifier::load(model("bert-classifier"));
  const auto found = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"classify", folder, "--json"});
    return json_lines(output_of(std::move(arguments))).at(0).at("probability").get<double>();
  };
  EXPECT_EQ(found({"A question."}), classifier.classify("A question.").labels.front().probability);
  const std::vector<TextPair> pair = {{"A question.", "An answer."}};
  EXPECT_EQ(found({"--pair", "A question.\tAn answer."}), classifier.classify(pair).at(0).labels.front().probability);
  EXPECT_THAT(refusal(run_attune({"classify", folder, "--pair", "A question."})),
              HasSubstr("needs two texts with one TAB between them"));
}

TEST(HubCli, EvaluateReadsPairs) {
  const TemporaryFolder folder;
  const std::string bert = model("bert-classifier").string();
  const auto classifier = Classifier::load(bert);
  const std::vector<TextPair> pair = {{"A question.", "An answer."}};
  const int32_t likeliest = classifier.classify(pair).at(0).labels.front().label;
  const Json line = {{"label", classifier.labels().at(static_cast<size_t>(likeliest))},
                     {"text", "A question."},
                     {"second", "An answer."}};
  write_file(folder / "pairs.jsonl", line.dump() + "\n");
  const Json found = Json::parse(output_of(
      {"evaluate", bert, "--data", (folder / "pairs.jsonl").string(), "--second-text-field", "second", "--json"}));
  EXPECT_EQ(found.at("accuracy"), 1.0);
}

TEST(HubCli, EmbedGivesVectors) {
  const std::vector<Json> found = json_lines(output_of({"embed", model("bert-classifier").string(), "Hello world!"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at("embedding").get<std::vector<float>>(),
            Embedder::load(model("bert-classifier")).embed("Hello world!"));
}

// A JSON string may have line ends; a list of two texts is a pair. The ids are those of PyPI's tokenizers.
TEST(HubCli, EncodeReadsJsonLines) {
  const std::string folder = model("bert-classifier").string();
  const std::string lines = R"("Hello world!"
"  two  spaces, a tab\tand a\nline"
""
["Hello world!", "Hello world!"]
)";
  EXPECT_EQ(output_of({"tokenizer", "encode", folder, "--ids", "--json-lines"}, lines.substr(0, lines.find('['))),
            "99 79 50 304 114 5\n344 50 340 51 105 46 9 16 35 267 82 16 148 47 44\n\n");
  EXPECT_EQ(output_of({"tokenizer", "encode", folder, "--ids", "--json-lines", "--special-tokens"}, lines),
            "2 99 79 50 304 114 5 3\n2 344 50 340 51 105 46 9 16 35 267 82 16 148 47 44 3\n2 3\n"
            "2 99 79 50 304 114 5 3 99 79 50 304 114 5 3\n");
  for (const char* wrong : {"Hello", "1", "{}", R"(["one"])", R"(["one", 2])", R"(["a", "b", "c"])", R"("\ud800")"})
    EXPECT_THAT(refusal_of({"tokenizer", "encode", folder, "--json-lines"}, std::string("\"fine\"\n") + wrong + "\n"),
                HasSubstr("standard input:2: expected a JSON string or a list of two, found "))
        << wrong;
  EXPECT_THAT(refusal_of({"tokenizer", "encode", folder, "--json-lines"}, std::string("\"a b\"\0junk\n", 11)),
              HasSubstr("standard input:1: expected a JSON string or a list of two, found "));
}

TEST(HubCli, EncodeAsConfiguredTruncatesAndPads) {
  const TemporaryFolder folder;
  std::filesystem::copy(model("bert-classifier"), folder.path(), std::filesystem::copy_options::recursive);
  Json tokenizer = read_json_file(folder / "tokenizer.json");
  tokenizer["truncation"] = {{"direction", "Right"}, {"max_length", 6}, {"strategy", "LongestFirst"}, {"stride", 0}};
  tokenizer["padding"] = {{"strategy", "BatchLongest"}, {"direction", "Left"}, {"pad_to_multiple_of", 4}, {"pad_id", 0},
                          {"pad_type_id", 0},           {"pad_token", "[PAD]"}};
  write_json_file(folder / "tokenizer.json", tokenizer);
  const std::string path = folder.path().string();
  const std::string lines = "\"Hello world!\"\n\"\"\n[\"Hello world!\", \"\"]\n";
  EXPECT_EQ(output_of({"tokenizer", "encode", path, "--ids", "--json-lines", "--as-configured"}, lines),
            "0 0 2 99 79 50 304 3\n0 0 0 0 0 0 2 3\n0 0 2 99 79 50 3 3\n");
  EXPECT_EQ(output_of({"tokenizer", "encode", path, "--ids", "--special-tokens", "Hello world!"}),
            "2 99 79 50 304 114 5 3\n")
      << "unasked, nothing is cut";
}

TEST(HubCli, EvaluateGivesAPerplexity) {
  const TemporaryFolder folder;
  write_file(folder / "text.txt", "Hello world! This is a text.\n");
  EXPECT_THAT(output_of({"evaluate", model("gpt2").string(), "--data", (folder / "text.txt").string()}),
              HasSubstr("perplexity"));
}

// What the program says where the processor has no instructions for bfloat16.
std::string bfloat16_note() {
  const std::string note = precision_note(ProductPrecision::bfloat16, Device{});
  return note.empty() ? "" : "attune: " + note + "\n";
}

TEST(HubCli, PrecisionRoundsActivations) {
  constexpr auto kNarrow = ProductPrecision::bfloat16;
  const auto output = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--precision", "bfloat16"});
    return output_of(std::move(arguments), "", bfloat16_note());
  };
  EXPECT_EQ(
      json_lines(output({"generate", model("gpt2").string(), "--prompt", "Hello world", "--json"})).at(0).at("text"),
      TextGenerator::load(model("gpt2"), {.precision = kNarrow}).generate("Hello world").text);
  EXPECT_EQ(output({"translate", model("marian").string(), "Hello world!"}),
            Translator::load(model("marian"), {.precision = kNarrow}).translate("Hello world!").text() + "\n");
  const std::string bert = model("bert-classifier").string();
  const auto narrow = Classifier::load(bert, kNarrow).classify("A question.").labels.front();
  const auto wide = Classifier::load(bert).classify("A question.").labels.front();
  EXPECT_EQ(json_lines(output({"classify", bert, "A question.", "--json"})).at(0).at("probability"),
            narrow.probability);
  EXPECT_NE(narrow.probability, wide.probability);
  EXPECT_NEAR(narrow.probability, wide.probability, 0.05);
  EXPECT_EQ(json_lines(output({"embed", bert, "A text."})).at(0).at("embedding").get<std::vector<float>>(),
            Embedder::load(bert, kNarrow).embed("A text."));
}

TEST(HubCli, PrecisionNeedsMatricesOrPanelsThatAreBfloat16) {
  const TemporaryFolder folder;
  const std::string bert = model("bert-classifier").string();
  EXPECT_THAT(refusal_of({"classify", bert, "A text.", "--precision", "float16"}), HasSubstr("--precision"));
  for (const char* type : {"int8", "bfloat16"})
    output_of({"quantize", bert, "--type", type, "--out", (folder / type).string()});
  const CommandResult of_int8 =
      run_attune({"classify", (folder / "int8").string(), "A text.", "--precision", "bfloat16"});
  EXPECT_EQ(of_int8.status, 1);
  EXPECT_THAT(of_int8.errors, StartsWith(bfloat16_note()));
  EXPECT_THAT(of_int8.errors,
              HasSubstr("its weights are int8 panels; bfloat16 products need bfloat16 panels or matrices"));
  const auto probability = [](const std::string& of) {
    const std::string text = output_of({"classify", of, "A text.", "--precision", "bfloat16"}, "", bfloat16_note());
    return std::stod(text.substr(text.find('\t')));
  };
  // Embeddings of the panels' folder are bfloat16 too.
  EXPECT_NEAR(probability((folder / "bfloat16").string()), probability(bert), 0.01);
}

// The same numbers as in float32: bfloat16 weights are not widened beforehand.
TEST(HubCli, EvaluateTakesBfloat16AsItIs) {
  const TemporaryFolder folder;
  write_file(folder / "text.txt", "Hello world! This is a text.\n");
  const SafetensorsReader reader(model("gpt2") / "model.safetensors");
  for (const bool narrow : {true, false}) {
    const std::filesystem::path to = folder / (narrow ? "narrow" : "wide");
    std::filesystem::copy(model("gpt2"), to, std::filesystem::copy_options::recursive);
    std::vector<NamedTensor> tensors;
    for (const std::string& name : reader.names()) {
      const Tensor rounded = to_bfloat16(reader.load(name));
      tensors.push_back({name, narrow ? rounded : to_float32(rounded)});
    }
    write_safetensors(to / "model.safetensors", tensors);
  }
  const auto nll = [&](const char* name, const std::string& precision) {
    const std::string note = precision == "bfloat16" ? bfloat16_note() : "";
    return Json::parse(output_of({"evaluate", (folder / name).string(), "--data", (folder / "text.txt").string(),
                                  "--json", "--precision", precision},
                                 "", note))
        .at("nll")
        .get<double>();
  };
  EXPECT_NEAR(nll("narrow", "float32"), nll("wide", "float32"), 1e-5);
  EXPECT_NE(nll("narrow", "bfloat16"), nll("narrow", "float32"));
  EXPECT_NEAR(nll("narrow", "bfloat16"), nll("narrow", "float32"), 0.05);
}

TEST(HubCli, AQuantizedFolderIsAModel) {
  for (const char* name : {"gpt2", "t5", "bert-classifier"}) {
    const TemporaryFolder folder;
    const std::string out = (folder / "int8").string();
    output_of({"quantize", model(name).string(), "--out", out});
    EXPECT_THAT(output_of({"inspect", out}), HasSubstr("int8")) << name;
  }
}

// With its pooling, and nearly the vectors of the folder that it was made from.
TEST(HubCli, AQuantizedEncoderEmbeds) {
  const TemporaryFolder folder;
  write_small_embedder(folder / "hub");
  write_embedding_settings(folder / "hub", {.pooling = {TextPooling::cls, TextPooling::mean}, .max_tokens = 6}, 64);
  output_of({"quantize", (folder / "hub").string(), "--out", (folder / "int8").string()});
  const auto vector = [&](const std::string& name, const std::string& text) {
    const char* note = "attune: 1 of 1 texts was cut: the model reads 6 tokens, with bos and eos\n";
    return json_lines(output_of({"embed", (folder / name).string(), text}, "", note))
        .at(0)
        .at("embedding")
        .get<std::vector<float>>();
  };
  const std::vector<float> expected = vector("hub", "Hello world!"), found = vector("int8", "Hello world!");
  ASSERT_EQ(found.size(), expected.size());
  double product = 0, of_expected = 0, of_found = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    product += found[i] * expected[i];
    of_expected += expected[i] * expected[i];
    of_found += found[i] * found[i];
  }
  EXPECT_GT(product / std::sqrt(of_expected * of_found), 0.999);
  EXPECT_EQ(vector("int8", "Hello world!"), vector("int8", "Hello world! This is cut.")) << "after six tokens";
  EXPECT_NE(vector("int8", "Hello world!"), vector("int8", "Hello there!"));
}

}  // namespace
}  // namespace attune

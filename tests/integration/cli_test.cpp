// The subcommands as their users run them, on a model with random weights.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>

#include "attune/base/json_fields.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/metrics/bleu.h"
#include "attune/metrics/chrf.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class CliTest : public CliFixture {
 protected:
  std::string file(const std::string& name, const std::vector<std::string>& lines) const {
    return CliFixture::file(name, joined(lines));
  }
  std::vector<std::string> translate(const std::vector<std::string>& lines,
                                     std::vector<std::string> options = {}) const {
    options.insert(options.begin(), {"translate", model_});
    return split_lines(output_of(options, joined(lines)));
  }
};

TEST_F(CliTest, HelpNamesEveryCommandAndShowsExamples) {
  EXPECT_THAT(output_of({"--version"}), HasSubstr("attune "));
  const std::string help = output_of({"--help"});
  for (const std::string command : {"translate", "generate", "classify", "evaluate", "inspect", "tokenizer"}) {
    EXPECT_THAT(help, HasSubstr("\n  " + command + " "));
    EXPECT_THAT(output_of({command, "--help"}), HasSubstr("Examples:\n  attune " + command + " "));
  }
  EXPECT_THAT(output_of({"translate", "--help"}), HasSubstr("model [text...]\n"));
  EXPECT_THAT(output_of({"translate", "--help"}), HasSubstr("  text TEXT ... "));
}

TEST_F(CliTest, TextFromArgumentsFilesAndStandardInputIsTranslatedAlike) {
  const std::vector<std::string> lines = small_text(5);
  const std::vector<std::string> expected = translate(lines);
  ASSERT_EQ(expected.size(), lines.size());

  std::vector<std::string> arguments = {"translate", model_};
  arguments.insert(arguments.end(), lines.begin(), lines.end());
  EXPECT_EQ(split_lines(output_of(arguments)), expected);

  EXPECT_EQ(translate({}, {"--file", file("lines", lines)}), expected);
  write_gzip(folder_ / "lines.gz", joined(lines));
  EXPECT_EQ(translate({}, {"--file", (folder_ / "lines.gz").string()}), expected);

  const std::string output = (folder_ / "out").string();
  EXPECT_EQ(output_of({"translate", model_, "--file", (folder_ / "lines").string(), "--output", output}), "");
  EXPECT_EQ(split_lines(read_file(output)), expected);
}

TEST_F(CliTest, ArgumentsAreTakenAsTheyAre) {
  const std::vector<std::string> texts = {"[the dog, the cat]", "{}", "", "%%", "train", "a", "--file", "-- b"};
  std::vector<std::string> arguments = {"translate", model_, "--beam-size", "2", "--"};
  arguments.insert(arguments.end(), texts.begin(), texts.end());
  EXPECT_EQ(split_lines(output_of(arguments)), translate(texts, {"--beam-size", "2"}));
  EXPECT_EQ(output_of({"translate", model_, "[a, b]", "--beam-size", "2", "c"}),
            joined(translate({"[a, b]", "c"}, {"--beam-size", "2"})));
}

TEST_F(CliTest, OutputKeepsTheOrderOfTheInputForEveryBatchSize) {
  std::vector<std::string> lines = small_text(40);
  lines[7] = "";  // stays an empty line
  lines.insert(lines.end(), lines.begin(), lines.begin() + 3);
  const std::vector<std::string> expected = translate(lines);
  ASSERT_EQ(expected.size(), lines.size());
  EXPECT_EQ(expected[7], "");
  EXPECT_EQ(expected[40], expected[0]);
  EXPECT_NE(expected[1], expected[2]);
  EXPECT_THAT(translate({lines[11]}), ElementsAre(expected[11]));
  EXPECT_EQ(translate(lines, {"--batch-size", "1"}), expected);
  EXPECT_EQ(translate(lines, {"--batch-size", "7", "--threads", "3"}), expected);
}

TEST_F(CliTest, OptionsOfTheSearchReachIt) {
  const Translator translator = Translator::load(model_);
  TranslateOptions options;
  options.generation = GenerationConfig{.beam_size = 5, .length_penalty = 1.5, .max_length = 6};
  options.n_best = 4;
  const std::vector<std::string> lines = small_text(3);
  const std::vector<Translation> expected = translator.translate(lines, options);
  std::vector<std::string> wanted;
  for (size_t i = 0; i < lines.size(); ++i)
    for (const ScoredText& t : expected[i].n_best)
      wanted.push_back(fmt::format("{}\t{:.4f}\t{}", i + 1, t.score, t.text));
  EXPECT_EQ(wanted.size(), 12u);
  EXPECT_EQ(translate(lines, {"--beam-size", "5", "--length-penalty", "1.5", "--max-length", "6", "--n-best", "4"}),
            wanted);
}

TEST_F(CliTest, ScoresStandBeforeTheText) {
  const std::vector<std::string> lines = small_text(3);
  const std::vector<std::string> plain = translate(lines), scored = translate(lines, {"--scores"});
  ASSERT_EQ(scored.size(), plain.size());
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(std::regex_match(scored[i].substr(0, scored[i].find('\t')), std::regex("-[0-9]+\\.[0-9]{4}")));
    EXPECT_EQ(scored[i].substr(scored[i].find('\t') + 1), plain[i]);
  }
}

TEST_F(CliTest, WhoeverWaitsForAnAnswerGetsItBeforeTheNextLine) {
  const std::string script = fmt::format(
      "coproc A {{ '{}' translate '{}'; }}; for s in one two; do echo $s >&\"${{A[1]}}\"; read -t 60 line "
      "<&\"${{A[0]}}\" "
      "|| exit 9; echo \"$line\"; done",
      attune_binary(), model_);
  const CommandResult result = run_command({"bash", "-c", script});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_EQ(split_lines(result.output), translate({"one", "two"}));
}

TEST_F(CliTest, EvaluateSaysWhatTheLibrarySays) {
  const std::vector<std::string> sources = small_text(12);
  std::vector<std::string> references = small_text(24);
  references.erase(references.begin(), references.begin() + 12);
  const std::string source = file("source", sources), reference = file("reference", references);
  const std::string output = (folder_ / "out").string();
  const Json json = Json::parse(
      output_of({"evaluate", model_, "--source", source, "--reference", reference, "--output", output, "--json"}));
  const std::vector<std::string> translations = split_lines(read_file(output));
  EXPECT_EQ(translations, translate(sources));
  EXPECT_NEAR(json.at("bleu").get<double>(), corpus_bleu(translations, references).score, 1e-9);
  EXPECT_NEAR(json.at("chrf").get<double>(), corpus_chrf(translations, references), 1e-9);
  EXPECT_EQ(json.at("sentences"), 12);
  EXPECT_EQ(json.at("bleu_signature"), "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp");
  const double loss = json.at("nll");
  EXPECT_NEAR(json.at("perplexity").get<double>(), std::exp(loss), 1e-6 * std::exp(loss));
  EXPECT_NEAR(loss, std::log(300), 1.0) << "random weights know nothing of 300 pieces";
  EXPECT_GT(json.at("tokens_per_second").get<double>(), 0);

  const std::string table = output_of({"evaluate", model_, "--source", source, "--reference", reference});
  for (const char* row : {"BLEU ", "chrF2 ", "TER ", "nll ", "perplexity ", "tok:13a|smooth:exp"})
    EXPECT_THAT(table, HasSubstr(row));
}

TEST_F(CliTest, HypothesesAreScoredWithoutAModel) {
  const std::vector<std::string> references = small_text(30);
  std::vector<std::string> hypotheses = references;
  for (size_t i = 0; i < hypotheses.size(); i += 2) hypotheses[i] = "The " + hypotheses[i + 1];
  for (std::string& h : hypotheses) h[0] = 't';
  const std::string h = file("hypotheses", hypotheses), r = file("reference", references);
  const auto score = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"evaluate", "--hypotheses", h, "--reference", r, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Json::parse(output_of(arguments));
  };
  const auto bleu = [&](BleuTokenizer tokenizer, bool lowercase) {
    return corpus_bleu(hypotheses, references, tokenizer, lowercase).score;
  };
  EXPECT_NEAR(score({}).at("bleu").get<double>(), bleu(BleuTokenizer::v13a, false), 1e-9);
  EXPECT_NEAR(score({"--lowercase"}).at("bleu").get<double>(), bleu(BleuTokenizer::v13a, true), 1e-9);
  EXPECT_NEAR(score({"--bleu-tokenizer", "none"}).at("bleu").get<double>(), bleu(BleuTokenizer::none, false), 1e-9);
  EXPECT_GT(bleu(BleuTokenizer::v13a, true), bleu(BleuTokenizer::v13a, false));
  EXPECT_EQ(score({"--lowercase"}).at("bleu_signature"), "nrefs:1|case:lc|eff:no|tok:13a|smooth:exp");
  EXPECT_NEAR(score({}).at("chrf").get<double>(), corpus_chrf(hypotheses, references), 1e-9);
  EXPECT_FALSE(score({}).contains("nll"));
}

TEST_F(CliTest, SeveralReferencesAreScoredTogether) {
  const std::vector<std::string> hypotheses = small_text(12);
  std::vector<std::vector<std::string>> references(2, hypotheses);
  for (size_t i = 0; i < hypotheses.size(); ++i) references[i % 2][i] = "Nothing of it .";
  const std::vector<std::string> arguments = {"evaluate",
                                              "--hypotheses",
                                              file("h", hypotheses),
                                              "--reference",
                                              file("a", references[0]),
                                              "--reference",
                                              file("b", references[1]),
                                              "--json"};
  const Json json = Json::parse(output_of(arguments));
  EXPECT_NEAR(json.at("bleu").get<double>(), corpus_bleu(hypotheses, references).score, 1e-9);
  EXPECT_NEAR(json.at("chrf").get<double>(), 100, 1e-9) << "one of them is each time the same";
  EXPECT_EQ(json.at("ter"), 0);
  EXPECT_EQ(json.at("references"), 2);
  EXPECT_EQ(json.at("ter_signature"), "nrefs:2|case:lc|tok:tercom|norm:no|punct:yes|asian:no");
  EXPECT_THAT(refusal(run_attune({"evaluate", "--hypotheses", file("h", hypotheses), "--reference",
                                  file("a", hypotheses), "--reference", file("short", small_text(3))})),
              HasSubstr("has 12 lines but "));
}

TEST_F(CliTest, AnEnsembleOfAModelWithItselfTranslatesAsItDoes) {
  const std::vector<std::string> lines = small_text(8);
  EXPECT_EQ(translate(lines, {"--ensemble", model_, "--ensemble", model_}), translate(lines));
  write_small_model(folder_ / "other", 7);
  EXPECT_NE(translate(lines, {"--ensemble", (folder_ / "other").string()}), translate(lines));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "a text", "--ensemble", (folder_ / "none").string()})),
              HasSubstr("none"));
}

TEST_F(CliTest, TextThatIsNotWrittenAsTheTrainingTextWasIsNoticed) {
  const auto style = [&](const std::string& text) { write_file(*shared_ / "model" / "source_text.json", text); };
  style("{\"punctuation\": \"separate\", \"lower_case\": false}");
  const CommandResult found = run_attune({"translate", model_, "A dog.", "A cat."});
  EXPECT_EQ(found.status, 0);
  EXPECT_EQ(found.errors,
            "attune: the input is not written as the model's training text: it has punctuation attached to words "
            "(\"dog.\"), the model's training text had it separate. Translations may be poor\n");
  EXPECT_EQ(run_attune({"translate", model_, "A dog ."}).errors, "");
  style("{\"punctuation\": \"sometimes\"}");
  EXPECT_THAT(refusal(run_attune({"translate", model_, "A dog ."})), HasSubstr("source_text.json.punctuation: is "));
  std::filesystem::remove(*shared_ / "model" / "source_text.json");
}

TEST_F(CliTest, InspectCountsWhatTheModelHas) {
  const Json json = Json::parse(output_of({"inspect", model_, "--layers", "--json"}));
  const auto model = build_transformer(small_model_config());
  std::map<std::string, int64_t> counts;  // by the first word of the name; layers by their place
  for (const NamedParameter& p : named_parameters(*model)) {
    counts[p.name.substr(0, p.name.find('.'))] += p.tensor->numel();
    if (p.name.find(".layers.1.") != std::string::npos) counts[p.name.substr(0, 16)] += p.tensor->numel();
  }
  const Json& parameters = json.at("parameters");
  EXPECT_EQ(parameters.at("total"), count_parameters(small_model_config()).total());
  for (const char* part : {"source_embedding", "target_embedding", "encoder", "decoder", "projection"})
    EXPECT_EQ(parameters.at(part), counts.at(part)) << part;
  EXPECT_EQ(parameters.at("encoder_layers").size(), 2u);
  EXPECT_EQ(parameters.at("encoder_layers").at(1).at("total"), counts.at("encoder.layers.1"));
  EXPECT_EQ(parameters.at("decoder_layers").at(1).at("total"), counts.at("decoder.layers.1"));
  EXPECT_EQ(json.at("memory_bytes").at("weights"), 4 * count_parameters(small_model_config()).total());

  int64_t self = 0, cross = 0;
  for (const auto& layer : model->decoder().layers()) {
    self += 4 * layer->self_attention().cache_width();
    cross += 4 * layer->cross_attention()->cache_width();
  }
  EXPECT_EQ(json.at("cache_bytes_per_token").at("self_attention"), self);
  EXPECT_EQ(json.at("cache_bytes_per_token").at("cross_attention"), cross);
  EXPECT_EQ(json.at("cache_bytes_per_token").at("multi_head"), 2 * 2 * 32 * 4);
  TransformerConfig config;
  read_fields(json.at("config"), config, "config");
  EXPECT_EQ(config, small_model_config());

  const std::string text = output_of({"inspect", model_, "--layers"});
  EXPECT_THAT(text, HasSubstr("latent, 8 numbers a token"));
  EXPECT_THAT(text, HasSubstr("8 times less than multi-head attention"));
  EXPECT_THAT(text, HasSubstr("encoder 1"));
}

TEST_F(CliTest, InspectListsParametersByTheNamesThatPatternsMean) {
  const std::string config =
      file("names.toml", {"[model]", "d_model = 32", "heads = 4", "layers = 2", "source_vocab = 9", "target_vocab = 9",
                          "share_embeddings = true", "share_projection = true", "[data]", "train_source = \"a\"",
                          "train_target = \"b\""});
  const Json names = Json::parse(output_of({"inspect", config, "--parameters", "--json"})).at("parameters_by_name");
  TransformerConfig expected;
  expected.d_model = 32;
  expected.heads = 4;
  expected.layers = 2;
  expected.source_vocab = expected.target_vocab = 9;
  expected.share_embeddings = expected.share_projection = true;
  const auto model = build_transformer(expected);
  std::map<std::string, std::vector<int64_t>> listed;
  std::vector<std::string> sharing;
  for (const Json& parameter : names) {
    if (parameter.contains("shared_with")) {
      sharing.push_back(parameter.at("name"));
      EXPECT_EQ(parameter.at("shared_with"), "source_embedding.weight");
    } else {
      listed[parameter.at("name")] = parameter.at("shape").get<std::vector<int64_t>>();
    }
  }
  std::map<std::string, std::vector<int64_t>> named;
  for (const NamedParameter& p : named_parameters(*model))
    named[p.name] = {p.tensor->shape().begin(), p.tensor->shape().end()};
  EXPECT_EQ(listed, named);
  EXPECT_THAT(sharing, ElementsAre("target_embedding.weight", "projection.weight"));
  const std::string text = output_of({"inspect", config, "--parameters"});
  EXPECT_THAT(text, HasSubstr("[9, 32]  is source_embedding.weight"));
  EXPECT_THAT(refusal(run_attune({"inspect", model_, "--parameters", "--attention", "A dog."})),
              HasSubstr("--parameters: --attention writes an HTML page alone"));
}

TEST_F(CliTest, InspectReadsARunConfiguration) {
  const std::string config =
      file("run.toml", {"[model]", "d_model = 64", "layers = 3", "share_embeddings = true", "share_projection = true",
                        "[data]", "train_source = \"a\"", "train_target = \"b\"", "vocab_size = 500"});
  TransformerConfig expected;
  expected.source_vocab = expected.target_vocab = 500;
  expected.d_model = 64;
  expected.layers = 3;
  expected.share_embeddings = expected.share_projection = true;
  const Json json = Json::parse(output_of({"inspect", config, "--json"}));
  EXPECT_EQ(json.at("parameters").at("total"), count_parameters(expected).total());
  EXPECT_EQ(json.at("parameters").at("target_embedding"), 0);
  EXPECT_THAT(output_of({"inspect", config}), HasSubstr("data.vocab_size = 500"));
  const std::string sandwich = file(
      "sandwich.toml", {"[model]", "norm = \"sandwich\"", "[data]", "train_source = \"a\"", "train_target = \"b\""});
  EXPECT_THAT(output_of({"inspect", sandwich}), HasSubstr(", final\n"));
}

TEST_F(CliTest, InspectCountsTheBytesOfTheLargestModel) {
  const std::string config =
      file("large.toml",
           {"[model]", "architecture = \"decoder_lm\"", "vocab = 100", "d_model = 65536", "heads = 64", "layers = 1024",
            "d_ff = 1048576", "activation = \"swiglu\"", "feed_forward = {kind = \"experts\", experts = 4096}"});
  const Json json = Json::parse(output_of({"inspect", config, "--json"}));
  EXPECT_GT(json.at("memory_bytes").at("weights"), int64_t{1} << 60);
  EXPECT_EQ(json.at("memory_bytes").at("training"), std::numeric_limits<int64_t>::max());
}

TEST_F(CliTest, AttentionIsDrawnIntoOneFile) {
  const std::string html = (folder_ / "a.html").string();
  const std::string sentence = "The dog </script><script>alert(1)</script> & \"sleeps\".";
  output_of({"inspect", model_, "--attention", sentence, "--target", "The cat.", "--html", html});
  const std::string page = read_file(html);
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;sleeps&quot;."));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_FALSE(std::regex_search(page, std::regex("https?:|//[a-z]|src=|href=|@import|url\\(")));

  const std::string begin = "id=\"data\">";
  const size_t data = page.find(begin) + begin.size();
  const Json maps = Json::parse(page.substr(data, page.find("</script>", data) - data));
  const Translator translator = Translator::load(model_);
  const auto pieces = [&](std::vector<int32_t> ids) {
    std::vector<std::string> texts;
    for (const int32_t id : ids) texts.push_back(translator.source_tokenizer().piece(id));
    return texts;
  };
  std::vector<std::string> source = pieces(translator.source_tokenizer().encode(sentence));
  std::vector<std::string> target = pieces(translator.target_tokenizer().encode("The cat."));
  source.push_back("</s>");
  target.insert(target.begin(), "<s>");
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].at("keys"), source);
  EXPECT_EQ(maps[1].at("queries"), target);
  EXPECT_EQ(maps[2].at("queries"), target);
  EXPECT_EQ(maps[2].at("keys"), source);
  for (const Json& map : maps) {
    ASSERT_EQ(map.at("layers").size(), 2u);
    for (const Json& layer : map.at("layers")) {
      ASSERT_EQ(layer.size(), 4u);
      const size_t weights = map.at("queries").size() * map.at("keys").size();
      for (const Json& head : layer) EXPECT_EQ(head.get<std::string>().size(), 2 * weights);
    }
  }
  // The first token of the decoder sees itself alone: weight 1, then 0.
  EXPECT_EQ(maps[1].at("layers")[0][0].get<std::string>().substr(0, 4), "//AA");

  output_of({"inspect", model_, "--attention", "The dog sleeps.", "--html", html});
  EXPECT_THAT(read_file(html), HasSubstr("<dd>" + translate({"The dog sleeps."}, {"--beam-size", "1"}).at(0)));
}

TEST_F(CliTest, AnyBeamMayBeAskedOfAModelThatSearchesInGroups) {
  std::filesystem::copy(model_, folder_ / "grouped");
  Json generation = read_json_file(folder_ / "grouped" / "generation_config.json");
  generation["beam_size"] = generation["beam_groups"] = 4;
  write_json_file(folder_ / "grouped" / "generation_config.json", generation);
  const std::string grouped = (folder_ / "grouped").string(), html = (folder_ / "a.html").string();
  const std::string greedy = translate({"The dog sleeps."}, {"--beam-size", "1"}).at(0);
  EXPECT_EQ(output_of({"translate", grouped, "The dog sleeps.", "--beam-size", "1"}), greedy + "\n");
  output_of({"translate", grouped, "The dog sleeps.", "--beam-size", "3"});
  EXPECT_THAT(refusal_of({"translate", grouped, "a", "--beam-size", "3", "--beam-groups", "4"}),
              HasSubstr("beam_groups = 4"));
  output_of({"inspect", grouped, "--attention", "The dog sleeps.", "--html", html});
  EXPECT_THAT(read_file(html), HasSubstr("<dd>" + greedy));
}

TEST_F(CliTest, TokenizersAreTrainedAndUsed) {
  const std::vector<std::string> text = small_text(150);
  const std::string input = file("text", text);
  for (const std::string kind : {"unigram", "bpe", "whitespace"}) {
    const std::string name = (folder_ / (kind == "whitespace" ? "words.json" : kind + ".model")).string();
    EXPECT_THAT(
        output_of({"tokenizer", "train", "--input", input, "--output", name, "--kind", kind, "--vocab-size", "250"}),
        HasSubstr("250 tokens"));
    const auto tokenizer = load_tokenizer(name);
    EXPECT_EQ(tokenizer->vocab_size(), 250);
    EXPECT_THAT(output_of({"tokenizer", "info", name}), HasSubstr("250 tokens"));
    const std::vector<std::string> all = split_lines(output_of({"tokenizer", "info", name, "--pieces"}));
    ASSERT_EQ(all.size(), 250u);
    EXPECT_EQ(all[42], "42\t" + tokenizer->piece(42));

    const std::string ids = output_of({"tokenizer", "encode", name, "--ids"}, joined(text));
    std::vector<std::string> decoded;
    for (const std::string& line : text) decoded.push_back(tokenizer->decode(tokenizer->encode(line)));
    EXPECT_EQ(split_lines(output_of({"tokenizer", "decode", name}, ids)), decoded);
    EXPECT_EQ(kind == "whitespace", decoded != text) << "rare words are unknown, pieces spell everything";
  }
  EXPECT_EQ(output_of({"tokenizer", "decode", model_, "17", "18", "3"}),
            Translator::load(model_).source_tokenizer().decode(std::vector<int32_t>{17, 18}) + "\n");
  const std::string encoded = output_of({"tokenizer", "encode", model_, "The dog"});
  EXPECT_THAT(encoded, HasSubstr("\xE2\x96\x81The"));
  const std::string note = "attune: the tokenizer, " + model_ + ", is expected before the text\n";
  EXPECT_EQ(output_of({"tokenizer", "encode", "The dog", model_}, "", note), encoded);
  EXPECT_EQ(output_of({"tokenizer", "decode", "17", "18", model_}, "", note),
            output_of({"tokenizer", "decode", model_, "17", "18"}));
}

}  // namespace
}  // namespace attune

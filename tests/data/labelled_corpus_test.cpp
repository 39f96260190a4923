#include "attune/data/labelled_corpus.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "attune/base/file.h"
#include "attune/base/parallel.h"
#include "attune/data/batch_sampler.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/data/tokenizer_stub.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {

bool operator==(const LabelledText& a, const LabelledText& b) {
  return a.label == b.label && a.text == b.text;
}

namespace {

using Ids = std::vector<int32_t>;
using Texts = std::vector<LabelledText>;

class LabelledReading : public testing::Test {
 protected:
  Texts read(const std::string& name, const std::string& content, const LabelledReadOptions& options = {}) {
    write_file(folder_ / name, content);
    return read_labelled(folder_ / name, options);
  }
  /// The message of the error, without the folder.
  std::string error_of(const std::string& name, const std::string& content, const LabelledReadOptions& options = {}) {
    const std::string message = message_of<DataError>([&] { read(name, content, options); });
    const size_t place = message.find(name);
    return place == std::string::npos ? message : message.substr(place);
  }

  const LabelledReadOptions unlabelled_{.needs_label = false};
  TemporaryFolder folder_{memory_folder()};
};

TEST_F(LabelledReading, Tsv) {
  EXPECT_EQ(read("a.tsv", "pos\tgood \"film\"\n\nneg\tbad\tfilm\r\nneg\t"),
            (Texts{{"pos", "good \"film\""}, {"neg", "bad\tfilm"}, {"neg", ""}}));
  EXPECT_EQ(read("a.txt", ""), Texts{});
  EXPECT_EQ(error_of("a.tsv", "pos\tgood\nbad\n"), "a.tsv:2: has no tab, expected label<TAB>text");
  EXPECT_EQ(error_of("a.tsv", "\tgood\n"), "a.tsv:1: the label is empty");
  EXPECT_EQ(error_of("a.tsv", std::string(1001, 'x') + "\tgood\n"),
            "a.tsv:1: a label of 1001 bytes, at most 1000 are accepted");
  EXPECT_EQ(read("a.tsv", "good\n\nneg\tbad\n\tnone\n", unlabelled_),
            (Texts{{"", "good"}, {"", ""}, {"neg", "bad"}, {"", "none"}}));
}

TEST_F(LabelledReading, Csv) {
  EXPECT_EQ(
      read("a.csv",
           "\xEF\xBB\xBFid,text,label\r\n1,good,pos\r\n\r\n2,\"a \"\"bad\"\", long\r\n\r\nfilm\",neg\r\n3,,\"\"\"\""),
      (Texts{{"pos", "good"}, {"neg", "a \"bad\", long\n\nfilm"}, {"\"", ""}}));
  EXPECT_EQ(read("a.csv", "label,text\n0,\n1,\"\"\n"), (Texts{{"0", ""}, {"1", ""}}));
  EXPECT_EQ(read("a.csv", "sentence,stars\nfine,4\n", {.label_field = "stars", .text_field = "sentence"}),
            (Texts{{"4", "fine"}}));
  EXPECT_EQ(read("a.csv", "text\nfine\n\"\"\n", unlabelled_), (Texts{{"", "fine"}, {"", ""}}));
  EXPECT_EQ(read("a.csv", "text,label\nfine,\nbad,neg", unlabelled_), (Texts{{"", "fine"}, {"neg", "bad"}}));
}

TEST_F(LabelledReading, TextsKnowTheirLines) {
  const auto lines_of = [](const Texts& texts) {
    std::vector<int64_t> lines;
    for (const LabelledText& text : texts) lines.push_back(text.line);
    return lines;
  };
  using Lines = std::vector<int64_t>;
  const Texts texts = read("a.tsv", "pos\tgood\n\nneg\t\nneg\tbad\n");
  EXPECT_EQ(lines_of(texts), (Lines{1, 3, 4}));
  EXPECT_EQ(lines_of(read("a.csv", "text,label\nfine,1\n\"a\nb\",2\n")), (Lines{2, 4}));
  EXPECT_EQ(lines_of(read("a.jsonl", "\n{\"text\": \"a\", \"label\": 1}\n")), (Lines{2}));
  const LabelledCorpus corpus = encode_labelled(texts, {"neg", "pos"}, WhitespaceTokenizer({"good", "bad"}));
  ASSERT_EQ(corpus.examples.size(), 2u) << "a text without tokens is left out";
  EXPECT_EQ(corpus.examples[1].line, 4);
}

TEST_F(LabelledReading, ALabelThatIsUnknownIsNamedByFileAndLine) {
  write_file(folder_ / "a.tsv", "pos\tgood\n\n");
  write_file(folder_ / "b.tsv", "pos\tgood\n\nneg\tbad\n");
  const Texts texts = read_labelled(std::vector{folder_ / "a.tsv", folder_ / "b.tsv"});
  const auto error = [&](const std::vector<std::string>& labels, bool numbers) {
    return message_of<DataError>([&] {
      encode_labelled(texts, labels, WhitespaceTokenizer({"good", "bad"}), {.numbers = numbers});
    });
  };
  EXPECT_EQ(error({"pos"}, false), (folder_ / "b.tsv").string() + ":3: the label is \"neg\", expected one of pos");
  EXPECT_EQ(error({"score"}, true), (folder_ / "a.tsv").string() + ":1: the label is \"pos\", expected a number");
  const Texts unlabelled = read("c.tsv", "pos\tgood\n\tbad\n", unlabelled_);
  EXPECT_EQ(message_of<DataError>([&] { labels_of(unlabelled); }), (folder_ / "c.tsv").string() + ":2: has no label");
}

TEST_F(LabelledReading, CsvErrorsNameTheLine) {
  EXPECT_EQ(error_of("a.csv", ""), "a.csv:1: has no header line");
  EXPECT_EQ(error_of("a.csv", "id,text\n"), "a.csv:1: has no column \"label\", found id, text");
  EXPECT_EQ(error_of("a.csv", "a,b,c,d,e,f,g,h,i\n"),
            "a.csv:1: has no column \"text\", found a, b, c, d, e, f, g, h, ...");
  EXPECT_EQ(error_of("a.csv", "label,text,label\n"), "a.csv:1: has the column \"label\" twice");
  EXPECT_EQ(error_of("a.csv", "label,text\n1,\"a\nb\"\n2\n"), "a.csv:4: has 1 fields, expected 2 as in the header");
  EXPECT_EQ(error_of("a.csv", "label,text\n,x\n"), "a.csv:2: the label is empty");
  EXPECT_EQ(error_of("a.csv", "label,text\n1,a \"b\"\n"),
            "a.csv:2: a quote in a field without quotes around it: expected \"...\" with each quote doubled");
  EXPECT_EQ(error_of("a.csv", "label,text\n1,\"a\"b\n"),
            "a.csv:2: text follows a closing quote: expected a comma or the end of the line");
  EXPECT_EQ(error_of("a.csv", "label,text\n1,a\n2,\"b\nc\nd"), "a.csv:3: a quote is never closed");
  std::string endless = "label,text\n1,\"";
  for (int i = 0; i < 1000; ++i) endless += "line\n";
  EXPECT_EQ(error_of("a.csv", endless, {.limits = {.line_bytes = 100}}),
            "a.csv:2: the quote that begins here makes a record of more than 100 bytes");
}

TEST_F(LabelledReading, JsonLines) {
  EXPECT_EQ(read("a.jsonl", R"({"text": "good\n\u00e9", "label": "pos", "more": [[{"label": 1}]]})"
                            "\n\n"
                            R"({"label": -3, "text": ""})"
                            "\r\n"
                            R"({"label": true, "text": "x"})"),
            (Texts{{"pos", "good\né"}, {"-3", ""}, {"true", "x"}}));
  EXPECT_EQ(read("a.json", "{\"text\": \"a\"}\n{\"text\": \"b\", \"label\": null}\n", unlabelled_),
            (Texts{{"", "a"}, {"", "b"}}));
}

TEST_F(LabelledReading, JsonErrorsNameTheLine) {
  const auto error = [&](const std::string& line) { return error_of("a.jsonl", "\n" + line); };
  EXPECT_EQ(error("{\"text\": \"a\""), "a.jsonl:2: not valid JSON: expected one object a line");
  EXPECT_EQ(error("{} {}"), "a.jsonl:2: not valid JSON: expected one object a line");
  EXPECT_EQ(error(std::string(R"({"text": "a", "label": "x"})") + '\0' + "junk"),
            "a.jsonl:2: not valid JSON: expected one object a line");
  EXPECT_EQ(error("{\"label\": 1e999, \"text\": \"\"}"), "a.jsonl:2: not valid JSON: expected one object a line");
  EXPECT_EQ(error(R"({"text": "a", "label": "x", "text": "b"})"), R"(a.jsonl:2: has the field "text" twice)");
  EXPECT_EQ(error("[1]"), "a.jsonl:2: expected one JSON object a line, found array");
  EXPECT_EQ(error(R"({"id": 1, "label": "x"})"), R"(a.jsonl:2: has no field "text", found id, label)");
  EXPECT_EQ(error(R"({"id": {"label": 1}, "text": "x"})"), R"(a.jsonl:2: has no field "label", found id, text)");
  EXPECT_EQ(error(R"({"text": 5, "label": "x"})"), R"(a.jsonl:2: the field "text" is number, expected a string)");
  EXPECT_EQ(
      error(R"({"text": "a", "label": 1.5})"),
      R"(a.jsonl:2: the field "label" is a number with a fraction, expected a string, an integer, true or false)");
  EXPECT_EQ(error(R"({"text": "a", "label": null})"),
            R"(a.jsonl:2: the field "label" is null, expected a string, an integer, true or false)");
  EXPECT_EQ(error(R"({"text": "a", "label": ""})"), "a.jsonl:2: the label is empty");
  EXPECT_EQ(error(std::string(1 << 20, '[')), "a.jsonl:2: not valid JSON: expected one object a line");
  std::string many = "[{}";  // to look through them all after each would take minutes
  while (many.size() < (1 << 20) - 100) many += ",{}";
  EXPECT_EQ(error(many + "]"), "a.jsonl:2: expected one JSON object a line, found array");
  EXPECT_EQ(error("{\"text\": " + many + "]}"), "a.jsonl:2: the field \"text\" is array, expected a string");
}

TEST_F(LabelledReading, NumbersAreFinite) {
  const LabelledReadOptions numbers{.numbers = true}, maybe{.needs_label = false, .numbers = true};
  EXPECT_EQ(read("a.tsv", "3.8\tgood\n-2\tbad\n1e-3\tx\n", numbers),
            (Texts{{"3.8", "good"}, {"-2", "bad"}, {"1e-3", "x"}}));
  EXPECT_EQ(read("a.jsonl",
                 R"({"text": "a", "label": 3.8})"
                 "\n"
                 R"({"text": "b", "label": "-2"})"
                 "\n"
                 R"({"text": "c", "label": 5})",
                 numbers),
            (Texts{{"3.8", "a"}, {"-2", "b"}, {"5", "c"}}));
  EXPECT_EQ(read("a.csv", "text,label\na,\n", maybe), (Texts{{"", "a"}}));
  EXPECT_EQ(error_of("a.csv", "text,label\na,1.5\nb,good\n", numbers),
            "a.csv:3: the label \"good\" is no finite number");
  EXPECT_EQ(error_of("a.tsv", "nan\tgood\n", numbers), "a.tsv:1: the label \"nan\" is no finite number");
  EXPECT_EQ(error_of("a.tsv", "1e39\tgood\n", maybe), "a.tsv:1: the label \"1e39\" is no finite number");
  EXPECT_EQ(error_of("a.tsv", "\tgood\n", numbers), "a.tsv:1: the label is empty");
  EXPECT_EQ(error_of("a.jsonl", R"({"text": "a", "label": true})", numbers),
            R"(a.jsonl:1: the field "label" is boolean, expected a number)");
}

TEST_F(LabelledReading, KnowsTheFormatByTheName) {
  EXPECT_EQ(read("a.csv.gz", "label,text\n1,b\n").size(), 1u);  // plain under the name of gzip
  EXPECT_EQ(read("a.tsv.gz", "1\tb\n").size(), 1u);
  EXPECT_EQ(read("a.csv", "1\tb\n", {.format = LabelledFormat::tsv}).size(), 1u);
  EXPECT_EQ(error_of("a.parquet", ""),
            "a.parquet: the name does not tell the format, expected .tsv, .txt, .csv, .jsonl or .json");
  EXPECT_THROW(read("a.csv", "", {.label_field = "x", .text_field = "x"}), ConfigError);
  EXPECT_THROW(read_labelled(folder_ / "absent.csv"), FileError);
  EXPECT_EQ(read_labelled(std::vector{folder_ / "a.csv.gz", folder_ / "a.tsv.gz"}), (Texts{{"1", "b"}, {"1", "b"}}));
}

std::string generate_string() {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>("a", "\"", ",", "\n", "é", "\t", "\\", " "));
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

RC_GTEST_FIXTURE_PROP(LabelledReading, CsvAndJsonGiveBackWhatWasWritten, ()) {
  Texts texts;
  std::string csv = "text,\"label\"\n", jsonl;
  const auto quoted = [](const std::string& field) {
    if (field.find_first_of("\",\n") == std::string::npos) return field;
    std::string out = "\"";
    for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  };
  for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
    texts.push_back({"x" + generate_string(), generate_string()});
    csv += quoted(texts.back().text) + "," + quoted(texts.back().label) + "\n";
    jsonl += nlohmann::json{{"label", texts.back().label}, {"text", texts.back().text}}.dump() + "\n";
  }
  RC_ASSERT(read("a.csv", csv) == texts);
  RC_ASSERT(read("a.jsonl", jsonl) == texts);
}

TEST(LabelsOf, AreSortedAndDifferent) {
  EXPECT_EQ(labels_of(Texts{{"b", ""}, {"a", "x"}, {"b", "y"}, {"B", "z"}}), (std::vector<std::string>{"B", "a", "b"}));
  EXPECT_EQ(message_of<DataError>([] {
              labels_of(Texts{{"b", ""}, {"b", "x"}});
            }),
            "there are 1 different labels in 2 texts, expected 2 or more");
  EXPECT_EQ(message_of<DataError>([] { labels_of(Texts{{"b", ""}, {"", "x"}}); }), "text 2: has no label");
  EXPECT_THROW(labels_of({}), DataError);
}

TEST(EncodeLabelled, FramesAndCutsTexts) {
  const WhitespaceTokenizer tokenizer({"a", "b"});
  const Texts texts{{"no", "a b"}, {"yes", " "}, {"yes", "a b a b"}, {"no", "c b a"}};
  const LabelledCorpus corpus = encode_labelled(texts, {"yes", "no"}, tokenizer, {.max_tokens = 5});
  ASSERT_EQ(corpus.examples.size(), 3u);
  EXPECT_EQ(corpus.examples[0].tokens, (Ids{2, 4, 5, 3}));
  EXPECT_EQ(corpus.examples[1].tokens, (Ids{2, 4, 5, 4, 3}));
  EXPECT_EQ(corpus.examples[2].tokens, (Ids{2, 1, 5, 4, 3}));
  EXPECT_EQ(corpus.examples[0].label, 1);
  EXPECT_EQ(corpus.examples[1].label, 0);
  EXPECT_EQ(corpus.cut, 1);
  EXPECT_EQ(corpus.skipped_empty, 1);
}

TEST(EncodeLabelled, NamesWhatItCannotUse) {
  const WhitespaceTokenizer tokenizer({"a"});
  const auto error = [&](const Texts& texts, const std::vector<std::string>& labels) {
    return message_of<DataError>([&] { encode_labelled(texts, labels, tokenizer); });
  };
  EXPECT_EQ(error({{"0", "a"}, {"maybe", "a"}}, {"0", "1", "2", "3", "4", "5", "6", "7", "8"}),
            "text 2: the label is \"maybe\", expected one of 0, 1, 2, 3, 4, 5, 6, 7, ...");
  EXPECT_EQ(error({{"", "a"}}, {"0", "1"}), "text 1: the label is \"\", expected one of 0, 1");
  EXPECT_EQ(error({{"0", "a"}}, {"0", "0"}), "the label \"0\" is there twice");
  EXPECT_EQ(error({{"0", ""}}, {"0", "1"}), "no text is left (1 without tokens)");
  EXPECT_EQ(message_of<ConfigError>([&] {
              encode_labelled(Texts{{"0", "a"}}, {"0"}, tokenizer, {.max_tokens = 2});
            }),
            "max_tokens = 2 is not between 3 (bos, a token, eos) and 2147483647");
  EXPECT_EQ(encode_labelled(Texts{{"", "a"}}, {"0", "1"}, tokenizer, {.needs_label = false}).examples[0].label, -1);
  EXPECT_THROW(encode_labelled(Texts{{"2", "a"}}, {"0"}, tokenizer, {.needs_label = false}), DataError);
}

TEST(EncodeLabelled, NumbersStandBesideTheTokens) {
  const WhitespaceTokenizer tokenizer({"a", "b"});
  const Texts texts{{"3.75", "a b"}, {"9", " "}, {"-2", "b"}, {"", "a"}};
  const LabelledCorpus corpus = encode_labelled(texts, {"score"}, tokenizer, {.needs_label = false, .numbers = true});
  ASSERT_EQ(corpus.examples.size(), 3u);
  EXPECT_EQ(corpus.examples[0].value, 3.75F);
  EXPECT_EQ(corpus.examples[0].label, 0);
  EXPECT_EQ(corpus.examples[1].value, -2);
  EXPECT_EQ(corpus.examples[2].label, -1);
  EXPECT_EQ(pack(corpus.examples, Ids{1, 0}).values, (std::vector<float>{-2, 3.75F}));
  const auto error = [&](const Texts& wrong) {
    return message_of<DataError>([&] { encode_labelled(wrong, {"score"}, tokenizer, {.numbers = true}); });
  };
  EXPECT_EQ(error({{"1", "a"}, {"good", "a"}}), "text 2: the label is \"good\", expected a number");
  EXPECT_EQ(error({{"", "a"}}), "text 1: the label is \"\", expected a number");
}

// An example keeps only the place where type ids become 1; a trained model gets all type ids from the tokenizer.
TEST(EncodeLabelled, TypeIdsThatExamplesCannotHaveAreAnError) {
  class Types final : public TokenizerStub {
   public:
    explicit Types(Ids types) : TokenizerStub(SpecialIds()), types_(std::move(types)) {}
    Ids encode(std::string_view text) const override { return Ids(text.empty() ? 0 : types_.size(), 5); }
    Encoding encode_for_model(std::string_view text, const EncodeOptions&) const override {
      return {encode(text), text.empty() ? Ids{} : types_};
    }

   private:
    Ids types_;
  };
  const auto second_of = [](const Ids& types) {
    const Texts texts{{"0", "a"}};
    return encode_labelled(texts, {"0"}, Types(types), {.tokenizer_frames_texts = true}).examples[0].second;
  };
  EXPECT_EQ(second_of({0, 0, 0}), -1);
  EXPECT_EQ(second_of({0, 0, 1}), 2);
  EXPECT_EQ(second_of({1, 1, 1}), 0);
  EXPECT_TRUE(message_of<ConfigError>([&] {
                second_of({0, 0, 1, 0});
              }).starts_with("the tokenizer gives token 3 of a text the type id 0"));
  EXPECT_TRUE(message_of<ConfigError>([&] {
                second_of({0, 0, 2});
              }).starts_with("the tokenizer gives token 2 of a text the type id 2"));
}

TEST(EncodeLabelled, DoesNotDependOnTheThreads) {
  Texts texts;
  for (int i = 0; i < 500; ++i) texts.push_back({std::to_string(i % 3), "text " + std::to_string(i * 7919)});
  const ByteTokenizer tokenizer;
  const auto tokens_with = [&](int threads) {
    const ThreadScope scope(threads);
    std::vector<Ids> tokens;
    for (auto& example : encode_labelled(texts, labels_of(texts), tokenizer).examples) tokens.push_back(example.tokens);
    return tokens;
  };
  EXPECT_EQ(tokens_with(1), tokens_with(4));
}

TEST(PackLabelled, LaysTextsOneAfterTheOther) {
  const std::vector<LabelledExample> examples{{{2, 9, 3}, 1}, {{2, 3}, 0}, {{2, 8, 7, 3}, 2}};
  const LabelledBatch batch = pack(examples, Ids{2, 0});
  EXPECT_EQ(batch.tokens, (Ids{2, 8, 7, 3, 2, 9, 3}));
  EXPECT_EQ(batch.offsets, (Ids{0, 4, 7}));
  EXPECT_EQ(batch.labels, (Ids{2, 1}));
  EXPECT_EQ(batch.texts(), 2);
  EXPECT_EQ(pack(examples, {}).texts(), 0);
  EXPECT_EQ(message_of<DataError>([&] { pack(examples, Ids{3}); }), "example 3 is outside of the 3 examples");
  const BatchSampler sampler(lengths_of(examples), {.max_tokens = 5, .shuffle = false});
  EXPECT_EQ(sampler.epoch(0), (std::vector<Ids>{{0, 1}, {2}}));
}

}  // namespace
}  // namespace attune

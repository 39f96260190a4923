// attune translate on many lines: order, memory, malformed lines, and the end of readers and programs.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "attune/base/json_fields.h"
#include "attune/inference/decoding/shortlist.h"
#include "attune/inference/translator.h"
#include "tests/integration/cli_fixture.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TranslateStream : public CliFixture {
 protected:
  static std::vector<std::string> translated(const std::vector<std::string>& lines,
                                             const std::vector<std::string>& options = {}) {
    std::vector<std::string> arguments = {"translate", (*shared_ / "model").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return split_lines(output_of(arguments, joined(lines)));
  }
  static std::vector<std::string> many_lines(size_t count) {
    const std::vector<std::string> text = small_text(97);
    std::vector<std::string> lines;
    for (size_t i = 0; i < count; ++i) lines.push_back(text[i * 31 % 97]);
    return lines;
  }
};

TEST_F(TranslateStream, ManyLinesKeepTheirOrder) {
  std::vector<std::string> lines = many_lines(700);  // more than are read ahead
  lines[600] = "";
  const std::vector<std::string> distinct = translated(small_text(97), {"--beam-size", "2", "--batch-size", "97"});
  const std::vector<std::string> found =
      split_lines(output_of({"translate", model_, "--beam-size", "2", "--file", file("in", joined(lines))}));
  ASSERT_EQ(found.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(found[i], i == 600 ? "" : distinct[i * 31 % 97]) << i;
}

TEST_F(TranslateStream, SkippedLinesAreEmptyAndNamed) {
  std::vector<std::string> lines = many_lines(30);
  const std::vector<std::string> expected = translated(lines);
  lines[3] = "caf\xE9";
  lines[11] = std::string((1 << 20) + 100000, 'a');
  lines[12] = "";
  for (int i = 0; i < 1100; ++i) lines[20] += " dog";
  const std::string input = file("in", joined(lines));
  const CommandResult result = run_attune({"translate", model_, "--file", input, "--on-error", "skip"});
  EXPECT_EQ(result.status, 0);
  const std::vector<std::string> messages = split_lines(result.errors), found = split_lines(result.output);
  ASSERT_EQ(messages.size(), 4u) << result.errors;
  EXPECT_EQ(messages[0], "attune: " + input + ":4: the line is not valid UTF-8");
  EXPECT_EQ(messages[1], "attune: " + input + ":12: a line of more than 1048576 bytes");
  EXPECT_THAT(messages[2], AllOf(HasSubstr(input + ":21: "), HasSubstr("at most 1024")));
  EXPECT_EQ(messages[3], "attune: 3 of 30 lines were skipped");
  ASSERT_EQ(found.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i)
    EXPECT_EQ(found[i], i == 3 || i == 11 || i == 12 || i == 20 ? "" : expected[i]) << i;

  EXPECT_THAT(refusal(run_attune({"translate", model_, "--file", input})), HasSubstr(":4: "));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--on-error", "pray", "a"})), HasSubstr("--on-error pray"));
}

TEST_F(TranslateStream, SkippedLinesAreMarkedInJson) {
  std::string many_words;
  for (int i = 0; i < 1100; ++i) many_words += " dog";
  const std::string input = file("in", "The dog.\ncaf\xE9\n" + many_words + "\nThe cat.\n");
  const CommandResult result = run_attune({"translate", model_, "--file", input, "--on-error", "skip", "--json"});
  EXPECT_EQ(result.status, 0);
  const std::vector<Json> found = json_lines(result.output);
  ASSERT_EQ(found.size(), 4u);
  for (const size_t i : {0, 3}) EXPECT_FALSE(found[i].contains("error"));
  for (const size_t i : {1, 2}) {
    EXPECT_THAT(found[i].at("error").get<std::string>(), HasSubstr(fmt::format("in:{}: ", i + 1)));
    EXPECT_EQ(found[i].at("translations").at(0).at("finished"), false);
  }
  const CommandResult none = run_attune({"translate", model_, "--on-error", "skip", "caf\xE9"});
  EXPECT_EQ(none.status, 1);
  EXPECT_THAT(none.errors, HasSubstr("1 of 1 lines was skipped"));
}

TEST_F(TranslateStream, APageThatNobodyReadsEndsSilently) {
  const CommandResult result =
      run_command({"bash", "-c",
                   fmt::format("{{ sleep 0.5; '{}' train --describe-config; echo $? >&2; }} | true", attune_binary())});
  EXPECT_EQ(result.errors, "141\n");
}

// The reader takes one line and goes: no message, and the status that a shell gives a program which SIGPIPE ends.
TEST_F(TranslateStream, AReaderThatHasSeenEnough) {
  const std::string input = file("in", joined(many_lines(600)));
  const CommandResult result =
      run_command({"bash", "-c",
                   fmt::format("'{}' translate '{}' --beam-size 1 --file '{}' | head -n 1; echo ${{PIPESTATUS[0]}}",
                               attune_binary(), model_, input)});
  EXPECT_EQ(result.errors, "");
  const std::vector<std::string> lines = split_lines(result.output);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1], "141");
}

TEST_F(TranslateStream, AKilledProgramHasWrittenWholeLines) {
  const std::vector<std::string> lines = many_lines(4000);
  const std::string input = file("in", joined(lines)), output = (folder_ / "out").string();
  RunningCommand command({"bash", "-c",
                          fmt::format("exec '{}' translate '{}' --beam-size 1 --max-length 3 --file '{}' > '{}'",
                                      attune_binary(), model_, input, output)});
  std::error_code ignored;
  for (int i = 0; i < 6000 && std::filesystem::file_size(output, ignored) + 1 < 2; ++i)  // missing: -1
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  command.send(SIGKILL);
  EXPECT_EQ(command.wait().signal, SIGKILL);
  const std::string text = read_file(output);
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(text.back(), '\n');
  const std::vector<std::string> written = split_lines(text);
  EXPECT_LT(written.size(), lines.size());
  const std::string& last = lines[written.size() - 1];
  EXPECT_EQ(written.back(), translated({last}, {"--beam-size", "1", "--max-length", "3"}).at(0));
}

TEST_F(TranslateStream, PrefixesAndPhrases) {
  const std::vector<std::string> lines = small_text(6);
  const auto found = translated(lines, {"--prefixes", file("prefixes", "The dog\n\nThe\n\n\n\n"), "--require", "cat",
                                        "--ban", "the", "--max-length", "20", "--beam-size", "6"});
  ASSERT_EQ(found.size(), 6u);
  EXPECT_TRUE(found[0].starts_with("The dog")) << found[0];
  EXPECT_TRUE(found[2].starts_with("The")) << found[2];
  for (const std::string& line : found) EXPECT_THAT(line, HasSubstr("cat"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--prefixes", file("few", "The\n"), "a", "b"})),
              HasSubstr("few: has 1 lines, the text has more"));
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--early-stopping", "never", "a"})),
              HasSubstr("attune: --early-stopping never: needs one of bound, first, patience"));
}

TEST_F(TranslateStream, JsonSaysWhatTheLibrarySays) {
  const std::vector<std::string> lines = small_text(4);
  const Translator translator = Translator::load(model_);
  const auto expected = translator.translate(lines, {.n_best = 2, .alignments = true});
  const auto found = translated(lines, {"--json", "--n-best", "2", "--token-scores", "--alignments"});
  const auto columns = translated(lines, {"--token-scores", "--alignments"});
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(found[i]);
    EXPECT_EQ(json.at("line"), i + 1);
    ASSERT_EQ(json.at("translations").size(), expected[i].n_best.size());
    for (size_t n = 0; n < expected[i].n_best.size(); ++n) {
      const ScoredText& wanted = expected[i].n_best[n];
      const Json& t = json.at("translations")[n];
      EXPECT_EQ(t.at("text"), wanted.text);
      EXPECT_EQ(t.at("score"), wanted.score);
      EXPECT_EQ(t.at("finished"), wanted.finished);
      EXPECT_EQ(t.at("tokens").size(), wanted.tokens.size());
      EXPECT_EQ(t.at("token_log_probabilities").size(), wanted.tokens.size() + (wanted.finished ? 1 : 0));
      EXPECT_EQ(t.at("alignment"), pharaoh(wanted.alignment));
      EXPECT_NE(pharaoh(wanted.alignment), "");
    }
    EXPECT_THAT(columns[i],
                HasSubstr(fmt::format("{}\t{}\t-", expected[i].text(), pharaoh(expected[i].n_best[0].alignment))));
  }
}

TEST_F(TranslateStream, AShortlistIsLearnedAndUsed) {
  const std::vector<std::string> text = small_text(60);
  const std::string corpus = file("corpus", joined(text)), list = (folder_ / "list").string();
  EXPECT_THAT(output_of({"shortlist", model_, "--source", corpus, "--target", corpus, "--output", list, "--best", "2",
                         "--frequent", "5"}),
              HasSubstr("60 sentence pairs; a sentence has "));
  const Translator translator = Translator::load(model_);
  const auto shortlist = std::make_shared<const Shortlist>(Shortlist::load(list));
  const std::vector<std::string> lines = small_text(8);
  const auto expected = translator.translate(lines, {.shortlist = shortlist});
  const auto found = translated(lines, {"--shortlist", list});
  EXPECT_NE(found, translated(lines));
  ASSERT_EQ(found.size(), lines.size());
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(found[i], expected[i].text());
  EXPECT_THAT(refusal(run_attune({"translate", model_, "--shortlist", corpus, "a"})), HasSubstr("corpus"));
  EXPECT_THAT(refusal(run_attune(
                  {"shortlist", model_, "--source", corpus, "--target", corpus, "--output", list, "--best", "0"})),
              HasSubstr("best = 0"));
}

}  // namespace
}  // namespace attune

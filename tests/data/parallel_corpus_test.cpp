#include "attune/data/parallel_corpus.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "attune/base/file.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

// Words, with bos and eos around a text that a model reads.
class FramingTokenizer final : public Tokenizer {
 public:
  explicit FramingTokenizer(size_t most_decoded = SIZE_MAX) : most_decoded_(most_decoded) {
    special_ = {.pad = 0, .unk = 1, .bos = 2, .eos = 3};
  }
  Ids encode(std::string_view text) const override { return words_.encode(text); }
  Encoding encode_for_model(std::string_view text, const EncodeOptions&) const override {
    Ids ids = encode(text);
    ids.insert(ids.begin(), 2);
    ids.push_back(3);
    return {ids, Ids(ids.size())};
  }
  int32_t vocab_size() const override { return words_.vocab_size(); }
  std::string piece(int32_t id) const override { return words_.piece(id); }
  std::string kind() const override { return words_.kind(); }
  std::string file_name() const override { return words_.file_name(); }
  void save(const std::filesystem::path& file) const override { words_.save(file); }

 private:
  std::string join(const std::vector<int>& ids) const override {
    if (ids.size() > most_decoded_) throw std::length_error("decodes too many tokens");
    return words_.decode(ids);
  }
  WhitespaceTokenizer words_{{"a", "b", "c"}};
  size_t most_decoded_;
};

class ParallelCorpusFiles : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& name, const std::string& text) {
    write_file(folder_.path() / name, text);
    return folder_.path() / name;
  }

  TemporaryFolder folder_{memory_folder()};
  WhitespaceTokenizer english_{{"a", "b", "c"}};
  WhitespaceTokenizer german_{{"x", "y"}};
};

TEST_F(ParallelCorpusFiles, EncodesBothSidesWithEos) {
  const auto corpus =
      load_parallel_corpus({write("1.en", "a b\nc\n")}, {write("1.de", "x\ny z x\n")}, english_, german_);
  ASSERT_EQ(corpus.examples.size(), 2u);
  EXPECT_EQ(corpus.examples[0].source, (Ids{4, 5, 3}));
  EXPECT_EQ(corpus.examples[0].target, (Ids{4, 3}));
  EXPECT_EQ(corpus.examples[1].source, (Ids{6, 3}));
  EXPECT_EQ(corpus.examples[1].target, (Ids{5, 1, 4, 3}));
}

TEST_F(ParallelCorpusFiles, CountsWhatItLeavesOut) {
  const auto en = write("1.en", "a\n\na b c\na b\na\n");
  const auto de = write("1.de", "x\nx\nx\nx x x\n \n");
  const auto corpus = load_parallel_corpus({en}, {de}, english_, german_, {.max_tokens = 3});
  ASSERT_EQ(corpus.examples.size(), 1u);
  EXPECT_EQ(corpus.skipped_empty, 2);
  EXPECT_EQ(corpus.skipped_long, 2);
  const auto all = load_parallel_corpus({en}, {de}, english_, german_, {.max_tokens = 4, .skip_empty = false});
  ASSERT_EQ(all.examples.size(), 5u);
  EXPECT_EQ(all.examples[1].source, Ids{3});
  EXPECT_EQ(all.examples[4].target, Ids{3});
  EXPECT_EQ(all.skipped_empty + all.skipped_long, 0);
}

TEST_F(ParallelCorpusFiles, HoldsOutPairsAtEvenDistancesAcrossFiles) {
  const auto corpus = load_parallel_corpus({write("1.en", "a\nb\nc\n"), write("2.en", "a a\nb b\nc c\n")},
                                           {write("1.de", "x\nx\nx\n"), write("2.de", "y\ny\ny\n")}, english_, german_,
                                           {.held_out = 0.4});  // the third and the fifth
  ASSERT_EQ(corpus.examples.size(), 4u);
  EXPECT_EQ(corpus.examples[1].source, (Ids{5, 3}));
  EXPECT_EQ(corpus.examples[2].source, (Ids{4, 4, 3}));
  EXPECT_EQ(corpus.examples[2].target, (Ids{5, 3}));
  EXPECT_EQ(corpus.examples[3].source, (Ids{6, 6, 3}));
}

TEST_F(ParallelCorpusFiles, KeepsTheOrderOfManyLinesAndFiles) {
  std::string en, de;
  const int lines = 40'000;  // more than one block
  for (int i = 0; i < lines; ++i) {
    for (int bit = 0; bit < 16; ++bit)
      (en += (i >> bit & 1) != 0 ? "a " : "b "), de += (i >> bit & 1) != 0 ? "x " : "y ";
    en += "\n", de += "\n";
  }
  const auto corpus = load_parallel_corpus({write("1.en", en), write("2.en", "c\n")},
                                           {write("1.de", de), write("2.de", "x\n")}, english_, german_);
  ASSERT_EQ(corpus.examples.size(), size_t{lines} + 1);
  for (int i = 0; i < lines; ++i) {
    const auto& [source, target, links] = corpus.examples[static_cast<size_t>(i)];
    EXPECT_TRUE(links.empty());
    for (size_t bit = 0; bit < 16; ++bit) {
      ASSERT_EQ(source[bit], (i >> bit & 1) != 0 ? 4 : 5) << i;
      ASSERT_EQ(target[bit], (i >> bit & 1) != 0 ? 4 : 5) << i;
    }
  }
  EXPECT_EQ(corpus.examples.back().source, (Ids{6, 3}));
}

// Blocks are bounded by their bytes too: lines may have a MiB each.
TEST_F(ParallelCorpusFiles, ReadsLongLinesInSmallBlocks) {
  std::string en, de;
  for (int i = 0; i < 20; ++i) en += std::string(1 << 20, 'a') + "\n", de += "x\n";
  int blocks = 0;
  const ParallelCorpusOptions options{.on_read = [&](int64_t) { ++blocks; }};
  EXPECT_EQ(load_parallel_corpus({write("1.en", en)}, {write("1.de", de)}, english_, german_, options).examples.size(),
            20u);
  EXPECT_EQ(blocks, 2);
}

// Finding the links takes decoding.
TEST_F(ParallelCorpusFiles, WhatIsLeftOutIsNotAligned) {
  const FramingTokenizer framing(2);  // tokens that it decodes
  const auto en = write("1.en", "a b c a b c\n\na b\n"), de = write("1.de", "x\nx\nx\n");
  const auto align = write("1.align", "0-0\n\n1-0\n");
  const auto corpus = load_parallel_corpus({en}, {de}, framing, german_, {.max_tokens = 4, .alignments = {align}});
  ASSERT_EQ(corpus.examples.size(), 1u);
  EXPECT_EQ(corpus.examples[0].links, (std::vector<TokenLink>{{0, 1}}));
  EXPECT_EQ(corpus.skipped_long, 1);
  EXPECT_EQ(corpus.skipped_empty, 1);
}

TEST_F(ParallelCorpusFiles, LinksTheTokensOfAlignedWords) {
  const WhitespaceTokenizer pieces({"a@@", "b", "c"}, "@@");
  const auto en = write("1.en", "a@@ b c\nc c c c\n\nb c\n"), de = write("1.de", "x y\nx\nx\ny x\n");
  const auto align = write("1.align", "0-0 1-1 0-1 2-1\n3-0\n\n1-0\n");
  const auto corpus = load_parallel_corpus({en}, {de}, pieces, german_, {.max_tokens = 4, .alignments = {align}});
  ASSERT_EQ(corpus.examples.size(), 2u);  // a pair that is left out takes its alignment with it
  EXPECT_EQ(corpus.unaligned, 1);         // "a@@ b" is one word of the tokens and two of the text
  EXPECT_TRUE(corpus.examples[0].links.empty());
  EXPECT_EQ(corpus.examples[1].links, (std::vector<TokenLink>{{0, 1}}));

  const auto words = load_parallel_corpus({en}, {de}, english_, german_, {.max_tokens = 4, .alignments = {align}});
  EXPECT_EQ(words.unaligned, 0);
  EXPECT_EQ(words.examples[0].links, (std::vector<TokenLink>{{0, 0}, {1, 0}, {1, 1}, {1, 2}}));

  // <s> text </s>, and a target that begins with a language
  const FramingTokenizer framing;
  const ParallelCorpusOptions framed{
      .frame = {.by_tokenizer = true, .first = 5}, .max_tokens = 9, .alignments = {write("2.align", "0-0 2-1\n")}};
  const auto read =
      load_parallel_corpus({write("2.en", "a b c\n")}, {write("2.de", "x y\n")}, framing, german_, framed);
  ASSERT_EQ(read.examples.size(), 1u);
  EXPECT_EQ(read.examples[0].source, (Ids{2, 4, 5, 6, 3}));
  EXPECT_EQ(read.examples[0].target, (Ids{5, 4, 5, 3}));
  EXPECT_EQ(read.examples[0].links, (std::vector<TokenLink>{{1, 1}, {2, 3}}));
}

TEST_F(ParallelCorpusFiles, RefusesAlignmentsThatDoNotFit) {
  const auto en = write("1.en", "a b\nc\n"), de = write("1.de", "x\ny x\n");
  const auto refused = [&](const std::string& text) {
    const auto file = write("1.align", text);
    return message_of<DataError>([&] { load_parallel_corpus({en}, {de}, english_, german_, {.alignments = {file}}); });
  };
  const std::string name = (folder_.path() / "1.align").string();
  EXPECT_EQ(refused("0-0\n1-1\n"), name + ":2: 1-1 is outside of the sentences, which have 1 and 2 words");
  EXPECT_EQ(refused("0-0\n0;1\n"), name + ":2: \"0;1\" is no pair of words, needs two numbers as in 0-1");
  EXPECT_EQ(refused("0-0\n"), en.string() + " has 2 lines but " + name + " has 1");
  EXPECT_EQ(refused("0-0\n0-0\n\n"), en.string() + " has 2 lines but " + name + " has 3");
  const auto file = write("1.align", "0-0\n0-0\n");
  EXPECT_EQ(message_of<ConfigError>([&] {
              load_parallel_corpus({en}, {de}, english_, german_, {.alignments = {file, file}});
            }),
            "there are 1 source files but 2 files of alignments");
}

TEST_F(ParallelCorpusFiles, SaysHowManyLinesEachFileHas) {
  std::string hundred;
  for (int i = 0; i < 100; ++i) hundred += "a\n";
  const auto en = write("train.en", hundred);
  const auto de = write("train.de", hundred.substr(2));
  const std::string message = message_of<DataError>([&] { load_parallel_corpus({en}, {de}, english_, german_); });
  EXPECT_EQ(message, en.string() + " has 100 lines but " + de.string() + " has 99");
  EXPECT_EQ(message_of<DataError>([&] { load_parallel_corpus({de}, {en}, english_, german_); }),
            de.string() + " has 99 lines but " + en.string() + " has 100");
}

TEST_F(ParallelCorpusFiles, RefusesWhatCannotBeTrainedOn) {
  const auto en = write("1.en", "a a a\n\n"), de = write("1.de", "x\nx\n");
  const std::string message =
      message_of<DataError>([&] { load_parallel_corpus({en}, {de}, english_, german_, {.max_tokens = 2}); });
  EXPECT_TRUE(message.ends_with("no sentence pair is left (1 empty, 1 longer than 2 tokens)")) << message;
  EXPECT_EQ(message_of<ConfigError>([&] {
              load_parallel_corpus({en, en}, {de}, english_, german_);
            }),
            "there are 2 source files but 1 target files");
  EXPECT_THROW(load_parallel_corpus({}, {}, english_, german_), ConfigError);
  EXPECT_THROW(load_parallel_corpus({en}, {de}, english_, german_, {.max_tokens = 0}), ConfigError);
  const auto bad = write("bad.de", "x\n\xFF\n");
  EXPECT_TRUE(message_of<DataError>([&] {
                load_parallel_corpus({en}, {bad}, english_, german_);
              }).starts_with(bad.string() + ":2:"));
}

}  // namespace
}  // namespace attune

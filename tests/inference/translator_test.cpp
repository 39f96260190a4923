#include "attune/inference/translator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/translation_call.h"
#include "attune/nn/attention/latent_cost.h"
#include "attune/text/whitespace_tokenizer.h"
#include "tests/inference/decoding/wrapped_model.h"
#include "tests/inference/translator_fixture.h"
#include "tests/support/errors.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class TranslatorTest : public TranslatorFixture {};

TEST_F(TranslatorTest, AnInterruptAndATextOfMegabytesEndIt) {
  const std::atomic<bool> interrupt = true;
  EXPECT_THROW(translate({"a1 a2"}, {.interrupt = &interrupt}), Interrupted);
  EXPECT_THAT(message_of<DataError>([&] {
                translate({"a1", std::string(size_t{8} << 20, 'a')});
              }),
              HasSubstr("sentence 2: has 8388608 bytes, at most 1048576 are accepted"));
}

// A model whose steps are interrupted by a flag that is reset at once.
class BrieflyInterrupted final : public WrappedModel {
 public:
  BrieflyInterrupted(std::shared_ptr<const DecodingModel> model, std::atomic<bool>& flag)
      : WrappedModel(std::move(model)), flag_(flag) {}
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    flag_ = true;
    try {
      WrappedModel::step(input, cache, output);
    } catch (const Interrupted&) {
      flag_ = false;
      throw;
    }
  }

 private:
  std::atomic<bool>& flag_;
};

TEST_F(TranslatorTest, AnInterruptEndsItThoughItsFlagIsReset) {
  std::atomic<bool> interrupt = false;
  const std::shared_ptr<const Transformer> model(std::shared_ptr<const Transformer>(), &translator_.model());
  Scheduler scheduler(
      std::make_shared<BrieflyInterrupted>(std::make_shared<TranslationDecodingModel>(model), interrupt));
  TranslationCall call(translator_, scheduler, {.interrupt = &interrupt});
  call.add("a1 a2", {});
  EXPECT_THROW(
      {
        for (int i = 0; i < 20 && call.busy(); ++i) call.work();
      },
      Interrupted);
  EXPECT_FALSE(interrupt);
}

TEST_F(TranslatorTest, WhatFindsNothingIsNotFinished) {
  const Translation none = TranslationRequests(translator_, {}).translation({}, {7, 3});
  ASSERT_EQ(none.n_best.size(), 1u);
  EXPECT_FALSE(none.n_best.front().finished);
}

TEST_F(TranslatorTest, OthersAreMadeOfTheModelWhileOneTranslates) {
  const std::vector<std::string> lines = sentences(20);
  const auto expected = translate(lines);
  std::atomic<bool> done = false;
  std::thread maker([&] {
    while (!done) {
      const Translator other(model_, source_, target_, generation_);
      EXPECT_EQ(other.translate(lines[1]).text(), expected[1].text());
    }
  });
  for (int i = 0; i < 5; ++i) {
    const auto found = translate(lines);
    for (size_t n = 0; n < lines.size(); ++n) EXPECT_EQ(found[n].text(), expected[n].text());
  }
  done = true;
  maker.join();
}

TEST_F(TranslatorTest, IsBeamSearchBetweenTokenizers) {
  const auto found = translate({"a3 a1 unknown"}, {.n_best = 3}).at(0);
  const auto expected =
      beam_search(translator_.model(), pack_sentences({{7, 5, 1, 3}}), {.generation = generation_, .n_best = 3});
  ASSERT_EQ(found.n_best.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(found.n_best[i].tokens, expected[0][i].tokens);
    EXPECT_EQ(found.n_best[i].score, expected[0][i].score);
    EXPECT_EQ(found.n_best[i].finished, expected[0][i].finished);
    EXPECT_EQ(found.n_best[i].text, target_->decode(expected[0][i].tokens));
  }
  EXPECT_EQ(found.text(), found.n_best[0].text);
  EXPECT_THAT(found.n_best[0].text + found.n_best[1].text, HasSubstr("b"));
}

TEST_F(TranslatorTest, KeepsTheOrderWhateverTheBatches) {
  const std::vector<std::string> lines = sentences(70);
  std::vector<Translation> alone;
  for (const std::string& line : lines) alone.push_back(translate({line}).at(0));
  for (const TranslateOptions& options :
       {TranslateOptions{}, TranslateOptions{.batch_sentences = 7}, TranslateOptions{.batch_sentences = 1},
        TranslateOptions{.batch_tokens = 20}, TranslateOptions{.batch_tokens = 1}}) {
    const auto together = translate(lines, options);
    ASSERT_EQ(together.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(together[i].text(), alone[i].text()) << "sentence " << i;
      EXPECT_EQ(together[i].n_best[0].score, alone[i].n_best[0].score) << "sentence " << i;
    }
  }
  for (const uint64_t seed : {1, 2, 3}) {  // others beside a sentence, others before it, others when it enters
    std::vector<size_t> order(lines.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    Random(seed).shuffle(order);
    std::vector<std::string> shuffled;
    for (const size_t i : order) shuffled.push_back(lines[i]);
    const auto found = translate(shuffled, {.n_best = 3, .batch_sentences = static_cast<int64_t>(5 * seed)});
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(found[i].text(), alone[order[i]].text());
      EXPECT_EQ(found[i].n_best[0].score, alone[order[i]].n_best[0].score);
    }
  }
}

// Batches of 16 and more: each thread has sentences of its own.
TEST_F(TranslatorTest, ThreadsChangeNothing) {
  const std::vector<std::string> lines = sentences(90);
  const auto alone = [&] {
    const ThreadScope one(1);
    return translate(lines, {.n_best = 3, .batch_sentences = 1});
  }();
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    for (const TranslateOptions& options :
         {TranslateOptions{.n_best = 3, .batch_sentences = 15}, TranslateOptions{.n_best = 3, .batch_sentences = 16},
          TranslateOptions{.n_best = 3}, TranslateOptions{.n_best = 3, .batch_tokens = 30}}) {
      const auto together = translate(lines, options);
      for (size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(together[i].text(), alone[i].text()) << threads << " threads, sentence " << i;
        EXPECT_EQ(together[i].n_best[0].score, alone[i].n_best[0].score) << threads << " threads, sentence " << i;
      }
    }
  }
}

TEST_F(TranslatorTest, DemandsAreMet) {
  const std::vector<std::string> lines = {"a3 a1", "a5", "", "a7 a2 a9"};
  const auto plain = translate(lines);
  TranslateOptions options{.banned = {"b20 b21"}, .required = {"b3 b4"}};
  options.constraints.resize(4);
  options.constraints[1].prefix = "b9 b8";
  options.constraints[3].required = {"b11"};
  const auto found = translate(lines, options);
  for (const size_t i : {0, 1, 3}) EXPECT_THAT(found[i].text(), HasSubstr("b3 b4")) << i;
  EXPECT_TRUE(found[1].text().starts_with("b9 b8"));
  EXPECT_THAT(found[3].text(), HasSubstr("b11"));
  EXPECT_EQ(found[2].text(), "");
  EXPECT_EQ(translate({"a5"}, {.required = {"b3 b4"}, .constraints = {options.constraints[1]}})[0].text(),
            found[1].text());
  EXPECT_EQ(translate(lines)[0].text(), plain[0].text());
  EXPECT_THAT(message_of<ConfigError>([&] { translate(lines, {.required = {"c"}}); }),
              HasSubstr("required: \"c\" has what the target vocabulary does not"));
  EXPECT_THAT(message_of<ConfigError>([&] { translate(lines, {.banned = {" "}}); }), HasSubstr("banned: \" \""));
  EXPECT_THAT(message_of<ConfigError>([&] { translate(lines, {.constraints = {{}}}); }),
              HasSubstr("constraints: 1 for 4 sentences"));
  options.constraints[3].required = {"b1 b2 b3 b4 b5 b6 b7 b8 b9"};
  EXPECT_THAT(message_of<ConfigError>([&] { translate(lines, options); }),
              HasSubstr("sentence 4: prefix and required: 12 tokens with eos, max_length = 10"));
}

TEST_F(TranslatorTest, AlignmentsAreOfWords) {
  for (const Translation& t : translate({"a3 a1 a8", "a5"}, {.alignments = true})) {
    EXPECT_EQ(t.n_best[0].token_log_probabilities.size(), t.n_best[0].tokens.size() + (t.n_best[0].finished ? 1 : 0));
    for (const auto& [source, target] : t.n_best[0].alignment) {
      EXPECT_LT(source, 3);
      EXPECT_LT(target, static_cast<int32_t>(t.n_best[0].tokens.size()));
    }
  }
}

TEST_F(TranslatorTest, EmptySentencesStayEmpty) {
  EXPECT_TRUE(translate({}).empty());
  const auto found = translate({"", "a1 a2 a3", " \t "}, {.n_best = 2});
  ASSERT_EQ(found.size(), 3u);
  for (const size_t i : {size_t{0}, size_t{2}}) {
    ASSERT_EQ(found[i].n_best.size(), 1u);
    EXPECT_EQ(found[i].text(), "");
    EXPECT_TRUE(found[i].n_best[0].tokens.empty());
  }
  EXPECT_EQ(found[1].n_best.size(), 2u);
  EXPECT_EQ(found[1].text(), translate({"a1 a2 a3"}).at(0).text());
}

TEST_F(TranslatorTest, TellsItsProgress) {
  std::vector<int64_t> done;
  translate({"a1", "", "a2", "a3", "a4 a5"}, {.batch_sentences = 2, .progress = [&](int64_t d, int64_t total) {
                                                done.push_back(d);
                                                EXPECT_EQ(total, 5);
                                              }});
  ASSERT_FALSE(done.empty());
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_GT(done.size(), 1u);
  EXPECT_EQ(done.back(), 5);
}

TEST_F(TranslatorTest, ItsProgressCountsSentencesWithoutTokens) {
  std::vector<std::pair<int64_t, int64_t>> told;
  const TranslateOptions options{.progress = [&](int64_t done, int64_t total) { told.emplace_back(done, total); }};
  translate({"", " \t "}, options);
  EXPECT_EQ(told, (std::vector<std::pair<int64_t, int64_t>>{{2, 2}}));
  for (const std::vector<std::string>& pieces : {std::vector<std::string>{"a1 a2", ""}, std::vector<std::string>{""}}) {
    told.clear();
    size_t read = 0;
    translator_.translate({.read =
                               [&](bool wait) {
                                 std::vector<StreamedSentence> piece;
                                 if (wait && read < pieces.size()) piece.push_back({.text = pieces[read++]});
                                 return piece;
                               },
                           .write = [](const std::vector<Translation>&) {}},
                          options);
    const auto all = static_cast<int64_t>(pieces.size());
    ASSERT_FALSE(told.empty());
    EXPECT_EQ(told.back(), std::pair(all, all));
  }
}

TEST_F(TranslatorTest, HandsOverEachTranslationWhenItIsDone) {
  std::string longest = "a1", prefix = "b1";
  for (int i = 0; i < 24; ++i) longest += " a" + std::to_string(i), prefix += " b" + std::to_string(i);
  const std::vector<std::string> lines = {longest, "", "a1", "a2 a3", "a4", "a5"};
  std::vector<TranslationConstraints> constraints(lines.size());
  constraints[0].prefix = prefix;  // so that it takes more steps than the others may
  std::vector<size_t> order;
  std::vector<std::string> texts(lines.size());
  TranslateOptions options{.generation = GenerationConfig{.beam_size = 1, .max_length_offset = 4}};
  options.on_translation = [&](size_t index, const Translation& translation) {
    order.push_back(index);
    texts.at(index) = translation.text();
  };
  const auto expect_all = [&](const std::vector<Translation>& found) {
    ASSERT_EQ(found.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(texts[i], found[i].text()) << i;
    EXPECT_EQ(std::set<size_t>(order.begin(), order.end()).size(), lines.size());
    EXPECT_EQ(order.size(), lines.size());
    EXPECT_EQ(order.back(), 0u) << "the longest sentence ends last";
  };
  options.constraints = constraints;
  expect_all(translate(lines, options));
  options.constraints.clear();

  order.clear();
  texts.assign(lines.size(), "none");
  std::vector<Translation> written;
  std::vector<StreamedSentence> piece;
  for (size_t i = 0; i < lines.size(); ++i) piece.push_back({.text = lines[i], .constraints = constraints[i]});
  translator_.translate({.read = [&](bool) { return std::exchange(piece, {}); },
                         .write =
                             [&](std::vector<Translation> translations) {
                               for (Translation& t : translations) written.push_back(std::move(t));
                             }},
                        options);
  expect_all(written);

  order.clear();
  translate({"", " "}, options);
  EXPECT_EQ(order, (std::vector<size_t>{0, 1}));
}

TEST_F(TranslatorTest, OptionsReplaceTheModelsOwn) {
  const auto longest = [&](const TranslateOptions& options) {
    size_t most = 0;
    for (const Translation& t : translate(sentences(30), options)) most = std::max(most, t.n_best[0].tokens.size());
    return most;
  };
  EXPECT_GT(longest({}), 2u);
  EXPECT_EQ(longest({.generation = GenerationConfig{.beam_size = 1, .max_length = 2}}), 2u);
}

TEST_F(TranslatorTest, ADeadlineCutsShortWhatIsNotDone) {
  const std::vector<std::string> lines = {"a1 a2 a3", "a4", "a5 a6"};
  const auto now = std::chrono::steady_clock::now();
  const auto whole = translate(lines), in_time = translate(lines, {.deadline = now + std::chrono::hours(1)});
  const auto late = translate(lines, {.deadline = now});
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_FALSE(whole[i].cut_short);
    EXPECT_FALSE(in_time[i].cut_short);
    EXPECT_EQ(in_time[i].text(), whole[i].text());
    EXPECT_EQ(late[i].cut_short, FinishReason::deadline);
    ASSERT_EQ(late[i].n_best.size(), 1u);
    EXPECT_EQ(late[i].text(), "");
    EXPECT_FALSE(late[i].n_best[0].finished);
  }
}

TEST_F(TranslatorTest, RefusalsNameWhatIsWrong) {
  EXPECT_EQ(message_of<DataError>([&] {
              translate({"a1", "a1 a2 a3 a4"}, {.max_source_tokens = 3});
            }),
            "sentence 2: has 4 tokens, at most 3 are accepted");
  EXPECT_EQ(translate({"a1 a2 a3"}, {.max_source_tokens = 3}).size(), 1u);
  EXPECT_THAT(message_of<ConfigError>([&] { translate({"a1"}, {.n_best = 4}); }), HasSubstr("n_best = 4"));
  EXPECT_THAT(message_of<ConfigError>([&] { translate({}, {.batch_sentences = 0}); }),
              HasSubstr("batch_sentences = 0"));
  EXPECT_THAT(message_of<ConfigError>([&] { Translator(model_, source_, source_, generation_); }),
              HasSubstr("target tokenizer: has 40 tokens, but the model has target_vocab = 30"));
}

// The hypotheses of a beam over a short source are expanded.
TEST_F(TranslatorTest, LatentAttentionSearchesInBfloat16) {
  ASSERT_FALSE(absorbs({.heads = 4, .d_head = 8, .d_value = 8, .latent_dim = 24, .queries = 4, .slots = 3}));
  TransformerConfig c = config();
  c.cross_attention = c.decoder_attention = MultiHeadLatent{.latent_dim = 24};
  const std::shared_ptr<Transformer> model = random_model(c);
  token_bias(*model, 3) += 2;
  const GenerationConfig beam{.beam_size = 4, .max_length = 10};
  const Translator translator(model, source_, target_, beam);
  const Translator bfloat16(model, source_, target_, beam, {.precision = ProductPrecision::bfloat16});
  EXPECT_NEAR(bfloat16.translate("a1 a2").n_best[0].score, translator.translate("a1 a2").n_best[0].score, 0.3);
}

TEST_F(TranslatorTest, LearnedPositionsLimitTheSource) {
  TransformerConfig c = config();
  c.positions = LearnedPositions{.max_length = 4};
  const Translator translator(random_model(c), source_, target_, generation_);
  EXPECT_EQ(translator.translate(std::vector<std::string>{"a1 a2 a3"}).size(), 1u);  // and eos
  EXPECT_EQ(message_of<DataError>([&] {
              translator.translate(std::vector<std::string>{"a1", "a1 a2 a3 a4"});
            }),
            "sentence 2: has 4 tokens, at most 3 are accepted");
}

// One model, eight callers, each with options of its own.
TEST_F(TranslatorTest, ManyThreadsMayShareOne) {
  constexpr size_t kThreads = 8;
  const std::vector<std::string> lines = sentences(24);
  const auto options_of = [](size_t thread) {
    TranslateOptions options{.n_best = 2, .batch_sentences = static_cast<int64_t>(1 + 3 * thread)};
    options.generation = GenerationConfig{.beam_size = static_cast<int64_t>(2 + thread % 3), .max_length = 10};
    options.alignments = thread % 2 == 0;
    return options;
  };
  std::vector<std::vector<Translation>> alone, together(kThreads);
  for (size_t t = 0; t < kThreads; ++t) alone.push_back(translate(lines, options_of(t)));
  {
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t, copy = translator_] { together[t] = copy.translate(lines, options_of(t)); });
  }
  for (size_t t = 0; t < kThreads; ++t) {
    for (size_t i = 0; i < lines.size(); ++i) {
      ASSERT_EQ(together[t][i].n_best.size(), alone[t][i].n_best.size());
      for (size_t n = 0; n < alone[t][i].n_best.size(); ++n) {
        EXPECT_EQ(together[t][i].n_best[n].text, alone[t][i].n_best[n].text);
        EXPECT_EQ(together[t][i].n_best[n].score, alone[t][i].n_best[n].score);
      }
    }
  }
  EXPECT_EQ(translator_.scheduler().state().slots_in_use, 0);
}

TEST_F(TranslatorTest, TakesTextAsItComes) {
  const Translation one = translator_.translate("a1 a2");
  const std::string text = "a1 a2";
  EXPECT_EQ(translator_.translate(text).text(), one.text());
  EXPECT_EQ(translator_.translate({"a1 a2"}).at(0).text(), one.text());
  EXPECT_EQ(translator_.translate({"a3", "a1 a2"}).at(1).text(), one.text());
  EXPECT_EQ(translator_.translate(std::vector<std::string>{"a1 a2"}).at(0).text(), one.text());
  EXPECT_EQ(translator_.translate("").text(), "");
}

TEST_F(TranslatorTest, RefusesWhatIsNoUtf8) {
  EXPECT_EQ(message_of<DataError>([&] { translator_.translate({"a1", "a2 \xff"}); }), "sentence 2: is not valid UTF-8");
  EXPECT_EQ(message_of<DataError>([&] {
              translate({"a1", "a2 \xff"}, {.places = {"in:1", "in:5"}});
            }),
            "in:5: is not valid UTF-8");
  EXPECT_EQ(message_of<ConfigError>([&] {
              translate({"a1", "a2"}, {.places = {"in:1"}});
            }),
            "places: 1 for 2 sentences");
  std::vector<std::string> written, told;
  int pieces = 0;
  const auto read = [&](bool) {
    std::vector<StreamedSentence> piece;
    if (++pieces == 1) piece = {{.text = "a1"}, {.text = "\xff", .place = "news:2"}, {.text = "a2"}};
    return piece;
  };
  const auto write = [&](const std::vector<Translation>& translations) {
    for (const Translation& t : translations) written.push_back(t.text());
  };
  EXPECT_EQ(message_of<DataError>([&] { translator_.translate({.read = read, .write = write}); }),
            "news:2: is not valid UTF-8");
  EXPECT_EQ(written.size(), 1u);
  written.clear();
  pieces = 0;
  translator_.translate({.read = read, .write = write, .skip = [&](const std::string& what) { told.push_back(what); }});
  EXPECT_EQ(written,
            (std::vector<std::string>{translator_.translate("a1").text(), "", translator_.translate("a2").text()}));
  EXPECT_EQ(told, std::vector<std::string>{"news:2: is not valid UTF-8"});
}

TEST_F(TranslatorTest, AnErrorOfTheCallerEndsItsCallAlone) {
  const std::vector<std::string> lines = sentences(40);
  const TranslateOptions options{.batch_sentences = 4, .progress = [](int64_t, int64_t) { fail<DataError>("enough"); }};
  EXPECT_EQ(message_of<DataError>([&] { translate(lines, options); }), "enough");
  EXPECT_EQ(translator_.scheduler().state().slots_in_use, 0);
  EXPECT_EQ(translate(lines).size(), lines.size());

  int64_t calls = 0;
  const TranslateOptions ended{.batch_sentences = 4, .on_translation = [&](size_t, const Translation&) {
                                 if (++calls == 3) fail<DataError>("three are enough");
                               }};
  EXPECT_EQ(message_of<DataError>([&] { translate(lines, ended); }), "three are enough");
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(translator_.scheduler().state().slots_in_use, 0);
}

}  // namespace
}  // namespace attune

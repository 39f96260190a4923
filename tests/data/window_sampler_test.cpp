#include "attune/data/window_sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/errors.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;
using Windows = std::vector<Window>;
using ScoredWindows = std::vector<ScoredWindow>;

/// Documents of these lengths with ids 0, 1, 2, ...
TokenDocuments documents_of(const std::vector<int>& lengths) {
  TokenDocuments documents;
  for (const int length : lengths) {
    for (int i = 0; i < length; ++i) documents.ids.push_back(static_cast<int32_t>(documents.ids.size()));
    documents.offsets.push_back(documents.tokens());
  }
  return documents;
}

TokenDocuments generate_documents() {
  auto lengths = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 60));
  lengths.push_back(2);
  return documents_of(lengths);
}

/// Every id but the first of each document, which is what has to be predicted.
Ids predicted_ids(const TokenDocuments& documents) {
  Ids ids;
  for (int64_t i = 0; i < documents.documents(); ++i)
    for (const int32_t id : documents.document(i).subspan(std::min<size_t>(documents.document(i).size(), 1)))
      ids.push_back(id);
  return ids;
}

/// Whether input and label of every prediction are neighbours in the same document.
bool inside_documents(const TokenDocuments& documents, int64_t begin, int32_t length) {
  const auto end = std::upper_bound(documents.offsets.begin(), documents.offsets.end(), begin);
  return end != documents.offsets.end() && begin + length < *end;
}

RC_GTEST_PROP(WindowSampler, PredictsEveryIdOnceWithinTheBudgets, ()) {
  const TokenDocuments documents = generate_documents();
  const WindowSamplerOptions options{.context_length = *rc::gen::inRange(1, 30),
                                     .max_tokens = *rc::gen::inRange(1, 80),
                                     .seed = *rc::gen::arbitrary<uint64_t>(),
                                     .shuffle = *rc::gen::arbitrary<bool>()};
  const WindowSampler sampler(documents, options);
  const int64_t epoch = *rc::gen::inRange(0, 9);
  Ids labels;
  for (const Windows& windows : sampler.epoch(epoch)) {
    const LanguageModelBatch batch = pack(documents, windows);
    RC_ASSERT(!windows.empty());
    RC_ASSERT(windows.size() == 1 || batch.tokens() <= options.max_tokens);
    for (const Window& window : windows) {
      RC_ASSERT(window.length >= 1 && window.length <= options.context_length);
      RC_ASSERT(inside_documents(documents, window.begin, window.length));
    }
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  if (options.shuffle) std::sort(labels.begin(), labels.end());
  RC_ASSERT(labels == predicted_ids(documents));
  RC_ASSERT(WindowSampler(documents, options).epoch(epoch) == sampler.epoch(epoch));
}

TEST(WindowSampler, CutsAStreamElsewhereInEveryEpoch) {
  const TokenDocuments stream = documents_of({10'001});
  const auto sorted = [&](uint64_t seed, int64_t epoch) {
    Windows windows;
    for (const Windows& batch : WindowSampler(stream, {.context_length = 100, .seed = seed}).epoch(epoch))
      windows.insert(windows.end(), batch.begin(), batch.end());
    std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) { return a.begin < b.begin; });
    return windows;
  };
  std::set<int32_t> first_cuts;
  for (int64_t epoch = 0; epoch < 50; ++epoch) {
    const Windows windows = sorted(1, epoch);
    first_cuts.insert(windows[0].length);
    for (size_t i = 1; i + 1 < windows.size(); ++i) EXPECT_EQ(windows[i].length, 100);
  }
  EXPECT_GT(first_cuts.size(), 25u);
  EXPECT_LE(*first_cuts.rbegin(), 100);
  EXPECT_NE(sorted(1, 0), sorted(2, 0));
}

TEST(WindowSampler, MixesTheOrder) {
  const WindowSampler sampler(documents_of({10'001}), {.context_length = 10, .max_tokens = 10});
  const auto batches = sampler.epoch(0);
  size_t rising = 0;
  for (size_t i = 1; i < batches.size(); ++i) rising += batches[i][0].begin > batches[i - 1][0].begin;
  const double share = static_cast<double>(rising) / static_cast<double>(batches.size());
  EXPECT_GT(share, 0.4);
  EXPECT_LT(share, 0.6);
}

TEST(WindowSampler, UnshuffledKeepsTheOrder) {
  const TokenDocuments documents = documents_of({6, 1, 0, 3, 9});
  const WindowSampler sampler(documents, {.context_length = 4, .max_tokens = 6, .shuffle = false});
  const std::vector<Windows> expected{{{0, 4}, {4, 1}}, {{7, 2}, {10, 4}}, {{14, 4}}};
  EXPECT_EQ(sampler.epoch(0), expected);
  EXPECT_EQ(sampler.epoch(5), expected);
}

TEST(WindowSampler, NamesWhatItCannotUse) {
  const TokenDocuments documents = documents_of({5});
  EXPECT_EQ(message_of<ConfigError>([&] { WindowSampler(documents, {.context_length = 0}); }),
            "context_length = 0 is not between 1 and 2147483647");
  EXPECT_THROW(WindowSampler(documents, {.max_tokens = 0}), ConfigError);
  EXPECT_EQ(message_of<DataError>([] {
              WindowSampler(documents_of({1, 0, 1}), {});
            }),
            "3 documents of 2 tokens have nothing to predict, expected one of 2 tokens or more");
}

TEST(PackWindows, LabelsAreTheInputOneFurther) {
  const TokenDocuments documents{.ids = {5, 6, 7, 8, 9}, .offsets = {0, 5}};
  const LanguageModelBatch batch = pack(documents, Windows{{2, 2}, {0, 3}});
  EXPECT_EQ(batch.input, (Ids{7, 8, 5, 6, 7}));
  EXPECT_EQ(batch.labels, (Ids{8, 9, 6, 7, 8}));
  EXPECT_EQ(batch.offsets, (Ids{0, 2, 5}));
  EXPECT_EQ(batch.windows(), 2);
  EXPECT_EQ(pack(documents, ScoredWindows{{0, 3, 2}, {2, 2, 0}}).labels, (Ids{-1, -1, 8, 8, 9}));
  EXPECT_EQ(message_of<DataError>([&] {
              pack(documents, Windows{{3, 2}});
            }),
            "a window of 2 predictions at id 3 is not inside of 5 ids");
  for (const Window window : {Window{-1, 2}, Window{0, 0}, Window{0, -1}, Window{0, 5}, Window{INT64_MAX, 1}})
    EXPECT_THROW(pack(documents, Windows{window}), DataError);
}

TEST(SlidingWindows, AdvanceByTheStride) {
  const TokenDocuments documents = documents_of({8, 1, 3});
  EXPECT_EQ(sliding_windows(documents, 4, 2), (ScoredWindows{{0, 4, 0}, {2, 4, 2}, {4, 3, 2}, {9, 2, 0}}));
  EXPECT_EQ(sliding_windows(documents, 4, 4), (ScoredWindows{{0, 4, 0}, {4, 3, 0}, {9, 2, 0}}));
  EXPECT_EQ(message_of<ConfigError>([&] { sliding_windows(documents, 4, 5); }),
            "stride = 5 is not between 1 and context_length = 4");
  EXPECT_THROW(sliding_windows(documents, 4, 0), ConfigError);
  EXPECT_THROW(sliding_windows(documents, 0, 0), ConfigError);
}

RC_GTEST_PROP(SlidingWindows, CountEveryIdOnce, ()) {
  const TokenDocuments documents = generate_documents();
  const int64_t context = *rc::gen::inRange(1, 30), stride = *rc::gen::inRange<int64_t>(1, context + 1);
  const ScoredWindows windows = sliding_windows(documents, context, stride);
  for (const ScoredWindow& window : windows) {
    RC_ASSERT(inside_documents(documents, window.begin, window.length));
    RC_ASSERT(window.length <= context);
    RC_ASSERT(window.first_label == 0 || window.first_label >= context - stride);
    RC_ASSERT(window.first_label < window.length);
  }
  Ids counted = pack(documents, windows).labels;
  std::erase(counted, -1);
  RC_ASSERT(counted == predicted_ids(documents));
}

}  // namespace
}  // namespace attune

#include "attune/train/batch_prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "attune/base/fail.h"
#include "tests/support/errors.h"
#include "tests/support/wait.h"

namespace attune {
namespace {

// Three batches, of which one may fail. Counts how often they are formed and sent.
class CountingTask final : public TrainingTask {
 public:
  explicit CountingTask(int64_t bad = -1) : bad_(bad) {}
  int64_t batches() const override { return 3; }
  TrainingBatch batch(int64_t index, uint64_t /*forward*/, const BatchPart& /*part*/) const override {
    if (index == bad_) fail<DataError>("batch {} is bad", index);
    ++formed;
    TrainingBatch batch{.labels = index + 1, .tokens = 1, .loss = {}};
    batch.send = [this](const Device&, double) { ++sent; };
    return batch;
  }
  Module& model() override { throw std::logic_error("not asked"); }
  const TransformerConfig& model_config() const override { throw std::logic_error("not asked"); }
  const CorpusReport& corpus() const override { throw std::logic_error("not asked"); }
  const std::string& corpus_sha256() const override { throw std::logic_error("not asked"); }
  void begin_epoch(int64_t /*epoch*/) override {}
  ValidationReport validate(const ValidationWork& /*work*/) override { return {}; }
  void save_model(const std::filesystem::path& /*folder*/) override {}
  void save_tokenizers(const std::filesystem::path& /*folder*/) const override {}

  mutable std::atomic<int> formed = 0, sent = 0;

 private:
  int64_t bad_;
};

TEST(BatchPrefetch, SendsTheNextBatchAheadAndFormsEachOnce) {
  const CountingTask task;
  BatchPrefetch batches(task, {}, 1);
  EXPECT_EQ(batches.next(0, 0).at(0).labels, 1);
  batches.send_ahead(Plain{}, 0);  // waits until it is formed
  EXPECT_EQ(task.sent, 1);
  EXPECT_EQ(batches.next(1, 1).at(0).labels, 2);
  batches.send_ahead(Plain{}, 0);
  EXPECT_EQ(task.sent, 2);
  EXPECT_EQ(batches.next(2, 2).at(0).labels, 3);
  batches.send_ahead(Plain{}, 0);  // the epoch ends
  EXPECT_EQ(task.sent, 2);
  EXPECT_EQ(task.formed, 3);
}

TEST(BatchPrefetch, SendsNothingToTheHost) {
  const CountingTask task;
  BatchPrefetch batches(task, {}, 1);
  batches.next(0, 0);
  EXPECT_TRUE(becomes([&] { return task.formed == 2; }));
  for (int i = 0; i < 100; ++i) batches.send_ahead(Cpu{}, 0);
  EXPECT_EQ(task.sent, 0);
}

TEST(BatchPrefetch, WhatFailsIsSaidWhereTheBatchIsUsed) {
  const CountingTask task(1);
  BatchPrefetch batches(task, {}, 1);
  batches.next(0, 0);
  batches.send_ahead(Plain{}, 0);
  EXPECT_EQ(message_of<DataError>([&] { batches.next(1, 1); }), "batch 1 is bad");
}

}  // namespace
}  // namespace attune

#include "attune/serve/decoding_worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "attune/inference/translation_requests.h"
#include "tests/inference/decoding/counting_model.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace attune::serve {
namespace {

class DecodingWorkerTest : public ::testing::Test {
 protected:
  DecodingWorkerTest() {
    write_small_model(folder_.path());
    translator_.emplace(Translator::load(folder_.path()));
    requests_.emplace(*translator_, TranslateOptions{.batch_sentences = 64});
  }

  /// A request for each sentence, whose ends are noted as `name` in the order in which they come.
  std::vector<DecodingRequest> requests(const std::string& name, int64_t sentences,
                                        const std::shared_ptr<std::atomic<bool>>& cancel = nullptr) {
    std::vector<DecodingRequest> made;
    for (const std::string& sentence : small_text(sentences)) {
      DecodingRequest request = requests_->request(requests_->encode(sentence, "sentence"), {});
      request.cancel = cancel;
      request.on_done = [this, name](DecodingResult&& result) {
        const std::lock_guard lock(mutex_);
        ends_.push_back(name + (result.error ? " error" : result.cut_short ? " cut" : ""));
      };
      made.push_back(std::move(request));
    }
    return made;
  }
  std::vector<std::string> wait_for_ends(size_t count) {
    const auto found = [&] {
      const std::lock_guard lock(mutex_);
      return ends_;
    };
    becomes([&] { return found().size() >= count; }, 60);
    return found();
  }

  TemporaryFolder folder_;
  std::optional<Translator> translator_;
  std::optional<TranslationRequests> requests_;
  std::mutex mutex_;
  std::vector<std::string> ends_;
};

TEST_F(DecodingWorkerTest, ALargeRequestDoesNotKeepASmallOneWaiting) {
  DecodingWorker worker(translator_->scheduler(), {.places = 8, .threads = 1});
  worker.add("", requests("large", 150));
  wait_for_ends(1);
  worker.add("", requests("small", 1));
  const auto ends = wait_for_ends(151);
  ASSERT_EQ(ends.size(), 151u);
  const auto small = std::find(ends.begin(), ends.end(), "small") - ends.begin();
  EXPECT_LT(small, 100);
}

// A single sentence among requests of a thousand: no lane makes more than two steps before its source is read. Large
// requests leave a quarter of the places, and a place of it to the first sentence of each: half of it is for them here.
TEST_F(DecodingWorkerTest, ASingleSentenceEntersWithinTwoSteps) {
  constexpr int64_t kBatch = 16, kLanes = 2, kPlaces = kBatch * kLanes;
  requests_.emplace(*translator_, TranslateOptions{.batch_sentences = kBatch});
  const std::shared_ptr<const DecodingModel> of_translator(&translator_->scheduler().model(), [](const void*) {});
  const auto model = std::make_shared<CountingModel>(of_translator);
  std::atomic<int64_t> single = 0;  // sentences that are not done
  Scheduler scheduler(model);
  DecodingWorker worker(scheduler, {.places = kPlaces, .threads = kLanes});
  worker.add("a", requests("large", 1000));
  worker.add("b", requests("large", 1000));
  wait_for_ends(20);
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += "dog ";
    DecodingRequest request = requests_->request(requests_->encode(text, "sentence"), {});
    request.on_done = [&single](DecodingResult&&) { --single; };
    const std::vector<int32_t> source = request.source;
    std::vector<DecodingRequest> one;
    one.push_back(std::move(request));
    ASSERT_TRUE(becomes([&] { return single < kPlaces / 8; }));
    CountingModel::Steps before, after;
    {
      const std::lock_guard no_step(model->gate);
      if (worker.load().waiting < 500) worker.add("a", requests("large", 1000));
      before = model->steps;
      ++single;
      worker.add("b", std::move(one));
    }
    const auto entered = [&] {
      const std::lock_guard lock(model->gate);
      for (const auto& [found, steps] : model->entered) {
        if (found != source) continue;
        after = steps;
        return true;
      }
      return false;
    };
    ASSERT_TRUE(becomes(entered));
    EXPECT_LE(most_steps_between(before, after), 2) << "sentence " << i;
  }
}

TEST_F(DecodingWorkerTest, WhatIsCancelledEndsWhileItWaits) {
  DecodingWorker worker(translator_->scheduler(), {.places = 2, .threads = 1});
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  worker.add("a", requests("first", 20));
  worker.add("b", requests("second", 100, cancel));
  *cancel = true;
  const auto ends = wait_for_ends(120);
  EXPECT_EQ(std::count(ends.begin(), ends.end(), "first"), 20);
  EXPECT_GT(std::count(ends.begin(), ends.end(), "second cut"), 50);
  EXPECT_EQ(worker.load().running + worker.load().waiting, 0);
}

TEST_F(DecodingWorkerTest, WhatTheSchedulerRefusesEndsWithAnError) {
  DecodingWorker worker(translator_->scheduler(), {.places = 2, .threads = 1});
  std::vector<DecodingRequest> wrong = requests("wrong", 1), right = requests("right", 1);
  wrong.front().search = BeamSearchRequest(BeamSearchOptions{.n_best = 1 << 20});
  worker.add("", std::move(wrong));
  worker.add("", std::move(right));
  EXPECT_EQ(wait_for_ends(2), (std::vector<std::string>{"wrong error", "right"}));
}

TEST_F(DecodingWorkerTest, StopEndsAllRequests) {
  DecodingWorker worker(translator_->scheduler(), {.places = 2, .threads = 1});
  worker.add("", requests("x", 100));
  worker.stop();
  EXPECT_EQ(wait_for_ends(100).size(), 100u);
}

}  // namespace
}  // namespace attune::serve

#include "attune/serve/encoder_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <semaphore>
#include <thread>

#include "attune/base/execution.h"
#include "attune/base/fail.h"
#include "attune/serve/admission.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

// The number of a text's tokens; a text that begins with -1 fails.
std::vector<std::vector<float>> lengths(std::span<const Encoding> texts) {
  std::vector<std::vector<float>> numbers;
  for (const Encoding& text : texts) {
    if (text.ids.front() < 0) fail<NumericError>("not finite");
    numbers.push_back({static_cast<float>(text.ids.size())});
  }
  return numbers;
}

struct Result {
  std::vector<float> numbers;
  bool failed;
};

EncoderRequest request(std::vector<int32_t> ids, const std::shared_ptr<std::promise<Result>>& to) {
  return {.text = {.ids = std::move(ids), .type_ids = {}},
          .on_done = [to](std::vector<float> numbers, std::exception_ptr error) {
            to->set_value({std::move(numbers), error != nullptr});
          }};
}

TEST(EncoderWorker, OneTextsErrorIsNotThatOfOthers) {
  EncoderWorker worker(lengths, {.batch_texts = 8, .threads = 1});
  std::vector<std::shared_ptr<std::promise<Result>>> results;
  std::vector<EncoderRequest> requests;
  for (int i = 0; i < 20; ++i) {
    results.push_back(std::make_shared<std::promise<Result>>());
    requests.push_back(request(i == 3 ? std::vector<int32_t>{-1} : std::vector<int32_t>(i + 1, 5), results.back()));
  }
  worker.add("", std::move(requests));
  for (int i = 0; i < 20; ++i) {
    const Result result = results[i]->get_future().get();
    EXPECT_EQ(result.failed, i == 3);
    EXPECT_EQ(result.numbers, i == 3 ? std::vector<float>{} : std::vector<float>{static_cast<float>(i + 1)});
  }
}

TEST(EncoderWorker, WhatIsCancelledOrLateIsNotComputed) {
  std::atomic<int> computed{0};
  EncoderWorker worker(
      [&](std::span<const Encoding> texts) {
        computed += static_cast<int>(texts.size());
        return lengths(texts);
      },
      {.threads = 1});
  const auto cancelled = std::make_shared<std::promise<Result>>(), late = std::make_shared<std::promise<Result>>();
  std::vector<EncoderRequest> requests;
  requests.push_back(request({1}, cancelled));
  requests.back().cancel = std::make_shared<std::atomic<bool>>(true);
  requests.push_back(request({1}, late));
  requests.back().deadline = std::chrono::steady_clock::now();
  worker.add("", std::move(requests));
  EXPECT_TRUE(cancelled->get_future().get().failed);
  EXPECT_TRUE(late->get_future().get().failed);
  EXPECT_EQ(computed, 0);
}

TEST(EncoderWorker, WhatIsCancelledWhileItIsComputedIsGivenUp) {
  const auto cancel = std::make_shared<std::atomic<bool>>(false);
  std::atomic<int> layers{0};
  EncoderWorker worker(
      [&](std::span<const Encoding> texts) {
        for (; layers < 5; ++layers) {
          if (layers == 2) *cancel = true;
          stop_if_unwanted();
        }
        return lengths(texts);
      },
      {.threads = 1});
  const auto first = std::make_shared<std::promise<Result>>(), second = std::make_shared<std::promise<Result>>();
  std::vector<EncoderRequest> requests;
  for (const auto& result : {first, second}) {
    requests.push_back(request({1}, result));
    requests.back().cancel = cancel;
  }
  worker.add("", std::move(requests));
  EXPECT_TRUE(first->get_future().get().failed);
  EXPECT_TRUE(second->get_future().get().failed);
  EXPECT_EQ(layers, 2);
}

// Among texts of another request, when no more than one batch of two is computed.
TEST(EncoderWorker, WhatIsCancelledEndsWhileItWaits) {
  std::counting_semaphore<> batches(0);
  std::atomic<int> computed{0};
  const auto slow = [&](std::span<const Encoding> texts) {
    batches.acquire();
    computed += static_cast<int>(texts.size());
    return lengths(texts);
  };
  EncoderWorker worker(slow, {.batch_texts = 2, .threads = 1});
  std::vector<EncoderRequest> others, cancelled;
  for (int i = 0; i < 100; ++i)
    others.push_back({.text = {.ids = {1}, .type_ids = {}}, .on_done = [](const auto&, const auto&) {}});
  std::vector<std::shared_ptr<std::promise<Result>>> results;
  for (int i = 0; i < 50; ++i) {
    results.push_back(std::make_shared<std::promise<Result>>());
    cancelled.push_back(request({1}, results.back()));
    cancelled.back().cancel = std::make_shared<std::atomic<bool>>(true);
  }
  worker.add("", std::move(others));
  worker.add("", std::move(cancelled));
  batches.release();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  size_t ended = 0;
  for (const auto& result : results) {
    std::future<Result> future = result->get_future();
    ended += future.wait_until(end) == std::future_status::ready && future.get().failed ? 1 : 0;
  }
  EXPECT_EQ(ended, results.size());
  EXPECT_LE(computed, 2);
  batches.release(100);
}

// ThreadSanitizer watches: /metrics may be asked while the server stops.
TEST(EncoderWorker, ItsLoadMayBeAskedWhileItStops) {
  constexpr int kTexts = 200;
  std::counting_semaphore<> computing(0), go_on(0);
  const auto slow = [&](std::span<const Encoding> texts) {
    computing.release();
    go_on.acquire();
    return lengths(texts);
  };
  EncoderWorker worker(slow, {.batch_texts = 1, .threads = 1});
  std::vector<EncoderRequest> requests;
  std::atomic<int> ended{0};
  for (int i = 0; i < kTexts; ++i)
    requests.push_back({.text = {.ids = {1}, .type_ids = {}}, .on_done = [&](const auto&, const auto&) { ++ended; }});
  worker.add("", std::move(requests));
  computing.acquire();
  std::atomic<bool> stopped{false};
  std::thread asks([&] {
    while (!stopped) worker.load();
  });
  std::thread stops([&] { worker.stop(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // stop() waits for the text at work
  go_on.release(kTexts);
  stops.join();
  stopped = true;
  asks.join();
  EXPECT_EQ(ended, kTexts);
  EXPECT_EQ(worker.load().waiting, 0);
}

TEST(Admission, CountsRequestsOfAllAndOfEach) {
  const auto admission = std::make_shared<Admission>(2);
  const Client alice{.name = "alice", .requests = 1}, bob{.name = "bob"};
  auto first = admission->enter(alice);
  EXPECT_THROW(admission->enter(alice), HttpError);
  auto second = admission->enter(bob);
  EXPECT_THROW(admission->enter(bob), HttpError);
  first.reset();
  EXPECT_EQ(admission->requests(), 1);
  EXPECT_NO_THROW(admission->enter(alice));
}

}  // namespace
}  // namespace attune::serve

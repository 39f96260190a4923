#pragma once
// Runs of the trainer on several ranks, threads here.

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <utility>

#include "tests/support/in_process_ranks.h"
#include "tests/train/training_run.h"

namespace attune {

/// The same run on several ranks; what is returned is the first rank's. `library_calls`: see run_in_process().
inline TrainedRun train_on(int ranks, const RunConfig& config, const std::filesystem::path& folder, bool resume = false,
                           std::atomic<int64_t>* library_calls = nullptr) {
  TrainedRun first;
  const auto body = [&](Communicator& communicator) {
    const std::atomic<bool> stop{false};
    Recorder seen;
    const std::shared_ptr<Communicator> shared(&communicator, [](Communicator*) {});
    const TrainingResult result = Trainer(config, folder, seen, stop, shared).run(resume);
    if (communicator.rank() == 0) {
      first = {result, std::move(seen)};
    } else {
      EXPECT_TRUE(seen.steps.empty() && seen.messages.empty());
    }
  };
  run_in_process(ranks, body, library_calls);
  return first;
}

}  // namespace attune

#pragma once

#include <cstdint>
#include <future>
#include <vector>

#include "attune/tensor/device.h"
#include "attune/train/tasks/training_task.h"

namespace attune {

/// The batches of each update. While an update computes, another thread forms those of the next.
class BatchPrefetch {
 public:
  /// Each update has `accumulate` batches, of which it takes `part`. The task must outlive this.
  BatchPrefetch(const TrainingTask& task, const BatchPart& part, int64_t accumulate)
      : task_(task), part_(part), accumulate_(accumulate) {}

  /// The batches of the update after `step`, from batch `first` of the epoch on; fewer at the end of the epoch. The
  /// calls of an epoch follow each other without a gap.
  std::vector<TrainingBatch> next(int64_t first, int64_t step);
  /// Sends the first batch of the next update to the device, see TrainingBatch::send, unless the device is the host or
  /// the epoch ends. Waits until those batches are formed, as next() would: to be called when the device has all its
  /// work, and the caller has nothing to do but wait for it.
  void send_ahead(const Device& device, double r_drop) const;

 private:
  std::vector<TrainingBatch> form(int64_t first, int64_t step) const;

  const TrainingTask& task_;
  BatchPart part_;
  int64_t accumulate_;
  std::shared_future<std::vector<TrainingBatch>> prefetched_;  // the next update's, if they are of the same epoch
};

}  // namespace attune

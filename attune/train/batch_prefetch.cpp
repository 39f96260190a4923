#include "attune/train/batch_prefetch.h"

#include <algorithm>
#include <system_error>

#include "attune/base/parallel.h"

namespace attune {

std::vector<TrainingBatch> BatchPrefetch::form(int64_t first, int64_t step) const {
  const auto first_forward = static_cast<uint64_t>(step) * static_cast<uint64_t>(accumulate_);
  std::vector<TrainingBatch> batches;
  for (int64_t i = 0; i < std::min(accumulate_, task_.batches() - first); ++i)
    batches.push_back(task_.batch(first + i, first_forward + static_cast<uint64_t>(i), part_));
  return batches;
}

void BatchPrefetch::send_ahead(const Device& device, double r_drop) const {
  if (device.is_host() || !prefetched_.valid()) return;
  try {
    const std::vector<TrainingBatch>& batches = prefetched_.get();
    if (!batches.empty() && batches.front().send) batches.front().send(device, r_drop);
  } catch (...) {  // fails again where the batch is used
  }
}

std::vector<TrainingBatch> BatchPrefetch::next(int64_t first, int64_t step) {
  std::vector<TrainingBatch> batches = prefetched_.valid() ? prefetched_.get() : form(first, step);
  prefetched_ = {};
  const int64_t following = first + static_cast<int64_t>(batches.size());
  if (following >= task_.batches()) return batches;
  try {
    prefetched_ = std::async(std::launch::async, [this, following, step] {
                    const ThreadScope one(1);  // of this thread: the others are computing
                    return form(following, step + 1);
                  }).share();
  } catch (const std::system_error&) {  // the system has no thread for it: the next call forms them
  }
  return batches;
}

}  // namespace attune

#include "attune/inference/decoding/row_sampling.h"

#include "attune/base/fail.h"
#include "attune/tensor/dispatch.h"

namespace attune {
namespace {

void check_sampling_job(const SamplingJob& job) {
  const Tensor& logits = *job.logits;
  if (logits.rank() != 2 || logits.dtype() != DType::f32 || job.row < 0 || job.row >= logits.size(0) || job.size < 0 ||
      job.size > logits.size(1))
    fail<ShapeError>("sample_rows: needs float32 logits [rows, vocab], found {} {}, row {} of {} tokens",
                     name_of(logits.dtype()), logits.shape().text(), job.row, job.size);
  if (std::ssize(job.likeliest) > kMostLikeliest)
    fail<ShapeError>("sample_rows: needs at most {} of the likeliest tokens, found {}", kMostLikeliest,
                     job.likeliest.size());
  if (job.logits_aside.size() != job.set_aside.size() || job.drawn.size() != job.numbers.size())
    fail<ShapeError>("sample_rows: room for {} of {} logits set aside and {} of {} tokens", job.logits_aside.size(),
                     job.set_aside.size(), job.drawn.size(), job.numbers.size());
  if (!job.numbers.empty() && !job.wants_sum) fail<ShapeError>("sample_rows: numbers need the sum");
  for (const int32_t token : job.set_aside)
    if (token < 0 || token >= job.size)
      fail<ShapeError>("sample_rows: needs tokens set aside in [0, {}), found {}", job.size, token);
}

}  // namespace

void sample_rows(std::span<SamplingJob* const> jobs) {
  for (const SamplingJob* job : jobs) check_sampling_job(*job);
  if (jobs.empty()) return;
  dispatch(jobs.front()->logits->device(), [&](auto device) { sample_rows(device, jobs); });
}

}  // namespace attune

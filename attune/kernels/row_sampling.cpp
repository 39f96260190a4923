#include "attune/kernels/row_sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

// Simple loops that serve every device whose memory can be read with pointers: the CPU's sampling reads the row itself.

namespace attune {
namespace {

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

void exclude(std::span<float> row, std::span<const int32_t> tokens) {
  for (const int32_t token : tokens)
    if (token >= 0 && token < std::ssize(row)) row[static_cast<size_t>(token)] = kImpossible;
}

void find_largest(std::span<const float> row, SamplingJob& job) {
  job.possible = 0;
  job.largest = kImpossible;
  for (const float logit : row) {
    if (!(logit > kImpossible)) continue;
    ++job.possible;
    job.largest = std::max(job.largest, static_cast<double>(logit));
  }
}

double weight_of(const SamplingJob& job, float logit) {
  if (!(logit > kImpossible)) return 0;
  return std::exp((static_cast<double>(logit) - job.largest) / job.temperature);
}

void add_weights(std::span<const float> row, SamplingJob& job) {
  job.sum = 0;
  job.near_least = false;
  for (const float logit : row) {
    const double weight = weight_of(job, logit);
    if (weight >= job.least) job.sum += weight;
    if (weight < 1 && std::abs(weight - job.least) < kNearLeast * job.least) job.near_least = true;
  }
}

void draw_tokens(std::span<const float> row, const SamplingJob& job) {
  for (size_t n = 0; n < job.numbers.size(); ++n) {
    const double target = job.numbers[n] * job.sum;
    double before = 0;
    job.drawn[n] = {.token = -1, .before = 0, .after = 0};
    for (size_t i = 0; i < row.size(); ++i) {
      const double weight = weight_of(job, row[i]);
      if (weight < job.least) continue;
      if (target < before + weight) {
        job.drawn[n] = {.token = static_cast<int32_t>(i), .before = before, .after = before + weight};
        break;
      }
      before += weight;
    }
  }
}

void find_likeliest(std::span<const float> row, SamplingJob& job) {
  std::vector<SamplingJob::Likely> all;
  for (size_t i = 0; i < row.size(); ++i)
    if (row[i] > kImpossible) all.push_back({static_cast<int32_t>(i), row[i]});
  const auto better = [](const SamplingJob::Likely& a, const SamplingJob::Likely& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const size_t wanted = std::min(all.size(), job.likeliest.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(wanted), all.end(), better);
  std::copy_n(all.begin(), wanted, job.likeliest.begin());
  job.found = static_cast<int64_t>(wanted);
}

void sample_row(SamplingJob& job) {
  float* const begin = job.logits->data<float>() + job.row * job.logits->size(1);
  const std::span<float> row(begin, static_cast<size_t>(job.size));
  job.valid = std::ranges::all_of(row, [](float logit) { return logit < std::numeric_limits<float>::infinity(); });
  if (!job.valid) return;
  for (size_t i = 0; i < job.set_aside.size(); ++i) job.logits_aside[i] = row[static_cast<size_t>(job.set_aside[i])];
  exclude(row, job.excluded);
  exclude(row, job.more_excluded);
  exclude(row, job.set_aside);
  find_largest(row, job);
  if (job.wants_sum) add_weights(row, job);
  draw_tokens(row, job);
  find_likeliest(row, job);
  for (size_t i = 0; i < job.set_aside.size(); ++i) row[static_cast<size_t>(job.set_aside[i])] = job.logits_aside[i];
}

}  // namespace

void sample_rows(Cpu, std::span<SamplingJob* const> jobs) {
  for (SamplingJob* job : jobs) sample_row(*job);
}
void sample_rows(Plain, std::span<SamplingJob* const> jobs) {
  for (SamplingJob* job : jobs) sample_row(*job);
}

}  // namespace attune

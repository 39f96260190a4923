#include "attune/kernels/cpu/attention/attention_parts.h"

#include <algorithm>

#include "attune/base/rounding.h"
#include "attune/kernels/attention/attention_plan.h"

namespace attune {
namespace {

int64_t length(std::span<const int32_t> offsets, int64_t sequence) {
  const auto s = static_cast<size_t>(sequence);
  return offsets[s + 1] - offsets[s];
}

int64_t tiles_of(std::span<const int32_t> offsets, int64_t sequence) {
  return divide_up(length(offsets, sequence), kAttentionTile);
}

// Whether parts of tasks keep the threads so busy that the scores may be computed twice.
bool splitting_pays(const AttentionInputs& in, int threads) {
  constexpr int64_t kProductsOfTask = 5, kProductsOfParts = 7;
  int64_t longest = 0, all = 0;
  for (int64_t s = 0; s < in.sequences(); ++s) {
    const int64_t pairs = length(in.query_offsets, s) * length(in.key_offsets, s);
    longest = std::max(longest, pairs);
    all += pairs * in.k.heads;
  }
  return longest > kAttentionTile * kAttentionTile && kProductsOfTask * longest * threads > kProductsOfParts * all;
}

// Calls f(begin, end) for each run of at most kTilesOfPart tiles.
template <class F>
void for_each_run(int64_t tiles, F&& f) {
  for (int64_t begin = 0; begin < tiles; begin += kTilesOfPart) f(begin, std::min(begin + kTilesOfPart, tiles));
}

}  // namespace

std::vector<AttentionForwardPart> attention_forward_parts(const AttentionInputs& in) {
  std::vector<AttentionForwardPart> parts;
  parts.reserve(static_cast<size_t>(in.sequences() * in.k.heads));
  for (int64_t task = 0; task < in.sequences() * in.k.heads; ++task) {
    const int64_t tiles = tiles_of(in.query_offsets, task / in.k.heads) * (in.q.heads / in.k.heads);
    for_each_run(tiles, [&](int64_t begin, int64_t end) { parts.push_back({task, begin, end}); });
  }
  // Under a causal mask the last queries see the most keys. The longest parts go first.
  std::ranges::reverse(parts);
  return parts;
}

std::vector<AttentionBackwardPart> attention_backward_parts(const AttentionInputs& in, int threads) {
  const bool split = splitting_pays(in, threads);
  std::vector<AttentionBackwardPart> parts;
  parts.reserve(static_cast<size_t>(in.sequences() * in.k.heads));
  for (int64_t task = 0; task < in.sequences() * in.k.heads; ++task) {
    const int64_t queries = tiles_of(in.query_offsets, task / in.k.heads),
                  keys = tiles_of(in.key_offsets, task / in.k.heads);
    if (!split) {
      parts.push_back(
          {.task = task, .queries = {0, queries}, .keys = {0, keys}, .wants_dq = true, .wants_dk_dv = true});
      continue;
    }
    for_each_run(keys, [&](int64_t begin, int64_t end) {
      parts.push_back(
          {.task = task, .queries = {0, queries}, .keys = {begin, end}, .wants_dq = false, .wants_dk_dv = true});
    });
    for_each_run(queries, [&](int64_t begin, int64_t end) {
      parts.push_back(
          {.task = task, .queries = {begin, end}, .keys = {0, keys}, .wants_dq = true, .wants_dk_dv = false});
    });
  }
  return parts;
}

}  // namespace attune

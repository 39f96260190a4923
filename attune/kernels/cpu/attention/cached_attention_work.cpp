#include "attune/kernels/cpu/attention/cached_attention_work.h"

#include <algorithm>
#include <variant>

#include "attune/base/rounding.h"
#include "attune/kernels/cpu/attention/cached_attention_piece.h"

namespace attune {
namespace {

// append_positions() appends the positions up to the query's that the pattern allows, in rising order: those for which
// allows() is true. Its time depends only on how many they are.
void append_range(int64_t begin, int64_t end, std::vector<int32_t>& positions) {
  for (int64_t j = begin; j < end; ++j) positions.push_back(static_cast<int32_t>(j));
}
void append_positions(const FullAttention&, int64_t query, std::vector<int32_t>& positions) {
  append_range(0, query + 1, positions);
}
void append_positions(const SlidingWindow& p, int64_t query, std::vector<int32_t>& positions) {
  append_range(std::max<int64_t>(0, query - p.size + 1), query + 1, positions);
}
void append_positions(const StridedAttention& p, int64_t query, std::vector<int32_t>& positions) {
  for (int64_t j = query % p.stride; j <= query - p.stride; j += p.stride) positions.push_back(static_cast<int32_t>(j));
  append_range(std::max<int64_t>(0, query - p.stride + 1), query + 1, positions);
}
void append_positions(const FixedAttention& p, int64_t query, std::vector<int32_t>& positions) {
  const int64_t block = query - query % p.stride;
  for (int64_t end = p.stride; end <= block; end += p.stride) append_range(end - p.summary, end, positions);
  append_range(block, query + 1, positions);
}

bool same_slots(const CachedAttention& a, int64_t row, int64_t other) {
  const auto i = static_cast<size_t>(row), j = static_cast<size_t>(other);
  return a.begin[i] == a.begin[j] && a.end[i] == a.end[j];
}

}  // namespace

int64_t VisiblePositions::of_row(int64_t r) {
  const auto row = static_cast<size_t>(r);
  length_ = arguments_.end[row] - arguments_.begin[row];
  if (all_ || length_ == 0) return length_;
  if (row_ < 0 || !same_slots(arguments_, row_, r)) {
    positions_.clear();
    std::visit([&](const auto& p) { append_positions(p, length_ - 1, positions_); }, arguments_.pattern);
  }
  row_ = r;
  return static_cast<int64_t>(positions_.size());
}

CachedAttentionWork cached_attention_work(const CachedAttention& a) {
  CachedAttentionWork work;
  const int64_t rows = a.q.size(0), heads = a.q.size(1), d_k = a.q.size(2), d_v = a.out.size(2);
  const int64_t most_rows = std::max<int64_t>(1, kCachedAttentionQueries / heads);
  work.units.reserve(static_cast<size_t>(rows));
  VisiblePositions positions(a);
  for (int64_t r = 0; r < rows;) {
    int64_t count = 1;
    while (r + count < rows && count < most_rows && same_slots(a, r, r + count)) ++count;
    const int64_t seen = positions.of_row(r);
    const int64_t parts = std::max<int64_t>(1, divide_up(seen, kCachedAttentionSlots));
    for (int64_t part = 0; part < parts; ++part) work.units.push_back({r, count, part, parts, work.parts});
    if (parts > 1) work.parts += parts * count;
    work.products += count * heads * seen * (d_k + d_v);
    r += count;
  }
  return work;
}

}  // namespace attune

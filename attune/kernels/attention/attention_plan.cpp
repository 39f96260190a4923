#include "attune/kernels/attention/attention_plan.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

namespace attune {
namespace {

struct Range {
  int64_t begin, end;
};

// The range of consecutive keys around a query's position. Both ends rise with the position. Sizes are limited to the
// length of the sequence, so that nothing overflows.
Range nearby(const FullAttention&, int64_t, int64_t keys) {
  return {0, keys};
}
Range nearby_window(int64_t size, int64_t position, int64_t keys) {
  size = std::min(size, keys);
  return {std::max<int64_t>(position - size + 1, 0), std::min(position + size, keys)};
}
Range nearby(const SlidingWindow& p, int64_t position, int64_t keys) {
  return nearby_window(p.size, position, keys);
}
Range nearby(const StridedAttention& p, int64_t position, int64_t keys) {
  return nearby_window(p.stride, position, keys);
}
Range nearby(const FixedAttention& p, int64_t position, int64_t keys) {
  const int64_t begin = position / p.stride * p.stride;
  return {begin, p.stride < keys - begin ? begin + p.stride : keys};
}

// Returns how many of the gathered keys, FixedAttention's last positions of each block of `stride`, precede the key.
int64_t summaries_before(const FixedAttention& p, int64_t key) {
  return key / p.stride * p.summary + std::max<int64_t>(key % p.stride - (p.stride - p.summary), 0);
}
int64_t summary_key(const FixedAttention& p, int64_t index) {
  return index / p.summary * p.stride + p.stride - p.summary + index % p.summary;
}

class Planner {
 public:
  Planner(const AttentionSpan& span, const std::function<void(const AttentionBlock&)>& visit)
      : span_(span), visit_(visit) {}

  template <class P>
  void visit_nearby(const P& p) {
    const auto visible = [&](int64_t query) {
      const int64_t position = span_.position(query);
      const int64_t seen = span_.causal ? std::clamp<int64_t>(position + 1, 0, span_.keys) : span_.keys;
      const Range keys = nearby(p, position, span_.keys);
      return Range{keys.begin, std::min(keys.end, seen)};
    };
    for (int64_t first = 0; first < span_.queries; first += kAttentionTile) {
      set_queries(first, 1, span_.queries - first);
      const int64_t key_end = visible(first + block_.rows - 1).end;
      for (int64_t key = visible(first).begin / kAttentionTile * kAttentionTile; key < key_end; key += kAttentionTile) {
        block_.columns = std::min(kAttentionTile, key_end - key);
        std::iota(block_.keys.begin(), block_.keys.begin() + block_.columns, key);
        block_.dropout_group = key / kAttentionTile;
        for (int64_t t = 0; t < block_.rows; ++t) {
          const Range seen = visible(first + t);
          set_row(t, {seen.begin - key, seen.end - key}, {0, 0});
        }
        emit();
      }
    }
  }

  void visit_gathered(const FullAttention&) {}
  void visit_gathered(const SlidingWindow&) {}

  // Positions r, r + stride, r + 2 stride, ... Two different ones of them are at least `stride` apart.
  void visit_gathered(const StridedAttention& p) {
    if (p.stride >= span_.keys) return;
    const int64_t first_position = span_.position(0);
    for (int64_t r = 0; r < p.stride; ++r) {
      const int64_t members = (span_.keys - r + p.stride - 1) / p.stride;
      const int64_t first_member = first_position > r ? (first_position - r + p.stride - 1) / p.stride : 0;
      for (int64_t first = first_member; first < members; first += kAttentionTile) {
        set_queries(r + first * p.stride - first_position, p.stride, members - first);
        gather(
            span_.causal ? first + block_.rows : members, [&](int64_t index) { return r + index * p.stride; },
            [&](int64_t t) {
              return std::pair{span_.causal ? first + t : members, Range{first + t, first + t + 1}};
            });
      }
    }
  }

  void visit_gathered(const FixedAttention& p) {
    if (p.stride >= span_.keys) return;
    const int64_t summaries = summaries_before(p, span_.keys);
    const auto own = [&](int64_t query) { return span_.position(query) / p.stride * p.summary; };  // first of its block
    for (int64_t first = 0; first < span_.queries; first += kAttentionTile) {
      set_queries(first, 1, span_.queries - first);
      gather(
          span_.causal ? own(first + block_.rows - 1) : summaries, [&](int64_t index) { return summary_key(p, index); },
          [&](int64_t t) {
            const int64_t begin = own(first + t);
            return std::pair{span_.causal ? begin : summaries, Range{begin, begin + p.summary}};
          });
    }
  }

 private:
  void set_queries(int64_t first, int64_t step, int64_t count) {
    block_.rows = std::min(kAttentionTile, count);
    for (int64_t t = 0; t < block_.rows; ++t) block_.queries[static_cast<size_t>(t)] = first + t * step;
  }

  // Emits the blocks of the gathered keys key_of(0), ..., key_of(count - 1). seen_by(t) returns {end, gap}: query t
  // sees the keys with indices below `end` that are not in `gap`.
  template <class KeyOf, class SeenBy>
  void gather(int64_t count, KeyOf&& key_of, SeenBy&& seen_by) {
    for (int64_t first = 0; first < count; first += kAttentionTile) {
      block_.columns = std::min(kAttentionTile, count - first);
      for (int64_t u = 0; u < block_.columns; ++u) block_.keys[static_cast<size_t>(u)] = key_of(first + u);
      block_.dropout_group = kGatheredGroup + first / kAttentionTile;
      for (int64_t t = 0; t < block_.rows; ++t) {
        const auto [end, gap] = seen_by(t);
        set_row(t, {0, end - first}, {gap.begin - first, gap.end - first});
      }
      emit();
    }
  }

  void set_row(int64_t t, Range seen, Range gap) {
    const auto row = static_cast<size_t>(t);
    const auto bounded = [&](int64_t column) { return std::clamp<int64_t>(column, 0, block_.columns); };
    block_.begin[row] = bounded(seen.begin);
    block_.end[row] = std::max(bounded(seen.end), block_.begin[row]);
    block_.gap_begin[row] = std::clamp(bounded(gap.begin), block_.begin[row], block_.end[row]);
    block_.gap_end[row] = std::clamp(bounded(gap.end), block_.gap_begin[row], block_.end[row]);
  }

  // Leaves out blocks in which no query sees a key.
  void emit() {
    for (size_t t = 0; t < static_cast<size_t>(block_.rows); ++t) {
      if (block_.end[t] - block_.begin[t] > block_.gap_end[t] - block_.gap_begin[t]) {
        visit_(block_);
        return;
      }
    }
  }

  const AttentionSpan span_;
  const std::function<void(const AttentionBlock&)>& visit_;
  AttentionBlock block_{};
};

int64_t gathered_column(int64_t index) {
  return kGatheredGroup * kAttentionTile + index;
}

int64_t column_of(const FullAttention&, int64_t, int64_t key) {
  return key;
}
int64_t column_of(const SlidingWindow&, int64_t, int64_t key) {
  return key;
}
int64_t column_of(const StridedAttention& p, int64_t query, int64_t key) {
  return std::abs(query - key) < p.stride ? key : gathered_column(key / p.stride);
}
int64_t column_of(const FixedAttention& p, int64_t query, int64_t key) {
  return query / p.stride == key / p.stride ? key : gathered_column(summaries_before(p, key));
}

}  // namespace

void for_each_block(const AttentionPattern& pattern, const AttentionSpan& span,
                    const std::function<void(const AttentionBlock&)>& visit) {
  std::visit(
      [&](const auto& p) {
        Planner planner(span, visit);
        planner.visit_nearby(p);
        planner.visit_gathered(p);
      },
      pattern);
}

int64_t dropout_column(const AttentionPattern& pattern, int64_t query, int64_t key) {
  return std::visit([&](const auto& p) { return column_of(p, query, key); }, pattern);
}

}  // namespace attune

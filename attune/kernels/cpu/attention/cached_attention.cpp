#include "attune/kernels/attention/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/attention/cached_attention_piece.h"
#include "attune/kernels/cpu/attention/cached_attention_work.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

using Unit = CachedAttentionUnit;
constexpr int64_t kMostQueries = kCachedAttentionQueries;

// What all units share. Parts of a list leave their results here until they are put together.
template <class T>
struct Call {
  const CachedAttention& in;
  int64_t heads, kv_heads, group, d_k, d_v;
  const T* q;
  T* out;
  T* weights;        // or null
  bool by_distance;  // scores or values depend on how far a slot is
  const T* bias;     // row of distance 0 of the distance bias, or null
  int64_t reach;
  std::vector<T> partial_out, partial_largest, partial_total;  // [parts, heads, d_v], [parts, heads], [parts, heads]

  Call(const CachedAttention& a, int64_t parts)
      : in(a),
        heads(a.q.size(1)),
        kv_heads(a.kv_heads),
        group(heads / kv_heads),
        d_k(a.q.size(2)),
        d_v(a.out.size(2)),
        q(a.q.data<T>()),
        out(a.out.data<T>()),
        weights(data_or_null<T>(a.weights)),
        by_distance(!a.slopes.empty() || a.relative_keys.defined() || a.relative_values.defined() ||
                    a.distance_bias.defined()),
        bias(data_or_null<T>(a.distance_bias)),
        reach(bias ? a.distance_bias.size(0) / 2 : 0),
        partial_out(static_cast<size_t>(parts * heads * d_v)),
        partial_largest(static_cast<size_t>(parts * heads)),
        partial_total(partial_largest.size()) {
    if (bias != nullptr) bias += reach * heads;
  }

  int64_t partial_index(const Unit& unit, int64_t row, int64_t part, int64_t head) const {
    return (unit.first_part + row * unit.parts + part) * heads + head;
  }
  T* weights_of(int64_t row, int64_t head) const { return weights + (row * heads + head) * in.weights.size(2); }
};

// Units one after another, and the memory that they share.
template <class T>
class Worker {
 public:
  explicit Worker(Call<T>& call) : call_(call), positions_(call.in) {}

  void attend(const Unit& unit) {
    const Call<T>& c = call_;
    const int64_t seen = positions_.of_row(unit.row);
    if (seen == 0) {
      std::fill_n(c.out + unit.row * c.heads * c.d_v, unit.rows * c.heads * c.d_v, T{0});
      return;
    }
    gather(unit, seen);
    for (int64_t head = 0; head < c.heads;) {
      const int64_t end = c.group > kMostQueries ? std::min(head + kMostQueries, (head / c.group + 1) * c.group)
                                                 : std::min(c.heads, head + kMostQueries / c.group * c.group);
      attend(unit, head, end);
      head = end;
    }
  }

  // Joins the results of the parts of each row's list, each scaled to the largest score of all parts.
  void join(const Unit& unit) {
    for (int64_t r = 0; r < unit.rows; ++r) {
      for (int64_t h = 0; h < call_.heads; ++h) join(unit, r, h);
    }
  }

 private:
  void gather(const Unit& unit, int64_t seen) {
    const Call<T>& c = call_;
    first_ = unit.part * kCachedAttentionSlots;
    slots_ = std::min(kCachedAttentionSlots, seen - first_);
    const int32_t* slots = c.in.slots.data() + c.in.begin[static_cast<size_t>(unit.row)];
    const Pages &keys = c.in.keys, &values = c.in.values;
    for (int64_t j = 0; j < slots_; ++j) {
      const int32_t slot = slots[positions_.position(first_ + j)];
      key_rows_[j] = keys.row<T>(slot);
      value_rows_[j] = values.row<T>(slot);
      if (c.by_distance) distances_[j] = positions_.distance(first_ + j);
    }
  }

  // Query heads [begin, end): all of some key heads, or some of one.
  void attend(const Unit& unit, int64_t begin, int64_t end) {
    const Call<T>& c = call_;
    const int64_t of_key_head = std::min(c.group, end - begin);
    const int64_t kv_heads = (end - begin) / of_key_head;
    list_queries(unit, begin, end, of_key_head);
    cached_attention_piece(CachedAttentionPiece<T>{.q = q_,
                                                   .out = out_rows_,
                                                   .key_rows = key_rows_,
                                                   .value_rows = value_rows_,
                                                   .first_key_head = begin / c.group,
                                                   .kv_heads = kv_heads,
                                                   .group = of_key_head * unit.rows,
                                                   .slots = slots_,
                                                   .d_k = c.d_k,
                                                   .d_v = c.d_v,
                                                   .value_stride = c.in.values.width() / c.kv_heads,
                                                   .scale = static_cast<T>(c.in.scale),
                                                   .distances = c.by_distance ? distances_ : nullptr,
                                                   .slopes = c.in.slopes.empty() ? nullptr : slopes_,
                                                   .relative_keys = data_or_null<T>(c.in.relative_keys),
                                                   .relative_values = data_or_null<T>(c.in.relative_values),
                                                   .clip = c.in.clip,
                                                   .biases = c.bias != nullptr ? biases_ : nullptr,
                                                   .bias_stride = c.heads,
                                                   .reach = c.reach,
                                                   .soft_cap = static_cast<T>(c.in.soft_cap),
                                                   .normalize = unit.parts == 1,
                                                   .weights = weights_,
                                                   .largest = largest_,
                                                   .total = total_});
    if (unit.parts > 1 || c.weights != nullptr) keep(unit, kv_heads * of_key_head * unit.rows);
  }

  void list_queries(const Unit& unit, int64_t begin, int64_t end, int64_t of_key_head) {
    Call<T>& c = call_;
    int64_t at = 0;
    for (int64_t first = begin; first < end; first += of_key_head) {
      for (int64_t r = 0; r < unit.rows; ++r) {
        for (int64_t h = first; h < first + of_key_head; ++h, ++at) {
          const int64_t query = (unit.row + r) * c.heads + h;
          row_[at] = r;
          head_[at] = h;
          q_[at] = c.q + query * c.d_k;
          out_rows_[at] = unit.parts == 1 ? c.out + query * c.d_v
                                          : c.partial_out.data() + c.partial_index(unit, r, unit.part, h) * c.d_v;
          if (c.bias != nullptr) biases_[at] = c.bias + h;
          if (!c.in.slopes.empty()) slopes_[at] = static_cast<T>(c.in.slopes[static_cast<size_t>(h)]);
        }
      }
    }
  }

  void keep(const Unit& unit, int64_t queries) {
    for (int64_t i = 0; i < queries; ++i) {
      if (unit.parts > 1) {
        const auto at = static_cast<size_t>(call_.partial_index(unit, row_[i], unit.part, head_[i]));
        call_.partial_largest[at] = largest_[i];
        call_.partial_total[at] = total_[i];
      }
      if (call_.weights == nullptr) continue;
      T* kept = call_.weights_of(unit.row + row_[i], head_[i]);
      const T factor = unit.parts > 1 ? T{1} : T{1} / divisor_of(total_[i]);
      for (int64_t j = 0; j < slots_; ++j)
        kept[positions_.position(first_ + j)] = weights_[i * kCachedAttentionSlots + j] * factor;
    }
  }

  void join(const Unit& unit, int64_t r, int64_t h) {
    const Call<T>& c = call_;
    const auto at = [&](int64_t part) { return static_cast<size_t>(c.partial_index(unit, r, part, h)); };
    T largest = c.partial_largest[at(0)], total = 0;
    for (int64_t part = 1; part < unit.parts; ++part) largest = std::max(largest, c.partial_largest[at(part)]);
    if (largest == -std::numeric_limits<T>::infinity()) largest = 0;  // no part sees a key: its factors are 0, not NaN
    T* out = c.out + ((unit.row + r) * c.heads + h) * c.d_v;
    std::fill_n(out, c.d_v, T{0});
    for (int64_t part = 0; part < unit.parts; ++part) {
      const T factor = std::exp(c.partial_largest[at(part)] - largest);
      const T* from = c.partial_out.data() + at(part) * static_cast<size_t>(c.d_v);
      for (int64_t i = 0; i < c.d_v; ++i) out[i] += factor * from[i];
      total += factor * c.partial_total[at(part)];
    }
    total = divisor_of(total);
    for (int64_t i = 0; i < c.d_v; ++i) out[i] /= total;
    if (c.weights == nullptr) return;
    const int64_t seen = positions_.of_row(unit.row);
    T* kept = c.weights_of(unit.row + r, h);
    for (int64_t j = 0; j < seen; ++j)
      kept[positions_.position(j)] *= std::exp(c.partial_largest[at(j / kCachedAttentionSlots)] - largest) / total;
  }

  Call<T>& call_;
  VisiblePositions positions_;
  int64_t first_ = 0, slots_ = 0;  // of the positions that the row sees: where the part begins, how many it has
  const T* key_rows_[kCachedAttentionSlots];
  const T* value_rows_[kCachedAttentionSlots];
  int32_t distances_[kCachedAttentionSlots];
  int64_t row_[kMostQueries], head_[kMostQueries];  // of the queries of a piece
  const T* q_[kMostQueries];
  T* out_rows_[kMostQueries];
  const T* biases_[kMostQueries];  // where the bias of distance 0 stands
  T slopes_[kMostQueries], largest_[kMostQueries], total_[kMostQueries];
  alignas(64) T weights_[kMostQueries * kCachedAttentionSlots];
};

template <class T>
void attend(const CachedAttention& arguments) {
  const CachedAttentionWork work = cached_attention_work(arguments);
  Call<T> call(arguments, work.parts);
  const auto units = static_cast<int64_t>(work.units.size());
  // A thread is worth waking for some tens of microseconds.
  constexpr int64_t kWorthAThread = int64_t{1} << 18;
  const int64_t grain = std::max<int64_t>(1, kWorthAThread * units / std::max<int64_t>(1, work.products));
  parallel_for(units, grain, [&](int64_t begin, int64_t end) {
    Worker<T> worker(call);
    for (int64_t i = begin; i < end; ++i) worker.attend(work.units[static_cast<size_t>(i)]);
  });
  if (work.parts == 0) return;
  parallel_for(units, grain, [&](int64_t begin, int64_t end) {
    Worker<T> worker(call);
    for (int64_t i = begin; i < end; ++i) {
      const Unit& unit = work.units[static_cast<size_t>(i)];
      if (unit.parts > 1 && unit.part == 0) worker.join(unit);
    }
  });
}

}  // namespace

void cached_attention_forward(Cpu, const CachedAttention& arguments) {
  dispatch_floating("cached_attention", arguments.q.dtype(), [&]<class T>(T) { attend<T>(arguments); });
}

}  // namespace attune

#include "attune/ops/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/kernels/cached_attention.h"
#include "attune/ops/attention.h"
#include "attune/ops/relative_tables.h"

namespace attune {
namespace {

// The places from 0 to that of the query which the pattern allows, rising; the same as asking allows() for each of
// them, in time that depends on how many there are alone.
void append_range(int64_t begin, int64_t end, std::vector<int32_t>& places) {
  for (int64_t j = begin; j < end; ++j) places.push_back(static_cast<int32_t>(j));
}
void append_places(const FullAttention&, int64_t query, std::vector<int32_t>& places) {
  append_range(0, query + 1, places);
}
void append_places(const SlidingWindow& p, int64_t query, std::vector<int32_t>& places) {
  append_range(std::max<int64_t>(0, query - p.size + 1), query + 1, places);
}
void append_places(const StridedAttention& p, int64_t query, std::vector<int32_t>& places) {
  for (int64_t j = query % p.stride; j <= query - p.stride; j += p.stride) places.push_back(static_cast<int32_t>(j));
  append_range(std::max<int64_t>(0, query - p.stride + 1), query + 1, places);
}
void append_places(const FixedAttention& p, int64_t query, std::vector<int32_t>& places) {
  const int64_t block = query - query % p.stride;
  for (int64_t end = p.stride; end <= block; end += p.stride) append_range(end - p.summary, end, places);
  append_range(block, query + 1, places);
}

// One pass without a branch, since every step of decoding makes it; the slot at fault is looked for afterwards.
void check_slots(std::span<const int32_t> list, int64_t slots) {
  bool fits = true;
  for (const int32_t slot : list) fits &= slot >= 0 && slot < slots;
  if (fits) return;
  for (const int32_t slot : list)
    if (slot < 0 || slot >= slots) fail<ShapeError>("cached_attention: slot {} of {}", slot, slots);
}

bool same_slots(const SlotTable& table, size_t a, size_t b) {
  return table.begin[a] == table.begin[b] && table.end[a] == table.end[b];
}

void check_table(const SlotTable& table, size_t rows, int64_t slots) {
  if (table.begin.size() != rows || table.end.size() != rows)
    fail<ShapeError>("cached_attention: q has {} rows but the table has {}", rows, table.begin.size());
  for (size_t r = 0; r < rows; ++r) {
    if (r > 0 && same_slots(table, r, r - 1)) continue;
    if (table.begin[r] < 0 || table.end[r] < table.begin[r] || static_cast<size_t>(table.end[r]) > table.slots.size())
      fail<ShapeError>("cached_attention: row {} reads slots [{}, {}) of {}", r, table.begin[r], table.end[r],
                       table.slots.size());
    check_slots({table.slots.data() + table.begin[r], static_cast<size_t>(table.end[r] - table.begin[r])}, slots);
  }
}

// What all rows share.
struct Call {
  const Tensor& q;
  const PagedRows& keys;
  const PagedRows& values;
  const SlotTable& table;
  const CachedAttentionOptions& options;
  int64_t heads, kv_heads, d_k, d_v;
  int64_t value_stride = 0;         // from the values of a key head to those of the next
  std::vector<double> slopes = {};  // of each head
  bool by_distance = false;         // scores or values depend on how far a slot is

  void check() const;
  int64_t clip() const { return relative_clip(options.relative_keys, options.relative_values); }
};

void Call::check() const {
  if (q.rank() != 3 || heads < 1 || kv_heads < 1 || heads % kv_heads != 0 || keys.width() != kv_heads * d_k ||
      values.width() % kv_heads != 0 || keys.size() != values.size())
    fail<ShapeError>("cached_attention: q {} does not fit {} keys of {} and {} values of {} in {} heads",
                     q.shape().text(), keys.size(), keys.width(), values.size(), values.width(), kv_heads);
  if (keys.dtype() != q.dtype() || values.dtype() != q.dtype())
    fail<ShapeError>("cached_attention: q is {}, keys {}, values {}", name_of(q.dtype()), name_of(keys.dtype()),
                     name_of(values.dtype()));
  if (options.d_v < 0 || options.d_v > values.width() / kv_heads)
    fail<ShapeError>("cached_attention: d_v = {} but values of {} in {} heads have {}", options.d_v, values.width(),
                     kv_heads, values.width() / kv_heads);
  check_table(table, static_cast<size_t>(q.size(0)), keys.size());
  check_pattern("cached_attention", options.pattern);
  check_relative_tables("cached_attention", options.relative_keys, options.relative_values, q.dtype(), d_k, d_v);
}

Call call_of(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
             const CachedAttentionOptions& options) {
  const int64_t kv_heads = options.kv_heads;
  Call call{.q = q,
            .keys = keys,
            .values = values,
            .table = table,
            .options = options,
            .heads = q.rank() == 3 ? q.size(1) : 0,
            .kv_heads = kv_heads,
            .d_k = q.rank() == 3 ? q.size(2) : 0,
            .d_v = options.d_v};
  if (kv_heads > 0) call.value_stride = values.width() / kv_heads;
  if (call.d_v == 0) call.d_v = call.value_stride;
  call.check();
  if (options.alibi) call.slopes = alibi_slopes(call.heads);
  call.by_distance = options.alibi || options.relative_keys.defined() || options.relative_values.defined();
  return call;
}

constexpr int64_t kMostQueries = 64;  // of a piece: their weights lie on the stack

// Rows that see the same slots, and the slots of theirs that are read at once.
struct Unit {
  int64_t row, rows;
  int64_t part, parts;  // the list is read in so many parts, where this is one of
  int64_t first_part;   // of these rows, among the parts of all rows
};

// The places that the rows of a unit see, where a pattern leaves some out.
class Places {
 public:
  explicit Places(const Call& call) : call_(call), all_(std::holds_alternative<FullAttention>(call.options.pattern)) {}

  // How many places row r sees; afterwards place() is about this row.
  int64_t of_row(int64_t r) {
    const auto row = static_cast<size_t>(r);
    length_ = call_.table.end[row] - call_.table.begin[row];
    if (all_ || length_ == 0) return length_;
    if (row_ < 0 || !same_slots(call_.table, static_cast<size_t>(row_), row)) {
      places_.clear();
      std::visit([&](const auto& p) { append_places(p, length_ - 1, places_); }, call_.options.pattern);
    }
    row_ = r;
    return static_cast<int64_t>(places_.size());
  }
  int32_t place(int64_t j) const { return all_ ? static_cast<int32_t>(j) : places_[static_cast<size_t>(j)]; }
  int32_t distance(int64_t j) const { return static_cast<int32_t>(length_) - 1 - place(j); }

 private:
  const Call& call_;
  bool all_;
  int64_t row_ = -1, length_ = 0;
  std::vector<int32_t> places_;
};

int64_t parts_of(int64_t places) {
  return std::max<int64_t>(1, (places + kCachedAttentionSlots - 1) / kCachedAttentionSlots);
}

struct Work {
  std::vector<Unit> units;
  int64_t parts = 0;     // of all rows that have several; 0: none has
  int64_t products = 0;  // multiplications and additions of all units
};

// Parts depend on a row's own slots alone, so that no other row and no number of threads changes a result.
Work work_of(const Call& call) {
  Work work;
  const int64_t rows = call.q.size(0), most_rows = std::max<int64_t>(1, kMostQueries / call.heads);
  work.units.reserve(static_cast<size_t>(rows));
  Places places(call);
  for (int64_t r = 0; r < rows;) {
    int64_t count = 1;
    while (r + count < rows && count < most_rows &&
           same_slots(call.table, static_cast<size_t>(r), static_cast<size_t>(r + count)))
      ++count;
    const int64_t seen = places.of_row(r), parts = parts_of(seen);
    for (int64_t part = 0; part < parts; ++part) work.units.push_back({r, count, part, parts, work.parts});
    if (parts > 1) work.parts += parts * count;
    work.products += count * call.heads * seen * (call.d_k + call.d_v);
    r += count;
  }
  return work;
}

// What the parts of a list leave until they are put together.
template <class T>
struct PartialResults {
  std::vector<T> out;             // [parts, heads, d_v]
  std::vector<T> largest, total;  // [parts, heads]

  PartialResults(const Call& call, int64_t parts)
      : out(static_cast<size_t>(parts * call.heads * call.d_v)),
        largest(static_cast<size_t>(parts * call.heads)),
        total(largest.size()) {}
};

int64_t partial_index(const Call& call, const Unit& unit, int64_t row, int64_t part, int64_t head) {
  return (unit.first_part + row * unit.parts + part) * call.heads + head;
}

template <class T>
T* kept_weights(const Call& call, int64_t row, int64_t head) {
  const Tensor& kept = *call.options.weights;
  return kept.data<T>() + (row * call.heads + head) * kept.size(2);
}

// Units one after another, and the memory that they share.
template <class T>
class Worker {
 public:
  Worker(const Call& call, const Tensor& out, PartialResults<T>& partial)
      : call_(call), out_(out), partial_(partial), places_(call) {}

  void attend(const Unit& unit) {
    const Call& c = call_;
    const int64_t seen = places_.of_row(unit.row);
    if (seen == 0) {
      std::fill_n(out_.data<T>() + unit.row * c.heads * c.d_v, unit.rows * c.heads * c.d_v, T{0});
      return;
    }
    gather(unit, seen);
    const int64_t group = c.heads / c.kv_heads;
    for (int64_t head = 0; head < c.heads;) {
      const int64_t end = group > kMostQueries ? std::min(head + kMostQueries, (head / group + 1) * group)
                                               : std::min(c.heads, head + kMostQueries / group * group);
      attend(unit, head, end);
      head = end;
    }
  }

  // What the parts of a row's list have in common becomes one: each part is scaled to the largest score of all.
  void join(const Unit& unit) {
    const Call& c = call_;
    for (int64_t r = 0; r < unit.rows; ++r) {
      for (int64_t h = 0; h < c.heads; ++h) join(unit, r, h);
    }
  }

 private:
  void gather(const Unit& unit, int64_t seen) {
    const Call& c = call_;
    first_place_ = unit.part * kCachedAttentionSlots;
    slots_ = std::min(kCachedAttentionSlots, seen - first_place_);
    const int32_t* slots = c.table.slots.data() + c.table.begin[static_cast<size_t>(unit.row)];
    for (int64_t j = 0; j < slots_; ++j) {
      const int32_t slot = slots[places_.place(first_place_ + j)];
      key_rows_[j] = c.keys.row<T>(slot);
      value_rows_[j] = c.values.row<T>(slot);
      if (c.by_distance) distances_[j] = places_.distance(first_place_ + j);
    }
  }

  // Query heads [begin, end): all of some key heads, or some of one.
  void attend(const Unit& unit, int64_t begin, int64_t end) {
    const Call& c = call_;
    const int64_t group = c.heads / c.kv_heads, of_key_head = std::min(group, end - begin);
    const int64_t kv_heads = (end - begin) / of_key_head;
    list_queries(unit, begin, end, of_key_head);
    const CachedAttentionPiece<T> piece{
        .q = q_,
        .out = out_rows_,
        .key_rows = key_rows_,
        .value_rows = value_rows_,
        .first_key_head = begin / group,
        .kv_heads = kv_heads,
        .group = of_key_head * unit.rows,
        .slots = slots_,
        .d_k = c.d_k,
        .d_v = c.d_v,
        .value_stride = c.value_stride,
        .scale = static_cast<T>(c.options.scale),
        .distances = c.by_distance ? distances_ : nullptr,
        .slopes = c.slopes.empty() ? nullptr : slopes_,
        .relative_keys = c.options.relative_keys.defined() ? c.options.relative_keys.data<T>() : nullptr,
        .relative_values = c.options.relative_values.defined() ? c.options.relative_values.data<T>() : nullptr,
        .clip = c.clip(),
        .normalize = unit.parts == 1,
        .weights = weights_,
        .largest = largest_,
        .total = total_};
    dispatch(c.q.device(), [&](auto device) { cached_attention_piece(device, piece); });
    if (unit.parts > 1 || c.options.weights != nullptr) keep(unit, kv_heads * of_key_head * unit.rows);
  }

  void list_queries(const Unit& unit, int64_t begin, int64_t end, int64_t of_key_head) {
    const Call& c = call_;
    int64_t at = 0;
    for (int64_t first = begin; first < end; first += of_key_head) {
      for (int64_t r = 0; r < unit.rows; ++r) {
        for (int64_t h = first; h < first + of_key_head; ++h, ++at) {
          const int64_t query = (unit.row + r) * c.heads + h;
          row_[at] = r;
          head_[at] = h;
          q_[at] = c.q.data<T>() + query * c.d_k;
          out_rows_[at] = unit.parts == 1 ? out_.data<T>() + query * c.d_v
                                          : partial_.out.data() + partial_index(c, unit, r, unit.part, h) * c.d_v;
          if (!c.slopes.empty()) slopes_[at] = static_cast<T>(c.slopes[static_cast<size_t>(h)]);
        }
      }
    }
  }

  void keep(const Unit& unit, int64_t queries) {
    for (int64_t i = 0; i < queries; ++i) {
      if (unit.parts > 1) {
        const auto at = static_cast<size_t>(partial_index(call_, unit, row_[i], unit.part, head_[i]));
        partial_.largest[at] = largest_[i];
        partial_.total[at] = total_[i];
      }
      if (call_.options.weights == nullptr) continue;
      T* kept = kept_weights<T>(call_, unit.row + row_[i], head_[i]);
      const T factor = unit.parts > 1 ? T{1} : T{1} / total_[i];
      for (int64_t j = 0; j < slots_; ++j)
        kept[places_.place(first_place_ + j)] = weights_[i * kCachedAttentionSlots + j] * factor;
    }
  }

  void join(const Unit& unit, int64_t r, int64_t h) {
    const Call& c = call_;
    const auto at = [&](int64_t part) { return static_cast<size_t>(partial_index(c, unit, r, part, h)); };
    T largest = partial_.largest[at(0)], total = 0;
    for (int64_t part = 1; part < unit.parts; ++part) largest = std::max(largest, partial_.largest[at(part)]);
    T* out = out_.data<T>() + ((unit.row + r) * c.heads + h) * c.d_v;
    std::fill_n(out, c.d_v, T{0});
    for (int64_t part = 0; part < unit.parts; ++part) {
      const T factor = std::exp(partial_.largest[at(part)] - largest);
      const T* from = partial_.out.data() + at(part) * static_cast<size_t>(c.d_v);
      for (int64_t i = 0; i < c.d_v; ++i) out[i] += factor * from[i];
      total += factor * partial_.total[at(part)];
    }
    for (int64_t i = 0; i < c.d_v; ++i) out[i] /= total;
    if (c.options.weights == nullptr) return;
    const int64_t seen = places_.of_row(unit.row);
    T* kept = kept_weights<T>(c, unit.row + r, h);
    for (int64_t j = 0; j < seen; ++j)
      kept[places_.place(j)] *= std::exp(partial_.largest[at(j / kCachedAttentionSlots)] - largest) / total;
  }

  const Call& call_;
  const Tensor& out_;
  PartialResults<T>& partial_;
  Places places_;
  int64_t first_place_ = 0, slots_ = 0;
  const T* key_rows_[kCachedAttentionSlots];
  const T* value_rows_[kCachedAttentionSlots];
  int32_t distances_[kCachedAttentionSlots];
  int64_t row_[kMostQueries], head_[kMostQueries];  // of the queries of a piece
  const T* q_[kMostQueries];
  T* out_rows_[kMostQueries];
  T slopes_[kMostQueries], largest_[kMostQueries], total_[kMostQueries];
  alignas(64) T weights_[kMostQueries * kCachedAttentionSlots];
};

template <class T>
void attend(const Call& call, const Tensor& out) {
  const Work work = work_of(call);
  PartialResults<T> partial(call, work.parts);
  const auto units = static_cast<int64_t>(work.units.size());
  // A thread is worth waking for some tens of microseconds.
  constexpr int64_t kWorthAThread = int64_t{1} << 18;
  const int64_t grain = std::max<int64_t>(1, kWorthAThread * units / std::max<int64_t>(1, work.products));
  parallel_for(units, grain, [&](int64_t begin, int64_t end) {
    Worker<T> worker(call, out, partial);
    for (int64_t i = begin; i < end; ++i) worker.attend(work.units[static_cast<size_t>(i)]);
  });
  if (work.parts == 0) return;
  parallel_for(units, grain, [&](int64_t begin, int64_t end) {
    Worker<T> worker(call, out, partial);
    for (int64_t i = begin; i < end; ++i) {
      const Unit& unit = work.units[static_cast<size_t>(i)];
      if (unit.parts > 1 && unit.part == 0) worker.join(unit);
    }
  });
}

}  // namespace

Tensor cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values, const SlotTable& table,
                        const CachedAttentionOptions& options) {
  const ProfileScope scope("cached_attention");
  const Call call = call_of(q, keys, values, table, options);
  Tensor out = Tensor::empty({q.size(0), call.heads, call.d_v}, {q.dtype(), q.device()});
  if (options.weights != nullptr) {
    int32_t most = 0;
    for (size_t r = 0; r < table.begin.size(); ++r) most = std::max(most, table.end[r] - table.begin[r]);
    *options.weights = Tensor::zeros({q.size(0), call.heads, most}, {q.dtype(), q.device()});
  }
  dispatch_floating("cached_attention", q.dtype(), [&]<class T>(T) { attend<T>(call, out); });
  return out;
}

}  // namespace attune

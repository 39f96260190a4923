#include "attune/ops/cached_attention.h"

#include <algorithm>
#include <cstring>

#include "attune/base/parallel.h"
#include "attune/base/profile.h"
#include "attune/ops/attention.h"
#include "attune/ops/cached_attention_kernel.h"
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

void check_table(const SlotTable& table, size_t rows, int64_t slots) {
  if (table.begin.size() != rows || table.end.size() != rows)
    fail<ShapeError>("cached_attention: q has {} rows but the table has {}", rows, table.begin.size());
  for (size_t r = 0; r < rows; ++r) {
    if (table.begin[r] < 0 || table.end[r] < table.begin[r] || static_cast<size_t>(table.end[r]) > table.slots.size())
      fail<ShapeError>("cached_attention: row {} reads slots [{}, {}) of {}", r, table.begin[r], table.end[r],
                       table.slots.size());
    for (auto i = static_cast<size_t>(table.begin[r]); i < static_cast<size_t>(table.end[r]); ++i) {
      if (table.slots[i] < 0 || table.slots[i] >= slots)
        fail<ShapeError>("cached_attention: slot {} of {}", table.slots[i], slots);
    }
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
  bool by_place = false;            // the rows have to know the places of their slots

  void check() const;
  int64_t clip() const { return relative_clip(options.relative_keys, options.relative_values); }
};

void Call::check() const {
  if (q.rank() != 3 || kv_heads < 1 || heads % kv_heads != 0 || keys.width() != kv_heads * d_k ||
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
  call.by_place = !std::holds_alternative<FullAttention>(options.pattern) || options.alibi ||
                  options.relative_keys.defined() || options.relative_values.defined();
  return call;
}

// The key heads of the rows, one after another, and the lists that they share the memory of.
template <class T>
class RowWorker {
 public:
  RowWorker(const Call& call, const Tensor& out) : call_(call), out_(out) {}

  void attend(int64_t r, int64_t kv_head) {
    gather(r, kv_head);
    const Call& c = call_;
    const int64_t group = c.heads / c.kv_heads;
    for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      const CachedAttentionRow<T> row{
          .q = c.q.data<T>() + (r * c.heads + h) * c.d_k,
          .key_rows = key_rows_.data(),
          .value_rows = value_rows_.data(),
          .slots = static_cast<int64_t>(key_rows_.size()),
          .d_k = c.d_k,
          .d_v = c.d_v,
          .scale = static_cast<T>(c.options.scale),
          .places = c.by_place ? places_.data() : nullptr,
          .slope = c.slopes.empty() ? T{0} : static_cast<T>(c.slopes[static_cast<size_t>(h)]),
          .relative_keys = c.options.relative_keys.defined() ? c.options.relative_keys.data<T>() : nullptr,
          .relative_values = c.options.relative_values.defined() ? c.options.relative_values.data<T>() : nullptr,
          .clip = c.clip(),
          .weights = weights_.data(),
          .out = out_.data<T>() + (r * c.heads + h) * c.d_v};
      dispatch(c.q.device(), [&](auto device) { cached_attention_row(device, row); });
      if (c.options.weights != nullptr) keep_weights(r * c.heads + h);
    }
  }

 private:
  // The kernel leaves them before division by their sum.
  void keep_weights(int64_t row_and_head) const {
    const Tensor& kept = *call_.options.weights;
    T* to = kept.data<T>() + row_and_head * kept.size(2);
    T total = 0;
    for (const T weight : weights_) total += weight;
    for (size_t j = 0; j < weights_.size(); ++j)
      to[call_.by_place ? static_cast<size_t>(places_[j]) : j] = weights_[j] / total;
  }

  void gather(int64_t r, int64_t kv_head) {
    const Call& c = call_;
    const auto row = static_cast<size_t>(r);
    const int32_t* slots = c.table.slots.data() + c.table.begin[row];
    auto count = static_cast<size_t>(c.table.end[row] - c.table.begin[row]);
    if (c.by_place) {
      if (r != places_of_) list_places(r, static_cast<int64_t>(count) - 1);
      count = places_.size();
    }
    key_rows_.resize(count);
    value_rows_.resize(count);
    weights_.resize(count);
    for (size_t j = 0; j < count; ++j) {
      const int32_t slot = c.by_place ? slots[places_[j]] : slots[j];
      key_rows_[j] = c.keys.row<T>(slot) + kv_head * c.d_k;
      value_rows_[j] = c.values.row<T>(slot) + kv_head * c.value_stride;
    }
  }

  void list_places(int64_t r, int64_t query) {
    places_.clear();
    places_of_ = r;
    if (query >= 0) std::visit([&](const auto& p) { append_places(p, query, places_); }, call_.options.pattern);
  }

  const Call& call_;
  const Tensor& out_;
  int64_t places_of_ = -1;       // the row that they are of
  std::vector<int32_t> places_;  // that the row sees, where they matter
  std::vector<const T*> key_rows_, value_rows_;
  std::vector<T> weights_;
};

}  // namespace

void PagedRows::check_rows(const Tensor& rows) const {
  if (rows.rank() != 2 || rows.size(1) != width_ || rows.dtype() != dtype_)
    fail<ShapeError>("cache: takes rows of {} {}, found {} {}", width_, name_of(dtype_), name_of(rows.dtype()),
                     rows.shape().text());
}

void PagedRows::write(const Tensor& rows, std::span<const int32_t> slots) {
  check_rows(rows);
  if (rows.size(0) != static_cast<int64_t>(slots.size()))
    fail<ShapeError>("cache: {} rows for {} slots", rows.size(0), slots.size());
  const size_t bytes = static_cast<size_t>(width_) * size_of(dtype_);
  for (size_t i = 0; i < slots.size(); ++i) {
    const int64_t slot = slots[i];
    if (slot < 0) fail<ShapeError>("cache: slot {}", slot);
    while (slot >= static_cast<int64_t>(blocks_.size()) * kBlockRows)
      blocks_.push_back(Tensor::empty({kBlockRows, width_}, {.dtype = dtype_}));
    std::memcpy(static_cast<std::byte*>(blocks_[static_cast<size_t>(slot / kBlockRows)].raw()) +
                    static_cast<size_t>(slot % kBlockRows) * bytes,
                static_cast<const std::byte*>(rows.raw()) + i * bytes, bytes);
    size_ = std::max(size_, slot + 1);
  }
}

int64_t PagedRows::append(const Tensor& rows) {
  check_rows(rows);
  const int64_t first = size_;
  int64_t done = 0;
  while (done < rows.size(0)) {
    const int64_t place = size_ % kBlockRows;
    if (size_ == static_cast<int64_t>(blocks_.size()) * kBlockRows)
      blocks_.push_back(Tensor::empty({kBlockRows, width_}, {.dtype = dtype_}));
    const int64_t count = std::min(kBlockRows - place, rows.size(0) - done);
    blocks_[static_cast<size_t>(size_ / kBlockRows)]
        .rows(place, place + count)
        .copy_from(rows.rows(done, done + count));
    size_ += count;
    done += count;
  }
  return first;
}

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
  dispatch_floating("cached_attention", q.dtype(), [&]<class T>(T) {
    parallel_for(q.size(0) * call.kv_heads, 4, [&](int64_t begin, int64_t end) {
      RowWorker<T> worker(call, out);
      for (int64_t index = begin; index < end; ++index) worker.attend(index / call.kv_heads, index % call.kv_heads);
    });
  });
  return out;
}

Tensor heads_times_rows(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(0) != x.size(1) * x.size(2))
    fail<ShapeError>("heads_times_rows: x {} needs a weight with {} rows, found {}", x.shape().text(),
                     x.rank() == 3 ? x.size(1) * x.size(2) : 0, weight.shape().text());
  const int64_t heads = x.size(1), in = x.size(2), out = weight.size(1);
  Tensor y = Tensor::empty({x.size(0), heads, out}, {x.dtype(), x.device()});
  dispatch_floating("heads_times_rows", x.dtype(), [&]<class T>(T) {
    parallel_for(x.size(0) * heads, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        dispatch(x.device(), [&](auto device) {
          vector_times_matrix(device, x.data<T>() + i * in, weight.data<T>() + i % heads * in * out,
                              y.data<T>() + i * out, in, out);
        });
      }
    });
  });
  return y;
}

Tensor heads_times_columns(const Tensor& x, const Tensor& weight) {
  if (x.rank() != 3 || weight.rank() != 2 || weight.size(1) != x.size(2) || weight.size(0) % x.size(1) != 0)
    fail<ShapeError>("heads_times_columns: x {} does not fit weight {}", x.shape().text(), weight.shape().text());
  const int64_t heads = x.size(1), in = x.size(2), out = weight.size(0) / heads;
  Tensor y = Tensor::empty({x.size(0), heads, out}, {x.dtype(), x.device()});
  dispatch_floating("heads_times_columns", x.dtype(), [&]<class T>(T) {
    parallel_for(x.size(0) * heads, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        dispatch(x.device(), [&](auto device) {
          matrix_times_vector(device, weight.data<T>() + i % heads * in * out, x.data<T>() + i * in,
                              y.data<T>() + i * out, in, out);
        });
      }
    });
  });
  return y;
}

}  // namespace attune

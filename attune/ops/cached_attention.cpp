#include "attune/ops/cached_attention.h"

#include <algorithm>
#include <cstring>

#include "attune/base/parallel.h"
#include "attune/ops/cached_attention_kernel.h"

namespace attune {

int64_t PagedRows::append(const Tensor& rows) {
  if (rows.rank() != 2 || rows.size(1) != width_ || rows.dtype() != dtype_)
    fail<ShapeError>("cache: takes rows of {} {}, found {} {}", width_, name_of(dtype_), name_of(rows.dtype()),
                     rows.shape().text());
  const int64_t first = size_;
  int64_t done = 0;
  while (done < rows.size(0)) {
    const int64_t place = size_ % kBlockRows;
    if (place == 0) blocks_.push_back(Tensor::empty({kBlockRows, width_}, {.dtype = dtype_}));
    const int64_t count = std::min(kBlockRows - place, rows.size(0) - done);
    blocks_.back().rows(place, place + count).copy_from(rows.rows(done, done + count));
    size_ += count;
    done += count;
  }
  return first;
}

Tensor cached_attention(const Tensor& q, const PagedRows& keys, const PagedRows& values, int64_t kv_heads,
                        const SlotTable& table, double scale) {
  if (q.rank() != 3 || kv_heads < 1 || q.size(1) % kv_heads != 0 || keys.width() != kv_heads * q.size(2) ||
      values.width() % kv_heads != 0 || keys.size() != values.size())
    fail<ShapeError>("cached_attention: q {} does not fit {} keys of {} and {} values of {} in {} heads",
                     q.shape().text(), keys.size(), keys.width(), values.size(), values.width(), kv_heads);
  const auto rows = static_cast<size_t>(q.size(0));
  if (table.begin.size() != rows || table.end.size() != rows)
    fail<ShapeError>("cached_attention: q has {} rows but the table has {}", rows, table.begin.size());
  for (const int32_t slot : table.slots) {
    if (slot < 0 || slot >= keys.size()) fail<ShapeError>("cached_attention: slot {} of {}", slot, keys.size());
  }
  for (size_t r = 0; r < rows; ++r) {
    if (table.begin[r] < 0 || table.end[r] < table.begin[r] || static_cast<size_t>(table.end[r]) > table.slots.size())
      fail<ShapeError>("cached_attention: row {} reads slots [{}, {}) of {}", r, table.begin[r], table.end[r],
                       table.slots.size());
  }
  const int64_t heads = q.size(1), d_k = q.size(2), d_v = values.width() / kv_heads, group = heads / kv_heads;
  Tensor out = Tensor::empty({q.size(0), heads, d_v}, {q.dtype(), q.device()});
  dispatch_floating("cached_attention", q.dtype(), [&]<class T>(T) {
    parallel_for(q.size(0) * kv_heads, 4, [&](int64_t begin, int64_t end) {
      std::vector<const T*> key_rows, value_rows;
      std::vector<T> weights;
      for (int64_t index = begin; index < end; ++index) {
        const int64_t r = index / kv_heads, kv_head = index % kv_heads;
        const int32_t first = table.begin[static_cast<size_t>(r)], last = table.end[static_cast<size_t>(r)];
        const auto count = static_cast<size_t>(last - first);
        key_rows.resize(count);
        value_rows.resize(count);
        weights.resize(count);
        for (size_t j = 0; j < count; ++j) {
          const int32_t slot = table.slots[static_cast<size_t>(first) + j];
          key_rows[j] = keys.row<T>(slot) + kv_head * d_k;
          value_rows[j] = values.row<T>(slot) + kv_head * d_v;
        }
        for (int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
          const CachedAttentionRow<T> row{.q = q.data<T>() + (r * heads + h) * d_k,
                                          .key_rows = key_rows.data(),
                                          .value_rows = value_rows.data(),
                                          .slots = static_cast<int64_t>(count),
                                          .d_k = d_k,
                                          .d_v = d_v,
                                          .scale = static_cast<T>(scale),
                                          .weights = weights.data(),
                                          .out = out.data<T>() + (r * heads + h) * d_v};
          dispatch(q.device(), [&](auto device) { cached_attention_row(device, row); });
        }
      }
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

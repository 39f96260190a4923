#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/embedding.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <algorithm>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/dropout_inl.h"
#include "attune/kernels/cpu/for_type.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/embedding.h"
#include "attune/kernels/row_grain.h"
#include "attune/kernels/rows_by_id.h"

#ifndef ATTUNE_KERNELS_CPU_EMBEDDING_POINTERS
#define ATTUNE_KERNELS_CPU_EMBEDDING_POINTERS
namespace attune {
namespace {

template <class T>
struct CollectedRows {
  const int32_t* starts;     // see RowsById
  const int32_t* positions;  // likewise
  const T* dy;
  T* d_table;
  int64_t columns;
  double scale;
};

template <class T>
struct AddRowsOf {
  const T* x;
  const T* table;
  const int32_t* rows;
  int64_t n;
  int64_t columns;
  DropoutMask mask;
  T* y;
};

}  // namespace
}  // namespace attune
#endif

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

template <class From, class T>
HWY_INLINE void ScaledRow(const From* x, T scale, T* y, size_t columns) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  ForEachVector(d, columns,
                [&](size_t i, auto part) HWY_ATTR { part.Store(d, hn::Mul(LoadAs(d, part, x + i), factor), y + i); });
}

template <class T>
HWY_INLINE void AddScaledRow(const T* x, T scale, T* y, size_t columns) {
  const hn::ScalableTag<T> d;
  const auto factor = hn::Set(d, scale);
  ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR {
    part.Store(d, hn::MulAdd(part.Load(d, x + i), factor, part.Load(d, y + i)), y + i);
  });
}

template <class From, class T>
void GatherRows(const int32_t* ids, const From* table, T* y, int64_t n, int64_t columns, double scale) {
  for (int64_t i = 0; i < n; ++i)
    ScaledRow(table + ids[i] * columns, static_cast<T>(scale), y + i * columns, static_cast<size_t>(columns));
}

// Sums rows [begin, end) of the table.
template <class T>
void CollectRows(const CollectedRows<T>& a, int64_t begin, int64_t end) {
  const auto columns = static_cast<size_t>(a.columns);
  for (int64_t v = begin; v < end; ++v) {
    T* row = a.d_table + v * a.columns;
    if (a.starts[v] == a.starts[v + 1]) std::fill_n(row, columns, T{0});
    for (int32_t p = a.starts[v]; p < a.starts[v + 1]; ++p) {
      const T* dy = a.dy + a.positions[p] * a.columns;
      const auto scale = static_cast<T>(a.scale);
      if (p == a.starts[v]) {
        ScaledRow(dy, scale, row, columns);
      } else {
        AddScaledRow(dy, scale, row, columns);
      }
    }
  }
}

template <class T>
void AddTableRowsFrom(const AddRowsOf<T>& a, int64_t begin, int64_t end) {
  const hn::ScalableTag<T> d;
  const auto columns = static_cast<size_t>(a.columns);
  const auto scale = hn::Set(d, static_cast<T>(a.mask.active() ? a.mask.scale() : 1.0));
  for (int64_t i = begin; i < end; ++i) {
    const T* x = a.x + i * a.columns;
    const T* row = a.table + a.rows[i] * a.columns;
    T* y = a.y + i * a.columns;
    ForEachDropoutVector(d, a.mask, i, columns, [&](size_t j, auto part, auto dropped) HWY_ATTR {
      const auto sum = hn::Add(part.Load(d, x + j), part.Load(d, row + j));
      part.Store(d, hn::IfThenZeroElse(dropped, hn::Mul(sum, scale)), y + j);
    });
  }
}

void GatherRows32(const int32_t* ids, const float* table, float* y, int64_t n, int64_t columns, double scale) {
  GatherRows(ids, table, y, n, columns, scale);
}
void GatherRows64(const int32_t* ids, const double* table, double* y, int64_t n, int64_t columns, double scale) {
  GatherRows(ids, table, y, n, columns, scale);
}
void GatherRows16(const int32_t* ids, const bfloat16* table, float* y, int64_t n, int64_t columns, double scale) {
  GatherRows(ids, table, y, n, columns, scale);
}
void CollectRows32(const CollectedRows<float>& a, int64_t begin, int64_t end) {
  CollectRows(a, begin, end);
}
void CollectRows64(const CollectedRows<double>& a, int64_t begin, int64_t end) {
  CollectRows(a, begin, end);
}
void AddTableRowsFrom32(const AddRowsOf<float>& a, int64_t begin, int64_t end) {
  AddTableRowsFrom(a, begin, end);
}
void AddTableRowsFrom64(const AddRowsOf<double>& a, int64_t begin, int64_t end) {
  AddTableRowsFrom(a, begin, end);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(GatherRows16);
HWY_EXPORT(GatherRows32);
HWY_EXPORT(GatherRows64);
HWY_EXPORT(CollectRows32);
HWY_EXPORT(CollectRows64);
HWY_EXPORT(AddTableRowsFrom32);
HWY_EXPORT(AddTableRowsFrom64);

}  // namespace

void embedding_forward(Cpu, const Tensor& ids, const Tensor& table, double scale, const Tensor& y) {
  const int64_t columns = table.size(1);
  const int32_t* const rows = ids.data<int32_t>();
  const auto gather = [&]<class T>(auto kernel, const auto* from, T* to) {
    parallel_for(ids.numel(), row_grain(columns), [&](int64_t begin, int64_t end) {
      kernel(rows + begin, from, to + begin * columns, end - begin, columns, scale);
    });
  };
  if (table.dtype() == DType::bf16)
    return gather(HWY_DYNAMIC_DISPATCH(GatherRows16), table.data<bfloat16>(), y.data<float>());
  dispatch_floating("embedding", table.dtype(), [&]<class T>(T) {
    gather(for_type<T>(HWY_DYNAMIC_DISPATCH(GatherRows32), HWY_DYNAMIC_DISPATCH(GatherRows64)), table.data<T>(),
           y.data<T>());
  });
}

// One thread sums each row of the table.
void embedding_backward(Cpu, const Indices& ids, const Tensor& dy, double scale, const Tensor& d_table) {
  const RowsById sorted(ids.values(), d_table.size(0));
  dispatch_floating("embedding", dy.dtype(), [&]<class T>(T) {
    const CollectedRows<T> rows{.starts = sorted.starts.data(),
                                .positions = sorted.positions.data(),
                                .dy = dy.data<T>(),
                                .d_table = d_table.data<T>(),
                                .columns = d_table.size(1),
                                .scale = scale};
    parallel_for(d_table.size(0), row_grain(rows.columns), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(CollectRows32), HWY_DYNAMIC_DISPATCH(CollectRows64))(rows, begin, end);
    });
  });
}

void add_rows(Cpu, const AddRows& a) {
  dispatch_floating("add_rows", a.x.dtype(), [&]<class T>(T) {
    const AddRowsOf<T> rows{.x = a.x.data<T>(),
                            .table = a.table.data<T>(),
                            .rows = a.rows.data<int32_t>(),
                            .n = a.x.size(0),
                            .columns = a.x.size(1),
                            .mask = a.mask,
                            .y = a.y.data<T>()};
    parallel_for(rows.n, row_grain(rows.columns), [&](int64_t begin, int64_t end) {
      for_type<T>(HWY_DYNAMIC_DISPATCH(AddTableRowsFrom32), HWY_DYNAMIC_DISPATCH(AddTableRowsFrom64))(rows, begin, end);
    });
  });
}

}  // namespace attune
#endif

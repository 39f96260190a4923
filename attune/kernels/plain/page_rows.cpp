#include "attune/kernels/attention/page_rows.h"

#include "attune/kernels/for_dtype.h"

namespace attune {

void write_rows(Plain, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    for (int64_t i = 0; i < rows.size(0); ++i)
      for (int64_t c = 0; c < pages.width(); ++c)
        pages.row<T>(slots[static_cast<size_t>(i)])[c] = rows.data<T>()[i * pages.width() + c];
  });
}

void gather_rows(Plain, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    const int64_t columns = rows.size(1);
    for (int64_t i = 0; i < rows.size(0); ++i)
      for (int64_t c = 0; c < columns; ++c)
        rows.data<T>()[i * columns + c] = pages.row<T>(slots[static_cast<size_t>(i)])[begin + c];
  });
}

}  // namespace attune

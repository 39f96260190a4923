#include "attune/kernels/attention/page_rows.h"

#include <algorithm>
#include <cstring>

#include "attune/kernels/for_dtype.h"

namespace attune {

void write_rows(Cpu, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    const int64_t width = pages.width();
    const T* from = rows.data<T>();
    for (size_t i = 0; i < slots.size(); ++i, from += width)
      std::memcpy(pages.row<T>(slots[i]), from, static_cast<size_t>(width) * sizeof(T));
  });
}

void gather_rows(Cpu, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    const int64_t columns = rows.size(1);
    T* to = rows.data<T>();
    for (const int32_t slot : slots) to = std::copy_n(pages.row<T>(slot) + begin, columns, to);
  });
}

}  // namespace attune

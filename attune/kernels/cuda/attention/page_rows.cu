#include "attune/kernels/attention/page_rows.h"

#include <vector>

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T>
struct WriteRows {
  const T* rows;
  T* const* places;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const { places[i / columns][i % columns] = rows[i]; }
};

template <class T>
struct GatherRows {
  T* const* places;
  T* rows;
  int64_t columns;
  ATTUNE_DEVICE void operator()(int64_t i) const { rows[i] = places[i / columns][i % columns]; }
};

// Where column `begin` of each slot is in the memory of the device.
template <class T>
Tensor places_of(Cuda device, const Pages& pages, std::span<const int32_t> slots, int64_t begin) {
  std::vector<T*> places;
  places.reserve(slots.size());
  for (const int32_t slot : slots) places.push_back(pages.row<T>(slot) + begin);
  return cuda::structs_on_device<T*>(device, places);
}

}  // namespace

void write_rows(Cuda device, const Tensor& rows, std::span<const int32_t> slots, const Pages& pages) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    const Tensor places = places_of<T>(device, pages, slots, 0);
    cuda::for_each_element(device, "write_rows", rows.numel(),
                           WriteRows<T>{rows.data<T>(), static_cast<T* const*>(places.raw()), pages.width()});
  });
}

void gather_rows(Cuda device, const Pages& pages, std::span<const int32_t> slots, int64_t begin, const Tensor& rows) {
  for_any_dtype(pages.dtype(), [&]<class T>(T) {
    const Tensor places = places_of<T>(device, pages, slots, begin);
    cuda::for_each_element(device, "gather_rows", rows.numel(),
                           GatherRows<T>{static_cast<T* const*>(places.raw()), rows.data<T>(), rows.size(1)});
  });
}

}  // namespace attune

#include "attune/kernels/attention/rotary.h"

#include <cmath>

#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"

namespace attune {
namespace {

template <class T>
struct RotaryTable {
  const double* frequencies;
  const int32_t* positions;  // or null
  int64_t first, pairs;
  double magnitude;
  T* table;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / pairs, pair = i % pairs;
    const int64_t position = positions != nullptr ? positions[row] : first + row;
    const double angle = static_cast<double>(position) * frequencies[pair];
    T* const cosines = table + row * 2 * pairs;
    cosines[pair] = static_cast<T>(std::cos(angle) * magnitude);
    cosines[pairs + pair] = static_cast<T>(std::sin(angle) * magnitude);
  }
};

// An element is a pair of a head, or a number of it that is not rotated: d - pairs for each head.
template <class T>
struct RotateRows {
  const T* x;
  const T* table;
  const int32_t* table_rows;
  T* y;
  int64_t heads, d, pairs, rotated;
  bool half, back;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t units = d - pairs, head = i / units, unit = i % units, begin = head * d;
    if (unit >= pairs) {
      y[begin + pairs + unit] = x[begin + pairs + unit];
      return;
    }
    const int64_t first = begin + (half ? unit : 2 * unit), second = begin + (half ? unit + pairs : 2 * unit + 1);
    const T a = x[first], b = x[second];
    if (head % heads >= rotated) {
      y[first] = a;
      y[second] = b;
      return;
    }
    const T* const cosines = table + 2 * pairs * table_rows[head / heads];
    const T cosine = cosines[unit], sine = back ? -cosines[pairs + unit] : cosines[pairs + unit];
    y[first] = a * cosine - b * sine;
    y[second] = b * cosine + a * sine;
  }
};

}  // namespace

void rotary_table(Cuda device, const RotaryFrequencies& rotations, const Tensor& positions, int64_t first,
                  const Tensor& table) {
  const int64_t pairs = table.size(2);
  const Tensor frequencies = Tensor::from({pairs}, rotations.frequencies, Device(device));
  dispatch_floating("rotary", table.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "rotary", table.size(0) * pairs,
                           RotaryTable<T>{frequencies.data<double>(), data_or_null<int32_t>(positions), first, pairs,
                                          rotations.magnitude, table.data<T>()});
  });
}

void rotary_rows(Cuda device, const RotaryRows& a) {
  const int64_t heads = a.x.size(1), d = a.x.size(2), pairs = a.table.size(2);
  dispatch_floating("rotary", a.x.dtype(), [&]<class T>(T) {
    cuda::for_each_element(device, "rotary", a.x.size(0) * heads * (d - pairs),
                           RotateRows<T>{a.x.data<T>(), a.table.data<T>(), a.table_rows.data<int32_t>(), a.y.data<T>(),
                                         heads, d, pairs, a.rotated, a.pairing == RotaryPairing::half, a.back});
  });
}

}  // namespace attune

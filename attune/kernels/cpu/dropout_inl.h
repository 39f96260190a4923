// Dropout masks inside kernels. Included once for each target (Highway). keep_mask() in dropout_mask.h is the
// specification.

#if defined(ATTUNE_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_DROPOUT_INL_H_
#undef ATTUNE_KERNELS_DROPOUT_INL_H_
#else
#define ATTUNE_KERNELS_DROPOUT_INL_H_
#endif

#include <hwy/highway.h>

#include "attune/base/random.h"
#include "attune/kernels/cpu/bfloat16_inl.h"
#include "attune/kernels/cpu/simd_inl.h"
#include "attune/kernels/dropout_mask.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Columns that one call of KeepWords decides on.
constexpr size_t kDropoutGroup = 64;

#if HWY_TARGET == HWY_SCALAR

/// The random words of columns [64 group, 64 group + 64) of a row, in the order of the columns. The same on every
/// target.
HWY_INLINE void KeepWords(const DropoutMask& mask, int64_t row, int64_t group, uint32_t* HWY_RESTRICT words) {
  const auto r = static_cast<uint64_t>(row);
  for (uint32_t lane = 0; lane < 16; ++lane) {
    const auto out = philox(
        {static_cast<uint32_t>(group * 16) + lane, static_cast<uint32_t>(r), mask.op, static_cast<uint32_t>(r >> 32)},
        mask.key());
    for (size_t word = 0; word < 4; ++word) words[word * 16 + lane] = out[word];
  }
}

#else

// Philox's counter, one 32-bit word to each 64-bit lane, as the widening products want it. The upper half of a lane is
// never read.
template <class V>
struct PhiloxCounter {
  V c0, c1, c2, c3;
};

template <class D64, class V = hn::Vec<D64> >
HWY_INLINE void PhiloxRound(D64 d64, PhiloxCounter<V>& c, V k0, V k1) {
  const hn::Repartition<uint32_t, D64> d32;
  const V p0 = hn::MulEven(hn::BitCast(d32, c.c0), hn::Set(d32, 0xD2511F53u));
  const V p1 = hn::MulEven(hn::BitCast(d32, c.c2), hn::Set(d32, 0xCD9E8D57u));
  (void)d64;
  c = {hn::Xor3(hn::ShiftRight<32>(p1), c.c1, k0), p1, hn::Xor3(hn::ShiftRight<32>(p0), c.c3, k1), p0};
}

/// The random words of columns [64 group, 64 group + 64) of a row, in the order of the columns. The same on every
/// target.
HWY_INLINE void KeepWords(const DropoutMask& mask, int64_t row, int64_t group, uint32_t* HWY_RESTRICT words) {
  const hn::ScalableTag<uint64_t> d64;
  const hn::Repartition<uint32_t, decltype(d64)> d32;
  using V = hn::Vec<decltype(d64)>;
  const size_t lanes = hn::Lanes(d64);
  const auto r = static_cast<uint64_t>(row);
  const auto first = static_cast<uint64_t>(group) * 16;
  for (size_t i = 0; i < 16; i += 2 * lanes) {  // two vectors at a time hide the latency of the products
    const V row_low = hn::Set(d64, r & 0xFFFFFFFFu);
    const V row_high = hn::Set(d64, r >> 32);
    const V op = hn::Set(d64, mask.op);
    PhiloxCounter<V> a{hn::Iota(d64, first + i), row_low, op, row_high};
    PhiloxCounter<V> b{hn::Iota(d64, first + i + lanes), row_low, op, row_high};
    V k0 = hn::Set(d64, mask.key() & 0xFFFFFFFFu);
    V k1 = hn::Set(d64, mask.key() >> 32);
    for (int round = 0; round < 10; ++round) {
      PhiloxRound(d64, a, k0, k1);
      PhiloxRound(d64, b, k0, k1);
      k0 = hn::Add(k0, hn::Set(d64, 0x9E3779B9u));
      k1 = hn::Add(k1, hn::Set(d64, 0xBB67AE85u));
    }
    const auto store = [&](size_t word, V low, V high) HWY_ATTR {
      hn::StoreU(hn::ConcatEven(d32, hn::BitCast(d32, high), hn::BitCast(d32, low)), d32, words + word * 16 + i);
    };
    store(0, a.c0, b.c0);
    store(1, a.c1, b.c1);
    store(2, a.c2, b.c2);
    store(3, a.c3, b.c3);
  }
}

#endif  // HWY_TARGET == HWY_SCALAR

/// Which lanes are dropped, by one random word for each lane.
template <class D>
HWY_INLINE hn::Mask<D> DropMask(D d, const uint32_t* HWY_RESTRICT words, uint32_t threshold) {
  const hn::RebindToUnsigned<D> du;
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    return hn::RebindMask(d, hn::Lt(hn::LoadU(du, words), hn::Set(du, threshold)));
  } else {
    const hn::Rebind<uint32_t, D> d32;
    return hn::RebindMask(d, hn::Lt(hn::PromoteTo(du, hn::LoadU(d32, words)), hn::Set(du, uint64_t{threshold})));
  }
}

/// Calls f(i, part, dropped) for each vector of a row; `dropped` says which lanes are dropped. An inactive mask drops
/// nothing.
template <class D, class F>
HWY_INLINE void ForEachDropoutVector(D d, const DropoutMask& mask, int64_t row, size_t columns, F&& f) {
  if (!mask.active()) {
    const auto none = hn::Lt(hn::Zero(d), hn::Zero(d));
    ForEachVector(d, columns, [&](size_t i, auto part) HWY_ATTR { f(i, part, none); });
    return;
  }
  HWY_ALIGN uint32_t words[kDropoutGroup];
  const uint32_t threshold = mask.threshold();
  for (size_t begin = 0; begin < columns; begin += kDropoutGroup) {
    KeepWords(mask, row, static_cast<int64_t>(begin / kDropoutGroup), words);
    const size_t count = columns - begin < kDropoutGroup ? columns - begin : kDropoutGroup;
    ForEachVector(d, count,
                  [&](size_t i, auto part) HWY_ATTR { f(begin + i, part, DropMask(d, words + i, threshold)); });
  }
}

/// out = dropout(y) for one row; with x, out = x + dropout(y). out may be x or y.
template <class X, class Y, class Out>
HWY_INLINE void DropoutRow(const X* x, const Y* y, Out* out, const DropoutMask& mask, int64_t row, size_t columns) {
  using T = Arithmetic<Y>;
  const hn::ScalableTag<T> d;
  const auto scale = hn::Set(d, static_cast<T>(mask.active() ? mask.scale() : 1.0));
  const auto survivor = [&](size_t i, auto part, auto dropped)
                            HWY_ATTR { return hn::IfThenZeroElse(dropped, hn::Mul(LoadAs(d, part, y + i), scale)); };
  if (x == nullptr) {
    ForEachDropoutVector(d, mask, row, columns, [&](size_t i, auto part, auto dropped) HWY_ATTR {
      StoreAs(d, part, survivor(i, part, dropped), out + i);
    });
  } else {
    ForEachDropoutVector(d, mask, row, columns, [&](size_t i, auto part, auto dropped) HWY_ATTR {
      StoreAs(d, part, hn::Add(LoadAs(d, part, x + i), survivor(i, part, dropped)), out + i);
    });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif

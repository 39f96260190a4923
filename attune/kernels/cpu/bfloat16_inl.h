// Vectors of float32 from and to memory that may hold bfloat16. Included once for each target (Highway).

#if defined(ATTUNE_KERNELS_BFLOAT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ATTUNE_KERNELS_BFLOAT16_INL_H_
#undef ATTUNE_KERNELS_BFLOAT16_INL_H_
#else
#define ATTUNE_KERNELS_BFLOAT16_INL_H_
#endif

#include <hwy/highway.h>

#include "attune/kernels/cpu/simd_inl.h"
#include "attune/tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Highway's own conversion to bfloat16 cuts off; this one rounds to the nearest, as attune::bfloat16 does.
template <class D>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> Narrowed(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const hn::Rebind<uint16_t, D> d16;
  const auto whole = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(whole), hn::Set(du, 1u));
  const auto rounded = hn::Add(whole, hn::Add(odd, hn::Set(du, 0x7fffu)));
  const auto quiet = hn::Or(whole, hn::Set(du, 0x400000u));
  const auto chosen = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), quiet, rounded);
  (void)d;
  return hn::DemoteTo(d16, hn::BitCast(di, hn::ShiftRight<16>(chosen)));
}
template <class D>
HWY_INLINE hn::Vec<D> Widened(D d, hn::Vec<hn::Rebind<uint16_t, D>> v) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, v)));
}

template <class D, class Part>
HWY_INLINE hn::Vec<D> LoadAs(D d, Part part, const hn::TFromD<D>* p) {
  return part.Load(d, p);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, WholeVector, const bfloat16* p) {
  const hn::Rebind<uint16_t, D> d16;
  return Widened(d, hn::LoadU(d16, &p->bits));
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, PartOfVector part, const bfloat16* p) {
  const hn::Rebind<uint16_t, D> d16;
  HWY_ALIGN uint16_t rest[HWY_LANES(float)] = {};
  for (size_t i = 0; i < part.count; ++i) rest[i] = p[i].bits;
  return Widened(d, hn::Load(d16, rest));
}

template <class D, class Part>
HWY_INLINE void StoreAs(D d, Part part, hn::Vec<D> v, hn::TFromD<D>* p) {
  part.Store(d, v, p);
}
template <class D>
HWY_INLINE void StoreAs(D d, WholeVector, hn::Vec<D> v, bfloat16* p) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(Narrowed(d, v), d16, &p->bits);
}
template <class D>
HWY_INLINE void StoreAs(D d, PartOfVector part, hn::Vec<D> v, bfloat16* p) {
  const hn::Rebind<uint16_t, D> d16;
  HWY_ALIGN uint16_t rest[HWY_LANES(float)];
  hn::Store(Narrowed(d, v), d16, rest);
  for (size_t i = 0; i < part.count; ++i) p[i].bits = rest[i];
}

// The type in which sums and products of T are formed.
template <class T>
struct ArithmeticOf {
  using type = T;
};
template <>
struct ArithmeticOf<bfloat16> {
  using type = float;
};
template <class T>
using Arithmetic = typename ArithmeticOf<T>::type;

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#endif

#include "attune/kernels/cuda/gemm/products.h"

#include "attune/kernels/cuda/activation_functions.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/matmul.h"

namespace attune::cuda {
namespace {

// One element of c.
template <class In, class Out, class Bias>
struct SimpleProduct {
  Product p;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    using Sum = wide_t<In>;
    const int64_t matrix = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    const In* const a = static_cast<const In*>(p.a.data) + matrix * p.a.next;
    const In* const b = static_cast<const In*>(p.b.data) + matrix * p.b.next;
    Sum sum = p.bias != nullptr ? static_cast<Sum>(static_cast<const Bias*>(p.bias)[column]) : Sum{0};
    for (int64_t k = 0; k < p.k; ++k)
      sum += static_cast<Sum>(a[p.a.transposed ? k * p.a.row + row : row * p.a.row + k]) *
             static_cast<Sum>(b[p.b.transposed ? column * p.b.row + k : k * p.b.row + column]);
    sum = activation_of(p.activation, sum);
    Out& to = static_cast<Out*>(p.c.data)[matrix * p.c.next + row * p.c.row + column];
    to = static_cast<Out>(p.accumulate ? static_cast<Sum>(to) + sum : sum);
  }
};

template <class T>
struct Finish {
  Product p;
  ATTUNE_DEVICE void operator()(int64_t i) const {
    const int64_t matrix = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    T& to = static_cast<T*>(p.c.data)[matrix * p.c.next + row * p.c.row + column];
    using Sum = wide_t<T>;
    const Sum added = p.bias != nullptr ? static_cast<const Sum*>(p.bias)[column] : Sum{0};
    to = static_cast<T>(activation_of(p.activation, widened(to) + added));
  }
};

struct RoundBias {
  const float* bias;
  bfloat16* rounded;
  ATTUNE_DEVICE void operator()(int64_t i) const { rounded[i] = bfloat16(bias[i]); }
};

}  // namespace

void round_bias(Cuda device, const char* name, const void* bias, const Tensor& rounded) {
  for_each_element(device, name, rounded.numel(), RoundBias{static_cast<const float*>(bias), rounded.data<bfloat16>()});
}

void finish_product(Cuda device, const char* name, const Product& product) {
  if (product.bias == nullptr && product.activation == Activation::none) return;
  for_storage_dtype(name, product.c_type, [&]<class T>(T) {
    for_each_element(device, name, product.batch * product.m * product.n, Finish<T>{product});
  });
}

void multiply_simply(Cuda device, const char* name, const Product& product) {
  with_product_types(product.type, product.c_type, [&]<class In, class Out, class Bias>(In, Out, Bias) {
    for_each_element(device, name, product.batch * product.m * product.n, SimpleProduct<In, Out, Bias>{product});
  });
}

}  // namespace attune::cuda

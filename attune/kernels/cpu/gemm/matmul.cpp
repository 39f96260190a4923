#include <dnnl.hpp>

#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <numbers>
#include <optional>
#include <tuple>

#include "attune/base/address_space.h"
#include "attune/base/error.h"
#include "attune/base/out_of_memory.h"
#include "attune/base/parallel.h"
#include "attune/kernels/cpu/bfloat16.h"
#include "attune/kernels/cpu/gemm/matmul_shape.h"
#include "attune/kernels/cpu/gemm/panel_matmul.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/matmul.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

namespace attune {
namespace {

using cpu::MatmulShape;

std::atomic<int64_t> flops_done{0};

void count(const MatmulShape& shape) {
  flops_done.fetch_add(2 * shape.m * shape.n * shape.k, std::memory_order_relaxed);
}

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A product that oneDNN has generated code for. Making one takes about 0.2 ms, using it again nothing.
struct Product {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

// Of a and b, and of c; the bias is float32.
enum class ProductTypes { float32, bfloat16, bfloat16_to_float32 };

using ProductKey = std::tuple<int64_t, int64_t, int64_t, bool, bool, bool, bool, Activation, ProductTypes, int>;

dnnl::algorithm algorithm_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return dnnl::algorithm::eltwise_relu;
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::gelu_tanh:
      return dnnl::algorithm::eltwise_gelu_tanh;
    case Activation::silu:
      return dnnl::algorithm::eltwise_swish;
    case Activation::tanh:
      return dnnl::algorithm::eltwise_tanh;
    case Activation::none:
      break;
  }
  return dnnl::algorithm::undef;
}

dnnl::primitive_attr attributes(const MatmulShape& shape) {
  dnnl::post_ops operations;
  if (shape.accumulate) operations.append_sum(1.0f);
  if (shape.activation != Activation::none) {
    const auto algorithm = algorithm_of(shape.activation);
    const float alpha = shape.activation == Activation::silu ? 1.0f : 0.0f;  // oneDNN's swish: x sigmoid(alpha x)
#if DNNL_VERSION_MAJOR >= 3
    operations.append_eltwise(algorithm, alpha, 0.0f);
#else
    operations.append_eltwise(1.0f, algorithm, alpha, 0.0f);
#endif
  }
  dnnl::primitive_attr attr;
  attr.set_post_ops(operations);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

Product make_product(const MatmulShape& shape, bool with_bias, ProductTypes types) {
  using dnnl::memory;
  const auto f32 = memory::data_type::f32, bf16 = memory::data_type::bf16;
  const auto input = types == ProductTypes::float32 ? f32 : bf16;
  const auto output = types == ProductTypes::bfloat16 ? bf16 : f32;
  const auto plain = memory::format_tag::ab;
  const auto transposed = memory::format_tag::ba;
  const memory::desc a({shape.m, shape.k}, input, shape.transpose_a ? transposed : plain);
  const memory::desc b({shape.k, shape.n}, input, shape.transpose_b ? transposed : plain);
  const memory::desc c({shape.m, shape.n}, output, plain);
  const memory::desc bias({1, shape.n}, f32, plain);
  const dnnl::primitive_attr attr = attributes(shape);
#if DNNL_VERSION_MAJOR >= 3
  const auto description = with_bias ? dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, c, attr)
                                     : dnnl::matmul::primitive_desc(cpu_engine(), a, b, c, attr);
#else
  const auto operation = with_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc description(operation, attr, cpu_engine());
#endif
  return {description, dnnl::matmul(description)};
}

// The library does not survive it when its own requests for memory fail.
constexpr int64_t kRoomForProduct = int64_t{128} << 20;

bool is_scarce(std::optional<int64_t> address_space) {
  return address_space && *address_space < kRoomForProduct;
}

// Shapes repeat from layer to layer and from epoch to epoch. When very many have been seen, the cache starts anew.
std::shared_ptr<const Product> find_product(const MatmulShape& shape, bool with_bias, ProductTypes types) {
  static std::mutex mutex;
  static std::map<ProductKey, std::shared_ptr<const Product>> products;
  constexpr size_t kMostProducts = 4096;
  const ProductKey key{shape.m,   shape.n,          shape.k, shape.transpose_a, shape.transpose_b, shape.accumulate,
                       with_bias, shape.activation, types,   thread_count()};
  const std::lock_guard lock(mutex);
  const auto found = products.find(key);
  if (found != products.end()) return found->second;
  if (products.size() >= kMostProducts || is_scarce(address_space_left())) products.clear();
  if (is_scarce(address_space_left())) throw OutOfMemory(kRoomForProduct);
  try {
    return products.emplace(key, std::make_shared<Product>(make_product(shape, with_bias, types))).first->second;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw OutOfMemory(kRoomForProduct);
    throw;
  }
}

// One number at a time, for float64 and for products without terms.
template <class T>
T activate(Activation activation, T x) {
  switch (activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::gelu:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2_v<T>));
    case Activation::gelu_tanh: {
      const T u = std::numbers::sqrt2_v<T> * std::numbers::inv_sqrtpi_v<T> * x * (1 + T(0.044715) * x * x);
      return x / (1 + std::exp(-2 * u));  // (1 + tanh(u)) / 2 = 1 / (1 + e^-2u)
    }
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
  }
  return x;
}

// A product of no terms is zero (or the bias); a library need not know that.
template <class T, class C>
bool finish_empty(const T* bias, C* c, const MatmulShape& shape) {
  if (shape.m == 0 || shape.n == 0) return true;
  if (shape.k > 0) return false;
  for (int64_t i = 0; i < shape.m; ++i) {
    for (int64_t j = 0; j < shape.n; ++j) {
      const T value = activate(shape.activation, bias ? bias[j] : T{0});
      C& out = c[i * shape.n + j];
      out = static_cast<C>(shape.accumulate ? out + value : value);
    }
  }
  return true;
}

void run_product(ProductTypes types, const void* a, const void* b, const float* bias, void* c,
                 const MatmulShape& shape) {
  const OpenMpThreads threads;  // the library plans for them and runs on them
  const std::shared_ptr<const Product> product = find_product(shape, bias != nullptr, types);
  const dnnl::memory::desc scratch_description = product->description.scratchpad_desc();
  const std::shared_ptr<Buffer> scratch = allocate_buffer(scratch_description.get_size());
  auto memory = [](const dnnl::memory::desc& description, const void* data) {
    return dnnl::memory(description, cpu_engine(), const_cast<void*>(data));
  };
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, memory(product->description.src_desc(), a)},
      {DNNL_ARG_WEIGHTS, memory(product->description.weights_desc(), b)},
      {DNNL_ARG_DST, memory(product->description.dst_desc(), c)},
      {DNNL_ARG_SCRATCHPAD, memory(scratch_description, scratch->data())},
  };
  if (bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, memory(product->description.bias_desc(), bias));
  thread_local dnnl::stream stream(cpu_engine());
  product->primitive.execute(stream, arguments);
  stream.wait();
  count(shape);
}

// The instruction sets of x86 are numbers of bits, of which a larger set has all of a smaller one's.
bool has_instructions([[maybe_unused]] dnnl::cpu_isa wanted) {
#if defined(__x86_64__)
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
#else
  return false;
#endif
}

// A row's result may not depend on other rows. oneDNN keeps that with AVX-512; its products for AVX2 do not.
void multiply_float32(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  static const bool library = has_instructions(dnnl::cpu_isa::avx512_core);
  if (library) return run_product(ProductTypes::float32, a, b, bias, c, shape);
  cpu::panel_matmul(a, b, bias, c, shape);
  count(shape);
}

std::shared_ptr<Buffer> widened(const bfloat16* x, int64_t n) {
  auto buffer = allocate_buffer(static_cast<size_t>(n) * sizeof(float));
  cpu::widen(x, static_cast<float*>(buffer->data()), n);
  return buffer;
}

// In float32 on the same numbers, for processors whose bfloat16 products oneDNN would form one number at a time.
void emulate_product(const bfloat16* a, const bfloat16* b, const float* bias, float* c, const MatmulShape& shape) {
  const auto wide_a = widened(a, shape.m * shape.k), wide_b = widened(b, shape.k * shape.n);
  multiply_float32(static_cast<const float*>(wide_a->data()), static_cast<const float*>(wide_b->data()), bias, c,
                   shape);
}

void multiply(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  multiply_float32(a, b, bias, c, shape);
}

void multiply(const bfloat16* a, const bfloat16* b, const float* bias, float* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  if (!has_bfloat16_products()) return emulate_product(a, b, bias, c, shape);
  run_product(ProductTypes::bfloat16_to_float32, a, b, bias, c, shape);
}

void multiply(const bfloat16* a, const bfloat16* b, const float* bias, bfloat16* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  if (has_bfloat16_products()) return run_product(ProductTypes::bfloat16, a, b, bias, c, shape);
  const auto wide = shape.accumulate ? widened(c, shape.m * shape.n)
                                     : allocate_buffer(static_cast<size_t>(shape.m * shape.n) * sizeof(float));
  auto* values = static_cast<float*>(wide->data());
  emulate_product(a, b, bias, values, shape);
  cpu::to_bfloat16(values, c, shape.m * shape.n);
}

void multiply(const double* a, const double* b, const double* bias, double* c, const MatmulShape& shape) {
  if (finish_empty(bias, c, shape)) return;
  const int64_t a_row = shape.transpose_a ? 1 : shape.k;
  const int64_t a_column = shape.transpose_a ? shape.m : 1;
  const int64_t b_row = shape.transpose_b ? 1 : shape.n;
  const int64_t b_column = shape.transpose_b ? shape.k : 1;
  parallel_for(shape.m, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < shape.n; ++j) {
        double sum = bias ? bias[j] : 0.0;
        for (int64_t p = 0; p < shape.k; ++p) sum += a[i * a_row + p * a_column] * b[p * b_row + j * b_column];
        sum = activate(shape.activation, sum);
        double& out = c[i * shape.n + j];
        out = shape.accumulate ? out + sum : sum;
      }
    }
  });
}

MatmulShape shape_of(const Tensor& a, const Tensor& c, const MatmulForm& form) {
  const Rows of_a = as_rows(a);
  return {.m = form.transpose_a ? of_a.columns : of_a.rows,
          .n = c.size(-1),
          .k = form.transpose_a ? of_a.rows : of_a.columns,
          .transpose_a = form.transpose_a,
          .transpose_b = form.transpose_b,
          .accumulate = form.accumulate,
          .activation = form.activation};
}

}  // namespace

bool has_bfloat16_products() {
  static const bool found = has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return found;
}

void matmul(Cpu, const Tensor& a, const Tensor& b, const Tensor& bias, const Tensor& c, const MatmulForm& form) {
  with_product_types(a.dtype(), c.dtype(), [&]<class In, class Out, class Bias>(In, Out, Bias) {
    const Bias* const added = data_or_null<Bias>(bias);
    multiply(a.data<In>(), b.data<In>(), added, c.data<Out>(), shape_of(a, c, form));
  });
}

int64_t matmul_flops() {
  return flops_done.load(std::memory_order_relaxed);
}

}  // namespace attune

#include "attune/kernels/cpu/gemm/onednn_matmul.h"

#include <omp.h>
#include <dnnl.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "attune/base/address_space.h"
#include "attune/base/out_of_memory.h"
#include "attune/base/parallel.h"
#include "attune/base/rounding.h"
#include "attune/tensor/buffer.h"

namespace attune::cpu {
namespace {

const dnnl::engine& cpu_engine() {
  static const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

// A product that oneDNN has generated code for. Making one takes about 0.2 ms, using it again nothing.
struct Product {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

// Copies columns of b into the order in which the library's products read it fastest. The library would do it in each
// call anew.
struct ColumnCopy {
  dnnl::memory::desc from, to;
  dnnl::reorder primitive;
};

// The pieces of a product: all have the same number of rows of c, but the last. Likewise for the columns of b.
struct ProductPlan {
  int64_t rows = 0, columns = 0;
  Product piece, last_piece;
  dnnl::memory::desc b;                       // as the pieces read it
  std::optional<ColumnCopy> copy, last_copy;  // none: they read it as it is
};

using PlanKey = std::tuple<int64_t, int64_t, int64_t, bool, bool, bool, bool, Activation>;

// The library works with one thread, that which calls it. The destructor restores the thread's own setting.
class OneOpenMpThread {
 public:
  OneOpenMpThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneOpenMpThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int before_;
};

dnnl::algorithm algorithm_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return dnnl::algorithm::eltwise_relu;
    case Activation::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    case Activation::gelu_tanh:
      return dnnl::algorithm::eltwise_gelu_tanh;
    case Activation::gelu_sigmoid:
    case Activation::silu:
      return dnnl::algorithm::eltwise_swish;
    case Activation::tanh:
      return dnnl::algorithm::eltwise_tanh;
    case Activation::none:
      break;
  }
  return dnnl::algorithm::undef;
}

// The alpha of oneDNN's swish, x sigmoid(alpha x); 0 for functions without one.
float alpha_of(Activation activation) {
  switch (activation) {
    case Activation::gelu_sigmoid:
      return 1.702f;
    case Activation::silu:
      return 1.0f;
    case Activation::none:
    case Activation::relu:
    case Activation::gelu:
    case Activation::gelu_tanh:
    case Activation::tanh:
      break;
  }
  return 0.0f;
}

dnnl::primitive_attr attributes(const MatmulShape& shape) {
  dnnl::post_ops operations;
  if (shape.accumulate) operations.append_sum(1.0f);
  if (shape.activation != Activation::none) {
    const auto algorithm = algorithm_of(shape.activation);
    const float alpha = alpha_of(shape.activation);
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

// What the library is to multiply.
struct ProductForm {
  MatmulShape shape;
  bool with_bias;

  dnnl::memory::desc stored_b() const {
    return {{shape.k, shape.n},
            dnnl::memory::data_type::f32,
            shape.transpose_b ? dnnl::memory::dims{1, shape.k} : dnnl::memory::dims{shape.n, 1}};
  }
};

// The product of `rows` rows. The library chooses the layout of b where `b` leaves it open.
Product make_product(const ProductForm& form, int64_t rows, const dnnl::memory::desc& b) {
  using dnnl::memory;
  const MatmulShape& shape = form.shape;
  const memory::desc a({rows, shape.k}, memory::data_type::f32,
                       shape.transpose_a ? memory::dims{1, shape.m} : memory::dims{shape.k, 1});
  const memory::desc c({rows, shape.n}, memory::data_type::f32, memory::format_tag::ab);
  const memory::desc bias({1, shape.n}, memory::data_type::f32, memory::format_tag::ab);
  const dnnl::primitive_attr attr = attributes(shape);
#if DNNL_VERSION_MAJOR >= 3
  const auto description = form.with_bias ? dnnl::matmul::primitive_desc(cpu_engine(), a, b, bias, c, attr)
                                          : dnnl::matmul::primitive_desc(cpu_engine(), a, b, c, attr);
#else
  const auto operation = form.with_bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  const dnnl::matmul::primitive_desc description(operation, attr, cpu_engine());
#endif
  return {description, dnnl::matmul(description)};
}

// The number of rows of c that one call of the library computes: a fourth or an eighth of them, so that threads of
// different speed end together. A function of the shape alone, so that results do not depend on the number of threads.
// Measured: fewer than 64 rows at a time, or more pieces of few rows, read b too often.
int64_t rows_of_piece(const MatmulShape& shape) {
  constexpr int64_t kBlock = 32, kLeastRows = 64, kMostRows = 256, kManyRows = 1024;
  constexpr double kLeastFlops = 4e6;
  const double flops_of_row = 2.0 * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  const auto least = std::max(kLeastRows, static_cast<int64_t>(kLeastFlops / flops_of_row) + 1);
  const int64_t rows = std::max(std::min(shape.m / (shape.m < kManyRows ? 4 : 8), kMostRows), least);
  if (rows >= shape.m) return shape.m;
  const int64_t pieces = divide_up(shape.m, rows);
  return std::min(round_up(divide_up(shape.m, pieces), kBlock), shape.m);
}

// Measured: to copy b into the library's own order pays for this many rows, but not beside a transposed a.
bool copy_pays(const MatmulShape& shape) {
  constexpr int64_t kLeastRows = 1024;
  return shape.m >= kLeastRows && !shape.transpose_a;
}

// Copies columns [begin, begin + columns) of b.
ColumnCopy make_copy(const ProductForm& form, const dnnl::memory::desc& laid_out, int64_t begin, int64_t columns) {
  const dnnl::memory::desc stored = form.stored_b();
  ColumnCopy copy{.from = stored.submemory_desc({form.shape.k, columns}, {0, 0}),
                  .to = laid_out.submemory_desc({form.shape.k, columns}, {0, begin}),
                  .primitive = {}};
  copy.primitive = dnnl::reorder(dnnl::reorder::primitive_desc(cpu_engine(), copy.from, cpu_engine(), copy.to));
  return copy;
}

ProductPlan make_plan(const ProductForm& form) {
  const OneOpenMpThread one;
  const MatmulShape& shape = form.shape;
  ProductPlan plan;
  plan.rows = rows_of_piece(shape);
  plan.b = form.stored_b();
  if (plan.rows == shape.m) {
    plan.piece = make_product(form, shape.m, plan.b);
    return plan;
  }
  const dnnl::memory::desc open({shape.k, shape.n}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any);
  plan.piece = make_product(form, plan.rows, copy_pays(shape) ? open : plan.b);
  plan.b = plan.piece.description.weights_desc();
  if (const int64_t rest = shape.m % plan.rows; rest > 0) plan.last_piece = make_product(form, rest, plan.b);
  if (plan.b == form.stored_b()) return plan;
  constexpr int64_t kColumnBlock = 192;  // a multiple of all of the library's blocks: 16, 32, 48 and 64
  plan.columns = round_up(divide_up(shape.n, 8), kColumnBlock);
  const int64_t last = (shape.n - 1) / plan.columns * plan.columns;
  if (last > 0) plan.copy = make_copy(form, plan.b, 0, plan.columns);
  plan.last_copy = make_copy(form, plan.b, last, shape.n - last);
  return plan;
}

// The library does not survive a failure of its own requests for memory.
constexpr int64_t kRoomForProduct = int64_t{128} << 20;

bool is_scarce(std::optional<int64_t> address_space) {
  return address_space && *address_space < kRoomForProduct;
}

// Plans that were used lately. Shapes repeat from layer to layer and, with batches of one size, from step to step. Each
// piece of generated code takes 256 KiB of address space, whatever its length, and a product has several. So plans are
// counted by the address space that they took: when those of a generation have taken kMostBytes, the generation before
// it is forgotten, and what is used of it meanwhile is kept.
class PlanCache {
 public:
  std::shared_ptr<const ProductPlan> find(const ProductForm& form);

 private:
  struct Kept {
    std::shared_ptr<const ProductPlan> plan;
    int64_t bytes;
  };
  using Generation = std::map<PlanKey, Kept>;
  static constexpr int64_t kMostBytes = int64_t{160} << 20;
  static constexpr int64_t kLeastBytes = int64_t{1} << 20;  // of a plan, where the system does not say what it took

  void keep(const PlanKey& key, Kept kept);
  static Kept make(const ProductForm& form);
  void forget();

  Generation recent_, before_;
  int64_t recent_bytes_ = 0;
};

void PlanCache::keep(const PlanKey& key, Kept kept) {
  recent_bytes_ += kept.bytes;
  recent_.emplace(key, std::move(kept));
  if (recent_bytes_ < kMostBytes) return;
  before_ = std::exchange(recent_, {});
  recent_bytes_ = 0;
}

void PlanCache::forget() {
  recent_.clear();
  before_.clear();
  recent_bytes_ = 0;
}

PlanCache::Kept PlanCache::make(const ProductForm& form) {
  const std::optional<int64_t> before = address_space_in_use();
  auto plan = std::make_shared<ProductPlan>(make_plan(form));
  const std::optional<int64_t> after = address_space_in_use();
  return {std::move(plan), std::max(before && after ? *after - *before : 0, kLeastBytes)};
}

std::shared_ptr<const ProductPlan> PlanCache::find(const ProductForm& form) {
  const MatmulShape& shape = form.shape;
  const PlanKey key{shape.m,           shape.n,          shape.k,        shape.transpose_a,
                    shape.transpose_b, shape.accumulate, form.with_bias, shape.activation};
  if (const auto found = recent_.find(key); found != recent_.end()) return found->second.plan;
  Kept kept;
  if (const auto old = before_.find(key); old != before_.end()) {
    kept = old->second;
  } else {
    if (is_scarce(address_space_left())) forget();
    if (is_scarce(address_space_left())) throw OutOfMemory(kRoomForProduct);
    kept = make(form);
  }
  const std::shared_ptr<const ProductPlan> plan = kept.plan;
  keep(key, std::move(kept));
  return plan;
}

std::shared_ptr<const ProductPlan> find_plan(const ProductForm& form) {
  static std::mutex mutex;
  static PlanCache plans;
  const std::lock_guard lock(mutex);
  try {
    return plans.find(form);
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) throw OutOfMemory(kRoomForProduct);
    throw;
  }
}

dnnl::memory memory_at(const dnnl::memory::desc& description, const void* data) {
  return {description, cpu_engine(), const_cast<void*>(data)};
}

// Returns the offset of a column of b, in elements.
int64_t offset_of_column(const dnnl::memory::desc& b, int64_t k, int64_t column) {
  const dnnl::memory::desc from_there = b.submemory_desc({k, 1}, {0, column});
#if DNNL_VERSION_MAJOR >= 3
  return from_there.get_submemory_offset();
#else
  return from_there.data.offset0;
#endif
}

dnnl::stream& stream_of_thread() {
  thread_local dnnl::stream stream(cpu_engine());
  return stream;
}

// The addresses of a product of the library.
struct ProductPointers {
  const float* a;
  const float* b;
  const float* bias;
  float* c;
};

// b as the pieces of the plan read it. The columns are copied by several threads.
std::shared_ptr<Buffer> copy_of_b(const ProductForm& form, const ProductPlan& plan, const float* b) {
  const MatmulShape& shape = form.shape;
  const auto laid_out = allocate_buffer(plan.b.get_size());
  auto* const to = static_cast<float*>(laid_out->data());
  parallel_for(shape.n, plan.columns, [&](int64_t begin, int64_t end) {
    const OneOpenMpThread one;
    const bool last = end == shape.n;  // its description has the offset in it
    const ColumnCopy& copy = last ? *plan.last_copy : *plan.copy;
    dnnl::memory source = memory_at(copy.from, b + begin * (shape.transpose_b ? shape.k : 1));
    dnnl::memory target = memory_at(copy.to, last ? to : to + offset_of_column(plan.b, shape.k, begin));
    copy.primitive.execute(stream_of_thread(), source, target);
    stream_of_thread().wait();
  });
  return laid_out;
}

void execute(const Product& product, const ProductPointers& at) {
  const OneOpenMpThread one;
  const dnnl::memory::desc scratch_description = product.description.scratchpad_desc();
  const std::shared_ptr<Buffer> scratch = allocate_buffer(scratch_description.get_size());
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, memory_at(product.description.src_desc(), at.a)},
      {DNNL_ARG_WEIGHTS, memory_at(product.description.weights_desc(), at.b)},
      {DNNL_ARG_DST, memory_at(product.description.dst_desc(), at.c)},
      {DNNL_ARG_SCRATCHPAD, memory_at(scratch_description, scratch->data())},
  };
  if (at.bias != nullptr) arguments.emplace(DNNL_ARG_BIAS, memory_at(product.description.bias_desc(), at.bias));
  product.primitive.execute(stream_of_thread(), arguments);
  stream_of_thread().wait();
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

}  // namespace

bool has_onednn_float32() {
  static const bool found = has_instructions(dnnl::cpu_isa::avx512_core);
  return found;
}

bool onednn_allows_bfloat16() {
  static const bool found = has_instructions(dnnl::cpu_isa::avx512_core_bf16);
  return found;
}

bool onednn_allows_amx() {
  static const bool found = has_instructions(dnnl::cpu_isa::avx512_core_amx);
  return found;
}

void onednn_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  const ProductForm form{.shape = shape, .with_bias = bias != nullptr};
  const std::shared_ptr<const ProductPlan> plan = find_plan(form);
  const std::shared_ptr<Buffer> copied = plan->last_copy ? copy_of_b(form, *plan, b) : nullptr;
  const float* const from = copied ? static_cast<const float*>(copied->data()) : b;
  parallel_for(shape.m, plan->rows, [&](int64_t begin, int64_t end) {
    execute(end - begin == plan->rows ? plan->piece : plan->last_piece,
            {.a = a + begin * (shape.transpose_a ? 1 : shape.k), .b = from, .bias = bias, .c = c + begin * shape.n});
  });
}

}  // namespace attune::cpu

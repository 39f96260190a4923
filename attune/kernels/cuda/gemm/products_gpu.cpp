// cuBLASLt. The library is loaded when the first product is formed, so that the program starts without it.

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "attune/base/fail.h"
#include "attune/kernels/cuda/gemm/products.h"
#include "attune/kernels/cuda/runtime/loaded_library.h"
#include "attune/kernels/cuda/runtime/runtime.h"
#include "attune/tensor/device_error.h"

namespace attune::cuda {
namespace {

constexpr size_t kMostPlans = 4096;                   // kept at once, of a kilobyte each
constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // what NVIDIA advises for H100

// The functions of the library.
struct Library {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) make_product;
  decltype(&cublasLtMatmulDescDestroy) destroy_product;
  decltype(&cublasLtMatmulDescSetAttribute) set_product;
  decltype(&cublasLtMatrixLayoutCreate) make_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) make_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
};

Library load() {
  constexpr int kMajor = CUBLAS_VER_MAJOR;
  const LoadedLibrary loaded(fmt::format("libcublasLt.so.{}", kMajor),
                             {ATTUNE_CUDA_LIBRARIES, "/usr/local/cuda/lib64"});
  Library library{};
  loaded.find(library.create, "cublasLtCreate");
  loaded.find(library.matmul, "cublasLtMatmul");
  loaded.find(library.make_product, "cublasLtMatmulDescCreate");
  loaded.find(library.destroy_product, "cublasLtMatmulDescDestroy");
  loaded.find(library.set_product, "cublasLtMatmulDescSetAttribute");
  loaded.find(library.make_layout, "cublasLtMatrixLayoutCreate");
  loaded.find(library.destroy_layout, "cublasLtMatrixLayoutDestroy");
  loaded.find(library.set_layout, "cublasLtMatrixLayoutSetAttribute");
  loaded.find(library.make_preference, "cublasLtMatmulPreferenceCreate");
  loaded.find(library.destroy_preference, "cublasLtMatmulPreferenceDestroy");
  loaded.find(library.set_preference, "cublasLtMatmulPreferenceSetAttribute");
  loaded.find(library.choose, "cublasLtMatmulAlgoGetHeuristic");
  return library;
}

const Library& library() {
  static const Library functions = load();
  return functions;
}

void check(const char* name, cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS)
    fail<DeviceError>("{}: cuBLASLt refuses the product (status {})", name, static_cast<int>(status));
}

struct DestroyProduct {
  void operator()(cublasLtMatmulDesc_t product) const { library().destroy_product(product); }
};
struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t layout) const { library().destroy_layout(layout); }
};
struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t preference) const { library().destroy_preference(preference); }
};
using Description = std::unique_ptr<cublasLtMatmulDescOpaque_t, DestroyProduct>;
using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, DestroyLayout>;
using Preference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, DestroyPreference>;

cudaDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

// What the library does in the same pass. An activation that it does not have follows in a pass of its own. Its GELU is
// the one with tanh.
cublasLtEpilogue_t epilogue_of(const Product& p) {
  const bool bias = p.bias != nullptr;
  if (p.activation == Activation::relu) return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  if (p.activation == Activation::gelu_tanh) return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The library counts columns first: a matrix that is stored row by row is its transpose. So it forms
// c^T [n, m] = b^T [n, k] a^T [k, m].
Layout layout_of(const char* name, DType dtype, int64_t stored_rows, int64_t stored_columns, const Matrix& matrix,
                 int64_t batch) {
  cublasLtMatrixLayout_t made = nullptr;
  check(name, library().make_layout(&made, type_of(dtype), static_cast<uint64_t>(stored_columns),
                                    static_cast<uint64_t>(stored_rows), matrix.row));
  Layout layout(made);
  if (batch > 1) {
    const auto count = static_cast<int32_t>(batch);
    check(name, library().set_layout(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
    check(name,
          library().set_layout(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &matrix.next, sizeof(matrix.next)));
  }
  return layout;
}

// The largest power of two up to 256 that divides the address. The library takes 256 for granted unless it is told.
uint32_t alignment_of(const void* address) {
  return uint32_t{1} << std::min(8, std::countr_zero(reinterpret_cast<uintptr_t>(address)));
}

// Of what the library calls a, b, c and the bias. They decide which of its algorithms can be used.
std::array<uint32_t, 4> alignments_of(const Product& p) {
  return {alignment_of(p.b.data), alignment_of(p.a.data), alignment_of(p.c.data), alignment_of(p.bias)};
}

void set_alignments(const char* name, cublasLtMatmulPreference_t preferred, const Product& p) {
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, uint32_t bytes) {
    check(name, library().set_preference(preferred, attribute, &bytes, sizeof(bytes)));
  };
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.b.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.a.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c.data));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c.data));
}

// A product as the library has it, with the algorithm that it chose for these sizes.
struct Plan {
  Description description;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm;
  bool adds_bias, activates;  // false: a pass of our own follows
};

// Returns nothing if the library has no algorithm.
std::optional<Plan> find_plan(const char* name, cublasLtHandle_t handle, const Product& p) {
  Plan plan{};
  cublasLtMatmulDesc_t made = nullptr;
  check(name, library().make_product(&made, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  plan.description.reset(made);
  const cublasOperation_t of_a = p.a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t of_b = p.b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  check(name, library().set_product(made, CUBLASLT_MATMUL_DESC_TRANSA, &of_b, sizeof(of_b)));
  check(name, library().set_product(made, CUBLASLT_MATMUL_DESC_TRANSB, &of_a, sizeof(of_a)));
  const cublasLtEpilogue_t epilogue = epilogue_of(p);
  check(name, library().set_product(made, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  if (p.bias != nullptr) {
    const cudaDataType_t bias_type = type_of(p.c_type);
    check(name, library().set_product(made, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias_type, sizeof(bias_type)));
    check(name, library().set_product(made, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p.bias, sizeof(p.bias)));
  }
  plan.a = layout_of(name, p.type, p.a.transposed ? p.k : p.m, p.a.transposed ? p.m : p.k, p.a, p.batch);
  plan.b = layout_of(name, p.type, p.b.transposed ? p.n : p.k, p.b.transposed ? p.k : p.n, p.b, p.batch);
  plan.c = layout_of(name, p.c_type, p.m, p.n, p.c, p.batch);
  cublasLtMatmulPreference_t preferred = nullptr;
  check(name, library().make_preference(&preferred));
  const Preference preference(preferred);
  check(name, library().set_preference(preferred, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
                                       sizeof(kWorkspaceBytes)));
  set_alignments(name, preferred, p);
  cublasLtMatmulHeuristicResult_t choice{};
  int found = 0;
  const cublasStatus_t status = library().choose(handle, made, plan.b.get(), plan.a.get(), plan.c.get(), plan.c.get(),
                                                 preferred, 1, &choice, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return std::nullopt;
  check(name, status);
  if (found == 0) return std::nullopt;
  plan.algorithm = choice.algo;
  plan.adds_bias = p.bias != nullptr;
  plan.activates = epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS;
  return plan;
}

// Returns nothing if the library does not form such a product. If it forms the product alone, without bias and
// activation, the plan is for that.
std::optional<Plan> make_plan(const char* name, cublasLtHandle_t handle, const Product& p) {
  if (std::optional<Plan> plan = find_plan(name, handle, p)) return plan;
  Product alone = p;
  alone.bias = nullptr;
  alone.activation = Activation::none;
  return find_plan(name, handle, alone);
}

// One device's handle, its plans, and memory that its products share: they follow each other in one stream.
class Products {
 public:
  explicit Products(Cuda device)
      : workspace_(Tensor::empty({static_cast<int64_t>(kWorkspaceBytes)}, {DType::u8, Device(device)})) {
    check("matmul", library().create(&handle_));
  }

  void multiply(Cuda device, const char* name, const Product& p) {
    const std::lock_guard lock(mutex_);
    Tensor rounded;  // the library adds a bias in the type of c
    Product given = p;
    if (p.bias != nullptr && p.c_type == DType::bf16) {
      rounded = Tensor::empty({p.n}, {DType::bf16, Device(device)});
      round_bias(device, name, p.bias, rounded);
      given.bias = rounded.raw();
    }
    const Plan* const found = plan_of(name, given);
    if (found == nullptr) return multiply_simply(device, name, p);
    const Plan& plan = *found;
    if (plan.adds_bias)
      check(name, library().set_product(plan.description.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &given.bias,
                                        sizeof(given.bias)));
    const float alpha = 1, beta = p.accumulate ? 1 : 0;
    check(name, library().matmul(handle_, plan.description.get(), &alpha, p.b.data, plan.b.get(), p.a.data,
                                 plan.a.get(), &beta, p.c.data, plan.c.get(), p.c.data, plan.c.get(), &plan.algorithm,
                                 workspace_.raw(), kWorkspaceBytes, static_cast<cudaStream_t>(stream_of(device))));
    check_launch(device, name);
    Product rest = p;
    if (plan.adds_bias) rest.bias = nullptr;
    if (plan.activates) rest.activation = Activation::none;
    finish_product(device, name, rest);
  }

 private:
  using Key =
      std::tuple<std::array<int64_t, 10>, std::array<uint32_t, 4>, bool, bool, bool, bool, DType, DType, Activation>;

  // Null if the library has no algorithm.
  const Plan* plan_of(const char* name, const Product& p) {
    const Key key{{p.m, p.n, p.k, p.a.row, p.b.row, p.c.row, p.a.next, p.b.next, p.c.next, p.batch},
                  alignments_of(p),
                  p.a.transposed,
                  p.b.transposed,
                  p.accumulate,
                  p.bias != nullptr,
                  p.type,
                  p.c_type,
                  p.activation};
    const auto kept = plans_.find(key);
    // Batches of packed texts have ever new sizes. A product that is running does not need its plan.
    if (kept == plans_.end() && plans_.size() >= kMostPlans) plans_.clear();
    const std::optional<Plan>& plan =
        kept != plans_.end() ? kept->second : plans_.emplace(key, make_plan(name, handle_, p)).first->second;
    return plan ? &*plan : nullptr;
  }

  cublasLtHandle_t handle_ = nullptr;
  Tensor workspace_;
  std::mutex mutex_;
  std::map<Key, std::optional<Plan>> plans_;
};

Products& products_of(Cuda device) {
  static std::mutex mutex;
  static auto* const all = new std::map<int, std::unique_ptr<Products>>;  // outlives static tensors
  const std::lock_guard lock(mutex);
  std::unique_ptr<Products>& products = (*all)[device.index];
  if (!products) products = std::make_unique<Products>(device);
  return *products;
}

}  // namespace

void multiply(Cuda device, const char* name, const Product& product) {
  if (product.m == 0 || product.n == 0) return;
  // float64 is for gradient checks. The library takes no product of nothing, whose bias and activation remain.
  if (product.type == DType::f64 || product.k == 0) return multiply_simply(device, name, product);
  products_of(device).multiply(device, name, product);
}

}  // namespace attune::cuda

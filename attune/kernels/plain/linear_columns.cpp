#include "attune/kernels/gemm/linear_columns.h"

#include <limits>

#include "attune/kernels/for_dtype.h"

namespace attune {

void linear_columns(Plain, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    std::span<const ColumnGroup> groups, const Tensor& y) {
  const int64_t in = x.size(1), width = y.size(1);
  dispatch_floating("linear_columns", x.dtype(), [&]<class T>(T) {
    const T* const added = data_or_null<T>(bias);
    const auto multiply = [&](const auto* numbers) {
      for (const ColumnGroup& group : groups) {
        for (int64_t r = group.begin; r < group.end; ++r) {
          T* const to = y.data<T>() + r * width;
          for (int64_t j = 0; j < width; ++j) to[j] = -std::numeric_limits<T>::infinity();
          for (size_t j = 0; j < group.columns.size(); ++j) {
            const int64_t column = group.columns[j];
            double sum = added != nullptr ? added[column] : 0;
            for (int64_t k = 0; k < in; ++k)
              sum += static_cast<double>(x.data<T>()[r * in + k]) * static_cast<double>(numbers[column * in + k]);
            to[j] = static_cast<T>(sum);
          }
        }
      }
    };
    weight.dtype() == DType::bf16 ? multiply(weight.data<bfloat16>()) : multiply(weight.data<T>());
  });
}

}  // namespace attune

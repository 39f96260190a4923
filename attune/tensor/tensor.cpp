#include "attune/tensor/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"

namespace attune {
namespace {

constexpr int64_t kGrain = 1 << 15;

// Calls f with a value of the element type.
template <class F>
void dispatch_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f(float{});
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(int32_t{});
    case DType::i64:
      return f(int64_t{});
    case DType::u8:
      return f(uint8_t{});
    case DType::bf16:
      return f(bfloat16{});
  }
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, const TensorOptions& options) {
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = options.dtype;
  t.device_ = options.device;
  t.buffer_ = allocate_buffer(t.bytes());
  return t;
}

Tensor Tensor::zeros(const Shape& shape, const TensorOptions& options) {
  Tensor t = empty(shape, options);
  auto* begin = static_cast<std::byte*>(t.raw());
  parallel_for(static_cast<int64_t>(t.bytes()), kGrain * 8,
               [&](int64_t from, int64_t to) { std::memset(begin + from, 0, static_cast<size_t>(to - from)); });
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor t = empty(shape, options);
  t.fill(value);
  return t;
}

Tensor Tensor::from_bytes(const Shape& shape, DType dtype, std::span<const std::byte> bytes) {
  const size_t wanted = static_cast<size_t>(shape.numel()) * size_of(dtype);
  if (bytes.size() != wanted)
    fail<ShapeError>("tensor: shape {} of {} takes {} bytes, found {}", shape.text(), name_of(dtype), wanted,
                     bytes.size());
  Tensor t = empty(shape, {.dtype = dtype});
  if (wanted > 0) std::memcpy(t.raw(), bytes.data(), wanted);
  return t;
}

Tensor Tensor::in_buffer(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, size_t offset) {
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = dtype;
  if (offset > buffer->bytes() || t.bytes() > buffer->bytes() - offset)
    fail<ShapeError>("tensor: shape {} of {} takes {} bytes from byte {} on, the buffer has {}", shape.text(),
                     name_of(dtype), t.bytes(), offset, buffer->bytes());
  if ((reinterpret_cast<uintptr_t>(buffer->data()) + offset) % size_of(dtype) != 0)
    fail<ShapeError>("tensor: byte {} of the buffer is not aligned for {}", offset, name_of(dtype));
  t.buffer_ = std::move(buffer);
  t.offset_ = offset;
  return t;
}

double Tensor::item() const {
  if (numel() != 1) fail<ShapeError>("item: needs one element, found shape {}", shape_.text());
  double value = 0;
  dispatch_any(dtype_, [&]<class T>(T) { value = static_cast<double>(*data<T>()); });
  return value;
}

Tensor Tensor::reshape(const std::vector<int64_t>& sizes) const {
  std::vector<int64_t> resolved = sizes;
  int64_t known = 1;
  int64_t* unknown = nullptr;
  for (int64_t& size : resolved) {
    if (size == -1 && unknown == nullptr) {
      unknown = &size;
    } else {
      known *= size;
    }
  }
  if (unknown != nullptr) *unknown = known == 0 ? 0 : numel() / known;
  const Shape shape{std::span<const int64_t>(resolved)};
  if (shape.numel() != numel())
    fail<ShapeError>("reshape: {} has {} elements, {} has {}", shape_.text(), numel(), shape.text(), shape.numel());
  Tensor t = *this;
  t.shape_ = shape;
  return t;
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  if (rank() == 0 || begin < 0 || end < begin || end > size(0))
    fail<ShapeError>("rows: [{}, {}) does not lie in shape {}", begin, end, shape_.text());
  std::vector<int64_t> sizes(shape_.begin(), shape_.end());
  const int64_t row = sizes[0] == 0 ? 0 : numel() / sizes[0];
  sizes[0] = end - begin;
  Tensor t = detach();
  t.shape_ = Shape{std::span<const int64_t>(sizes)};
  t.offset_ += static_cast<size_t>(begin * row) * size_of(dtype_);
  return t;
}

Tensor Tensor::joined(std::span<const Tensor> parts) {
  if (parts.empty() || !parts[0].defined() || parts[0].rank() == 0) return {};
  Tensor t = parts[0].detach();
  std::vector<int64_t> sizes(t.shape_.begin(), t.shape_.end());
  const std::vector<int64_t> row(sizes.begin() + 1, sizes.end());
  size_t end = t.offset_ + t.bytes();
  for (const Tensor& part : parts.subspan(1)) {
    if (part.buffer_ != t.buffer_ || part.offset_ != end || part.dtype_ != t.dtype_ || part.rank() != t.rank() ||
        !std::equal(row.begin(), row.end(), part.shape_.begin() + 1))
      return {};
    sizes[0] += part.size(0);
    end += part.bytes();
  }
  t.shape_ = Shape{std::span<const int64_t>(sizes)};
  return t;
}

Tensor Tensor::detach() const {
  Tensor t = *this;
  t.node_ = nullptr;
  return t;
}

Tensor Tensor::clone() const {
  Tensor t = empty_like(*this);
  t.copy_from(*this);
  return t;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return detach();
  Tensor t = empty(shape_, {dtype, device_});
  dispatch_any(dtype_, [&]<class From>(From) {
    dispatch_any(dtype, [&]<class To>(To) {
      const auto source = values<From>();
      const auto target = t.values<To>();
      for (size_t i = 0; i < source.size(); ++i) target[i] = static_cast<To>(source[i]);
    });
  });
  return t;
}

void Tensor::copy_from(const Tensor& source) const {
  if (source.shape() != shape_ || source.dtype() != dtype_)
    fail<ShapeError>("copy: {} {} cannot be filled from {} {}", name_of(dtype_), shape_.text(), name_of(source.dtype()),
                     source.shape().text());
  auto* to = static_cast<std::byte*>(raw());
  const auto* from = static_cast<const std::byte*>(source.raw());
  parallel_for(static_cast<int64_t>(bytes()), kGrain * 8, [&](int64_t begin, int64_t end) {
    std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

void Tensor::fill(double value) const {
  dispatch_any(dtype_, [&]<class T>(T) {
    for (T& v : values<T>()) v = static_cast<T>(value);
  });
}

void Tensor::check_dtype(DType wanted) const {
  if (!defined()) fail<ShapeError>("tensor: has no data");
  if (dtype_ != wanted) fail<ShapeError>("tensor: is {}, read as {}", name_of(dtype_), name_of(wanted));
}

void add_in_place(const Tensor& accumulator, const Tensor& x) {
  if (accumulator.numel() != x.numel() || accumulator.dtype() != x.dtype())
    fail<ShapeError>("add: {} {} and {} {} do not fit", name_of(accumulator.dtype()), accumulator.shape().text(),
                     name_of(x.dtype()), x.shape().text());
  dispatch_floating("add", x.dtype(), [&]<class T>(T) {
    T* __restrict to = accumulator.data<T>();
    const T* __restrict from = x.data<T>();
    parallel_for(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    });
  });
}

int64_t first_not_finite(const Tensor& x) {
  int64_t found = -1;
  dispatch_floating("first_not_finite", x.dtype(), [&]<class T>(T) {
    const auto values = x.values<T>();
    for (size_t i = 0; i < values.size() && found < 0; ++i) {
      if (!std::isfinite(values[i])) found = static_cast<int64_t>(i);
    }
  });
  return found;
}

}  // namespace attune

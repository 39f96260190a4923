#include "attune/tensor/tensor.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/tensor/dispatch.h"
#include "attune/tensor/memory.h"
#include "attune/tensor/plain_memory.h"

namespace attune {
namespace {

std::shared_ptr<Buffer> allocate(const Device& device, size_t bytes) {
  switch (device.kind()) {
    case Device::Kind::cpu:
      return allocate_buffer(bytes);
    case Device::Kind::plain:
      return allocate_plain_buffer(bytes);
    case Device::Kind::cuda:
      break;
  }
  return allocate_cuda_buffer({device.index()}, bytes);
}

}  // namespace

Tensor Tensor::empty(const Shape& shape, const TensorOptions& options) {
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = options.dtype;
  t.device_ = options.device;
  t.buffer_ = allocate(options.device, t.bytes());
  return t;
}

Tensor Tensor::zeros(const Shape& shape, const TensorOptions& options) {
  Tensor t = empty(shape, options);
  dispatch(t.device_, [&](auto device) { zero(device, t); });
  return t;
}

Tensor Tensor::full(const Shape& shape, double value, const TensorOptions& options) {
  Tensor t = empty(shape, options);
  t.fill(value);
  return t;
}

Tensor Tensor::from_bytes(const Shape& shape, DType dtype, std::span<const std::byte> bytes, const Device& device) {
  Tensor t = empty(shape, {dtype, device});
  t.assign_bytes(bytes);
  return t;
}

Tensor Tensor::send_bytes(const Shape& shape, DType dtype, std::span<const std::byte> bytes, const Device& device) {
  if (device.kind() != Device::Kind::cuda || bytes.empty()) return from_bytes(shape, dtype, bytes, device);
  Tensor t;
  t.shape_ = shape;
  t.dtype_ = dtype;
  t.device_ = device;
  t.check_bytes(bytes);
  t.buffer_ = send_to_cuda({device.index()}, bytes);
  return t;
}

void Tensor::check_bytes(std::span<const std::byte> values) const {
  if (values.size() != bytes())
    fail<ShapeError>("tensor: shape {} of {} takes {} bytes, found {}", shape_.text(), name_of(dtype_), bytes(),
                     values.size());
}

void Tensor::assign_bytes(std::span<const std::byte> values) const {
  check_bytes(values);
  if (values.empty()) return;
  dispatch(device_, [&](auto device) { copy_from_host(device, values.data(), *this); });
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
  const Tensor value = to(DType::f64).to(Cpu{});
  return *value.data<double>();
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
  dispatch(device_, [&](auto device) { convert(device, *this, t); });
  return t;
}

Tensor Tensor::to(const Device& device) const {
  if (device == device_) return detach();
  Tensor t = empty(shape_, {dtype_, device});
  t.copy_from(*this);
  return t;
}

void Tensor::copy_from(const Tensor& source) const {
  if (source.shape() != shape_ || source.dtype() != dtype_)
    fail<ShapeError>("copy: {} {} cannot be filled from {} {}", name_of(dtype_), shape_.text(), name_of(source.dtype()),
                     source.shape().text());
  if (bytes() == 0) return;
  if (source.device() == device_) {
    dispatch(device_, [&](auto device) { copy(device, source, *this); });
  } else if (device_.is_host()) {
    dispatch(source.device(), [&](auto device) { copy_to_host(device, source, static_cast<std::byte*>(raw())); });
  } else if (source.device().is_host()) {
    dispatch(device_, [&](auto device) { copy_from_host(device, static_cast<const std::byte*>(source.raw()), *this); });
  } else {
    copy_from(source.to(Cpu{}));
  }
}

std::span<std::byte> Tensor::host_bytes() const {
  if (!device_.is_host()) fail<ShapeError>("tensor: is on {}, where the host cannot read it", device_.text());
  return {static_cast<std::byte*>(raw()), bytes()};
}

void Tensor::fill(double value) const {
  dispatch(device_, [&](auto device) { attune::fill(device, *this, value); });
}

void Tensor::check_dtype(DType wanted) const {
  if (!defined()) fail<ShapeError>("tensor: has no data");
  if (dtype_ != wanted) fail<ShapeError>("tensor: is {}, read as {}", name_of(dtype_), name_of(wanted));
}

void add_in_place(const Tensor& accumulator, const Tensor& x) {
  if (accumulator.numel() != x.numel() || accumulator.dtype() != x.dtype() || accumulator.device() != x.device())
    fail<ShapeError>("add: {} {} on {} and {} {} on {} do not fit", name_of(accumulator.dtype()),
                     accumulator.shape().text(), accumulator.device().text(), name_of(x.dtype()), x.shape().text(),
                     x.device().text());
  dispatch(x.device(), [&](auto device) { add(device, accumulator, x); });
}

int64_t first_not_finite(const Tensor& x) {
  return dispatch(x.device(), [&](auto device) { return first_not_finite(device, x); });
}

}  // namespace attune

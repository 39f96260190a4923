#pragma once
// A tensor: shape, dtype, device and a part of a reference-counted buffer; always contiguous and row-major.

#include <memory>
#include <span>
#include <vector>

#include "attune/tensor/buffer.h"
#include "attune/tensor/device.h"
#include "attune/tensor/dtype.h"
#include "attune/tensor/shape.h"

namespace [[gnu::visibility("default")]] attune {

struct GradientNode;  // attune/autograd/graph.h

struct TensorOptions {
  DType dtype = DType::f32;
  Device device = {};
};

/// A handle: copies share the data. `reshape` shares data and gradient; `rows` and `detach` share only the data.
class Tensor {
 public:
  Tensor() = default;  // undefined: no shape, no data

  static Tensor empty(const Shape& shape, const TensorOptions& options = {});
  static Tensor zeros(const Shape& shape, const TensorOptions& options = {});
  static Tensor full(const Shape& shape, double value, const TensorOptions& options = {});
  static Tensor empty_like(const Tensor& x) { return empty(x.shape(), {x.dtype(), x.device()}); }
  static Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), {x.dtype(), x.device()}); }
  /// A copy of the values. Throws ShapeError unless there is one value for each element of the shape.
  template <class T>
  static Tensor from(const Shape& shape, std::span<const T> values, const Device& device = {}) {
    return from_bytes(shape, dtype_of<T>, std::as_bytes(values), device);
  }
  template <class T>
  static Tensor from(const Shape& shape, const std::vector<T>& values, const Device& device = {}) {
    return from(shape, std::span<const T>(values), device);
  }
  /// A copy of raw values. Throws ShapeError unless there are exactly numel * size_of(dtype) bytes.
  static Tensor from_bytes(const Shape& shape, DType dtype, std::span<const std::byte> bytes,
                           const Device& device = {});
  /// The same as from_bytes(). On a GPU the copy goes on beside its work, and what is started there later waits for it.
  static Tensor send_bytes(const Shape& shape, DType dtype, std::span<const std::byte> bytes, const Device& device);
  /// A tensor over the memory `offset` bytes into the buffer, which is shared. Throws ShapeError if it ends beyond the
  /// buffer or is not aligned for the dtype.
  static Tensor in_buffer(const Shape& shape, DType dtype, std::shared_ptr<Buffer> buffer, size_t offset);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int dim) const { return shape_[dim]; }
  int64_t numel() const { return shape_.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }

  /// The values in the device's memory. Only kernels use this; all other code uses HostView. Throws ShapeError when T
  /// is not the dtype.
  template <class T>
  T* data() const {
    check_dtype(dtype_of<T>);
    return static_cast<T*>(raw());
  }
  template <class T>
  std::span<T> values() const {
    return {data<T>(), static_cast<size_t>(numel())};
  }
  void* raw() const { return buffer_ ? static_cast<std::byte*>(buffer_->data()) + offset_ : nullptr; }
  /// The bytes of a tensor on the CPU, to read and to write. Throws ShapeError for another device.
  std::span<std::byte> host_bytes() const;
  /// Where the values begin, only to compare tensors; not to be read from.
  const void* address() const { return raw(); }
  /// The value of a tensor with one element, converted to double.
  double item() const;

  /// The same values in another shape with the same number of elements; one size may be -1. Differentiable.
  Tensor reshape(const std::vector<int64_t>& sizes) const;
  /// Rows [begin, end) of the first dimension, sharing the data.
  Tensor rows(int64_t begin, int64_t end) const;
  /// The inverse of rows(): one tensor over `parts` if they are adjacent rows() of one tensor; else an undefined one.
  static Tensor joined(std::span<const Tensor> parts);
  Tensor detach() const;
  Tensor clone() const;
  Tensor to(DType dtype) const;
  Tensor to(const Device& device) const;
  void copy_from(const Tensor& source) const;  // same shape and dtype; the device may differ
  /// Replaces the values. Throws ShapeError unless there is one for each element and T is the dtype.
  template <class T>
  void assign(std::span<const T> values) const {
    check_dtype(dtype_of<T>);
    assign_bytes(std::as_bytes(values));
  }
  void assign_bytes(std::span<const std::byte> bytes) const;
  void fill(double value) const;

  /// How many handles share this memory; 1 means that it may be overwritten.
  int64_t shared_by() const { return buffer_ ? buffer_.use_count() : 0; }

  const std::shared_ptr<GradientNode>& node() const { return node_; }
  void set_node(std::shared_ptr<GradientNode> node) { node_ = std::move(node); }

 private:
  void check_dtype(DType wanted) const;
  void check_bytes(std::span<const std::byte> values) const;

  std::shared_ptr<Buffer> buffer_;
  size_t offset_ = 0;  // bytes
  Shape shape_;
  DType dtype_ = DType::f32;
  Device device_;
  std::shared_ptr<GradientNode> node_;
};

/// accumulator += x, element by element; same shape and floating dtype.
void add_in_place(const Tensor& accumulator, const Tensor& x);

/// Returns the flat index of the first element that is not finite, or -1.
int64_t first_not_finite(const Tensor& x);

}  // namespace attune

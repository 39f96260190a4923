// Tensors, which NumPy, PyTorch and others read and write in place: the buffer protocol and DLPack, both ways.

#include <nanobind/ndarray.h>

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/tensor/tensor.h"
#include "call.h"

namespace attune::python {
namespace {

struct Format {
  DType dtype;
  nb::dlpack::dtype_code code;
  uint8_t bits;
  const char* buffer;  // of the struct module; null: it has none
};

constexpr Format kFormats[] = {
    {DType::f32, nb::dlpack::dtype_code::Float, 32, "f"},       {DType::f64, nb::dlpack::dtype_code::Float, 64, "d"},
    {DType::i32, nb::dlpack::dtype_code::Int, 32, "i"},         {DType::i64, nb::dlpack::dtype_code::Int, 64, "q"},
    {DType::u8, nb::dlpack::dtype_code::UInt, 8, "B"},          {DType::u8, nb::dlpack::dtype_code::Bool, 8, "B"},
    {DType::bf16, nb::dlpack::dtype_code::Bfloat, 16, nullptr},
};

const Format& format_of(DType dtype) {
  for (const Format& format : kFormats)
    if (format.dtype == dtype) return format;
  return kFormats[0];
}

DType dtype_from(const nb::dlpack::dtype& found) {
  for (const Format& format : kFormats)
    if (static_cast<uint8_t>(format.code) == found.code && format.bits == found.bits && found.lanes == 1)
      return format.dtype;
  fail<ShapeError>(
      "tensor: elements of {} bits of DLPack's kind {} are not supported; float32, float64, int32, int64, uint8, bool "
      "and bfloat16 are",
      found.bits, found.code);
}

DType dtype_named(const std::string& name) {
  for (const Format& format : kFormats)
    if (name_of(format.dtype) == name) return format.dtype;
  fail<ShapeError>("tensor: dtype \"{}\" is not known", name);
}

template <class Array>
Shape shape_of(const Array& array) {
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < array.ndim(); ++d) sizes.push_back(static_cast<int64_t>(array.shape(d)));
  return Shape(std::span<const int64_t>(sizes));
}

using Writable = nb::ndarray<nb::c_contig, nb::device::cpu>;
using Readable = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

/// A tensor on the memory of the array; on a copy where its values are not aligned.
Tensor sharing(const Writable& array) {
  const DType dtype = dtype_from(array.dtype());
  const Shape shape = shape_of(array);
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  auto* const data = static_cast<std::byte*>(array.data());
  if (bytes == 0 || reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0)
    return Tensor::from_bytes(shape, dtype, {data, bytes});
  const std::shared_ptr<Writable> owner(new Writable(array), [](Writable* kept) {
    const nb::gil_scoped_acquire lock;
    delete kept;
  });
  return Tensor::in_buffer(shape, dtype, std::make_shared<Buffer>(data, bytes, owner), 0);
}

Tensor copied(const Readable& array) {
  const DType dtype = dtype_from(array.dtype());
  const Shape shape = shape_of(array);
  const size_t bytes = static_cast<size_t>(shape.numel()) * size_of(dtype);
  return Tensor::from_bytes(shape, dtype, {static_cast<const std::byte*>(array.data()), bytes});
}

Tensor tensor_of(const nb::object& array) {
  constexpr bool kConvert = true;  // rows that are not contiguous become so
  if (Writable writable; nb::try_cast(array, writable, !kConvert)) return sharing(writable);
  if (Readable readable; nb::try_cast(array, readable, kConvert)) return copied(readable);
  throw nb::type_error("Tensor: expected an array in the memory of the processor, with DLPack or a buffer");
}

Tensor leaf(Tensor tensor, bool requires_grad) {
  if (requires_grad) require_gradient(tensor);
  return tensor;
}

// What a view of the buffer protocol points to.
struct ViewShape {
  Py_ssize_t sizes[Shape::kMaxRank] = {};
  Py_ssize_t strides[Shape::kMaxRank] = {};
};

// Whether Fortran's order is the same as C's.
bool has_columns_together(const Tensor& tensor) {
  const auto long_dimensions = std::ranges::count_if(tensor.shape(), [](int64_t size) { return size > 1; });
  return tensor.numel() == 0 || long_dimensions <= 1;
}

int get_buffer(PyObject* object, Py_buffer* view, int flags) {
  view->obj = nullptr;
  if (!nb::inst_ready(object)) {
    PyErr_SetString(PyExc_BufferError, "a tensor whose __init__ was not called has no values");
    return -1;
  }
  const Tensor& tensor = *nb::inst_ptr<Tensor>(object);
  const Format& format = format_of(tensor.dtype());
  if (!tensor.defined() || format.buffer == nullptr) {
    PyErr_SetString(PyExc_BufferError, "a tensor of bfloat16 has no buffer: use DLPack, or to(\"float32\")");
    return -1;
  }
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !has_columns_together(tensor)) {
    PyErr_SetString(PyExc_BufferError, "a tensor has its rows together (C order), not its columns (Fortran order)");
    return -1;
  }
  auto shape = std::make_unique<ViewShape>();
  auto stride = static_cast<Py_ssize_t>(size_of(tensor.dtype()));
  view->itemsize = stride;
  for (int d = tensor.rank() - 1; d >= 0; --d) {
    shape->sizes[d] = static_cast<Py_ssize_t>(tensor.size(d));
    shape->strides[d] = stride;
    stride *= shape->sizes[d];
  }
  view->buf = tensor.raw();
  view->len = static_cast<Py_ssize_t>(tensor.bytes());
  view->readonly = 0;
  view->ndim = tensor.rank();
  view->format = (flags & PyBUF_FORMAT) != 0 ? const_cast<char*>(format.buffer) : nullptr;
  view->shape = (flags & PyBUF_ND) != 0 ? shape->sizes : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? shape->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = shape.release();
  view->obj = object;
  Py_INCREF(object);
  return 0;
}

void release_buffer(PyObject*, Py_buffer* view) {
  delete static_cast<ViewShape*>(view->internal);
}

PyType_Slot kSlots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                        {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                        {0, nullptr}};

nb::object dlpack(nb::handle self, const nb::kwargs& arguments) {
  const Tensor& tensor = nb::cast<const Tensor&>(self);
  const Format& format = format_of(tensor.dtype());
  std::vector<size_t> sizes;
  for (const int64_t size : tensor.shape()) sizes.push_back(static_cast<size_t>(size));
  const nb::dlpack::dtype dtype = {static_cast<uint8_t>(format.code), format.bits, 1};
  const nb::ndarray<nb::array_api> array(tensor.raw(), sizes.size(), sizes.data(), self, nullptr, dtype,
                                         nb::device::cpu::value, 0);
  return nb::cast(array).attr("__dlpack__")(**arguments);
}

nb::tuple shape_tuple(const Tensor& self) {
  nb::list sizes;
  for (const int64_t size : self.shape()) sizes.append(size);
  return nb::tuple(sizes);
}

std::optional<Tensor> if_defined(Tensor tensor) {
  if (!tensor.defined()) return {};
  return tensor;
}

void bind_values(nb::class_<Tensor>& tensor) {
  tensor
      .def(
          "__init__",
          [](Tensor* self, const nb::object& array, bool requires_grad) {
            new (self) Tensor(leaf(tensor_of(array), requires_grad));
          },
          nb::arg("array"), nb::arg("requires_grad") = false,
          nb::sig("def __init__(self, array: typing.Any, requires_grad: bool = False) -> None"))
      .def_static(
          "zeros",
          [](const std::vector<int64_t>& shape, const std::string& dtype) {
            return Tensor::zeros(Shape(std::span<const int64_t>(shape)), {.dtype = dtype_named(dtype), .device = {}});
          },
          nb::arg("shape"), nb::arg("dtype") = "float32")
      .def_prop_ro("shape", shape_tuple, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", &Tensor::rank)
      .def_prop_ro("size", &Tensor::numel, "The number of elements.")
      .def_prop_ro("nbytes", &Tensor::bytes)
      .def_prop_ro("dtype", [](const Tensor& self) { return std::string(name_of(self.dtype())); })
      .def("item", &Tensor::item, "The value of a tensor with one element.")
      .def("__float__", &Tensor::item)
      .def("__len__",
           [](const Tensor& self) {
             if (self.rank() == 0) throw nb::type_error("a tensor without dimensions has no length");
             return self.size(0);
           })
      .def("reshape", &Tensor::reshape, nb::arg("sizes"),
           "The same values and gradient in another shape; one size may be -1.")
      .def("rows", &Tensor::rows, nb::arg("begin"), nb::arg("end"),
           "Rows [begin, end) of the first dimension, sharing the values.")
      .def("clone", &Tensor::clone, "A copy of the values.")
      .def(
          "to", [](const Tensor& self, const std::string& dtype) { return self.to(dtype_named(dtype)); },
          nb::arg("dtype"), "The values in another dtype.")
      .def("copy_from", &Tensor::copy_from, nb::arg("source"), "Replaces the values by those of a tensor like this.")
      .def(
          "numpy",
          [](nb::handle self) {  // of a memoryview: from a tensor without a buffer NumPy makes an array of one object
            const nb::object view = nb::module_::import_("builtins").attr("memoryview")(self);
            return nb::module_::import_("numpy").attr("asarray")(view);
          },
          nb::sig("def numpy(self) -> typing.Any"),
          "A numpy.ndarray on the same memory. Throws BufferError for bfloat16.")
      .def(
          "tolist",
          [](nb::handle self) { return nb::module_::import_("builtins").attr("memoryview")(self).attr("tolist")(); },
          nb::sig("def tolist(self) -> typing.Any"))
      .def("__dlpack__", dlpack, nb::sig("def __dlpack__(self, **kwargs: typing.Any) -> typing.Any"))
      .def("__dlpack_device__", [](const Tensor&) { return std::pair(int{nb::device::cpu::value}, 0); })
      .def("__repr__", [](const Tensor& self) {
        return "attune.Tensor(shape=" + (self.defined() ? self.shape().text() : "undefined") +
               ", dtype=" + std::string(name_of(self.dtype())) + ")";
      });
}

}  // namespace

void bind_tensor(nb::module_& m) {
  nb::class_<Tensor> tensor(m, "Tensor", nb::type_slots(kSlots), R"(An array of numbers with a gradient.

Tensor(array) shares the memory of an array that can be written (a numpy.ndarray, a torch.Tensor on the CPU, anything
with DLPack or a buffer) and copies any other. numpy.asarray(tensor) and torch.from_dlpack(tensor) share its memory.

>>> import numpy as np
>>> values = np.zeros((2, 3), dtype=np.float32)
>>> tensor = Tensor(values)
>>> values[0, 1] = 5
>>> np.asarray(tensor)[0].tolist()
[0.0, 5.0, 0.0]
)");
  bind_values(tensor);
  tensor
      .def_prop_ro(
          "grad", [](const Tensor& self) { return if_defined(gradient(self)); },
          "d(loss)/d(self) after backward(), or None.")
      .def_prop_ro("requires_grad", [](const Tensor& self) { return requires_gradient(self); })
      .def(
          "set_grad",  // a copy, to which backward() adds in place: the memory may be an array's
          [](const Tensor& self, const Tensor& grad) { set_gradient(self, grad.clone()); }, nb::arg("grad"))
      .def("clear_grad", [](const Tensor& self) { clear_gradient(self); })
      .def("detach", &Tensor::detach, "The same values without a gradient.")
      .def(
          "backward",
          [](const Tensor& self, const std::optional<Tensor>& cotangent) {
            // A copy: it may become a leaf's gradient, to which others are added in place, and an array may have its
            // memory.
            unlocked([&] { backward(self, cotangent ? cotangent->clone() : Tensor{}); });
          },
          nb::arg("cotangent") = nb::none(),
          "Adds d(self)/d(leaf) to the gradient of every leaf. `cotangent` is d(loss)/d(self), of the shape of self; "
          "None: ones.");
}

}  // namespace attune::python

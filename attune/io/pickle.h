#pragma once
// The part of Python's pickle format that describes tensors. A pickle is a program for a stack machine that can call
// any function of Python; here nothing is called. A few opcodes are understood, and of all names the handful below;
// anything else is refused. Source: Lib/pickletools.py of CPython (opcodes), torch/serialization.py and torch/_utils.py
// of PyTorch (what they are used for).

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "attune/io/safetensors_header.h"

namespace attune {

/// The command that converts a file that is refused, for error messages.
inline constexpr const char* kConvertCommand =
    "python3 -c 'import torch, safetensors.torch as s; s.save_file({k: v.clone().contiguous() for k, v in "
    "torch.load(\"pytorch_model.bin\", weights_only=True).items()}, \"model.safetensors\")'";

/// A storage is a row of numbers that tensors are views of.
struct PickledStorage {
  StoredType type = StoredType::f32;
  std::string_view key;  // names its data
  int64_t elements = 0;
};

/// A view; it lies within its storage and has no more elements than that.
struct PickledTensor {
  size_t storage = 0;  // index in PickleProgram::storages
  Shape shape;
  std::vector<int64_t> strides;  // in elements, one for each dimension
  int64_t offset = 0;            // in elements
};

/// The names that are understood.
enum class PickleGlobal { ordered_dict, rebuild_tensor, rebuild_parameter, storage_type };

// Values refer to each other by their index in PickleProgram::values, so that neither cycles nor depth matter.
struct PickleNone {};
struct PickleSequence {  // a tuple or a list
  std::vector<uint32_t> items;
};
struct PickleDict {
  std::vector<uint32_t> items;  // key, value, key, value, ...
};
struct PickleName {
  PickleGlobal global;
  StoredType type = StoredType::f32;  // of storage_type
};
struct PickleStorageRef {
  size_t index;
};
struct PickleTensorRef {
  size_t index;
};
using PickleValue = std::variant<PickleNone, bool, int64_t, double, std::string_view, PickleSequence, PickleDict,
                                 PickleName, PickleStorageRef, PickleTensorRef>;

/// What a pickle describes. Texts are views of its bytes.
struct PickleProgram {
  std::vector<PickleValue> values;
  uint32_t result = 0;  // index in values
  std::vector<PickledStorage> storages;
  std::vector<PickledTensor> tensors;
  size_t bytes = 0;  // how many the pickle has

  template <class T>
  const T* result_as() const {
    return std::get_if<T>(&values[result]);
  }
};

/// Reads the pickle that `bytes` begins with. Throws FileError that begins with `where` and names the byte and what was
/// found there. Memory is at most some 64 times the bytes that are read, and never above 256 MiB.
PickleProgram read_pickle(std::span<const std::byte> bytes, const std::string& where);

}  // namespace attune

#pragma once
// The JSON header of a safetensors file, checked while it is parsed: no document is built, so that memory stays
// proportional to the tensors that are really described.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "attune/tensor/dtype.h"
#include "attune/tensor/shape.h"

namespace [[gnu::visibility("default")]] attune {

/// Element types as stored; those that are no DType are converted on load.
enum class StoredType { f64, f32, f16, bf16, i64, i32, u8, boolean };

size_t size_of(StoredType type);
DType loaded_type(StoredType type);  // f16 and bf16 become f32, boolean becomes u8
StoredType stored_type(DType type);
std::string_view stored_name(StoredType type);  // "F32"

struct StoredTensor {
  StoredType type = StoredType::f32;
  Shape shape;
  uint64_t begin = 0;  // bytes from the start of the data
  uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::map<std::string, StoredTensor> tensors;
};

/// Throws FileError that begins with `where` and names the tensor, what was expected and what was found. The tensors
/// must cover all of the `data_bytes`, without overlap and without gaps.
SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& where, uint64_t data_bytes);

}  // namespace attune

#include "attune/io/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

struct TypeRow {
  StoredType stored;
  DType loaded;
  size_t bytes;
  std::string_view name;
};

constexpr TypeRow kTypes[] = {
    {StoredType::f64, DType::f64, 8, "F64"}, {StoredType::f32, DType::f32, 4, "F32"},
    {StoredType::f16, DType::f32, 2, "F16"}, {StoredType::bf16, DType::f32, 2, "BF16"},
    {StoredType::i64, DType::i64, 8, "I64"}, {StoredType::i32, DType::i32, 4, "I32"},
    {StoredType::u8, DType::u8, 1, "U8"},    {StoredType::boolean, DType::u8, 1, "BOOL"},
};

const TypeRow& row(StoredType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& r) { return r.stored == type; });
}

// What nlohmann::json::sax_parse calls. The grammar has three levels and no recursion:
//   {"__metadata__": {text: text}, name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
class HeaderHandler {
 public:
  HeaderHandler(std::string where, uint64_t data_bytes) : where_(std::move(where)), data_bytes_(data_bytes) {}
  SafetensorsHeader take() { return std::move(header_); }

  bool null() { unexpected("null"); }
  bool boolean(bool) { unexpected("true or false"); }
  bool number_float(double, const std::string&) { unexpected("a fraction or a number beyond 2^64"); }
  bool number_integer(int64_t) { unexpected("a negative number"); }
  bool binary(std::vector<uint8_t>&) { unexpected("binary data"); }

  bool number_unsigned(uint64_t value) {
    if (place_ != Place::shape && place_ != Place::offsets) unexpected("a number");
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) unexpected("a number beyond 2^63");
    const size_t most = place_ == Place::shape ? Shape::kMaxRank : 2;
    if (numbers_.size() >= most) unexpected("more than " + std::to_string(most) + " numbers");
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::metadata) {
      header_.metadata.emplace(key_, std::move(value));
    } else if (place_ == Place::tensor && key_ == "dtype") {
      set_dtype(value);
    } else {
      unexpected("text " + in_quotes(value));
    }
    return true;
  }

  bool key(std::string& value) {
    if (place_ == Place::top) {
      name_ = std::move(value);
      const bool again = name_ == "__metadata__" ? std::exchange(has_metadata_, true) : header_.tensors.contains(name_);
      if (again) fail_header("has {} twice", in_quotes(name_));
      return true;
    }
    key_ = std::move(value);
    if (place_ == Place::metadata && header_.metadata.contains(key_))
      fail_header("metadata has {} twice", in_quotes(key_));
    if (place_ == Place::tensor) {
      const auto known = std::find(kKeys.begin(), kKeys.end(), key_);
      if (known == kKeys.end()) fail_tensor("has key {}, needs dtype, shape and data_offsets", in_quotes(key_));
      bool& seen = seen_[static_cast<size_t>(known - kKeys.begin())];
      if (std::exchange(seen, true)) fail_tensor("has {} twice", key_);
    }
    return true;
  }

  bool start_object(size_t) {
    if (place_ == Place::outside) {
      place_ = Place::top;
    } else if (place_ == Place::top) {
      place_ = name_ == "__metadata__" ? Place::metadata : Place::tensor;
      tensor_ = {};
      seen_ = {};
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool start_array(size_t) {
    if (place_ != Place::tensor || key_ == "dtype") unexpected("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    numbers_.clear();
    return true;
  }

  bool end_array() {
    if (place_ == Place::shape) {
      set_shape();
    } else {
      if (numbers_.size() != 2) fail_tensor("data_offsets has {} numbers, needs 2", numbers_.size());
      tensor_.begin = static_cast<uint64_t>(numbers_[0]);
      tensor_.end = static_cast<uint64_t>(numbers_[1]);
    }
    place_ = Place::tensor;
    return true;
  }

  template <class Exception>
  bool parse_error(size_t position, const std::string&, const Exception&) {
    fail_header("is not valid JSON at byte {}", position);
  }

 private:
  enum class Place { outside, top, metadata, tensor, shape, offsets };
  static constexpr std::array<std::string_view, 3> kKeys = {"dtype", "shape", "data_offsets"};

  template <class... Args>
  [[noreturn]] void fail_header(fmt::format_string<Args...> format, Args&&... args) {
    fail<FileError>("{}: header {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void fail_tensor(fmt::format_string<Args...> format, Args&&... args) {
    fail<FileError>("{}: tensor {}: {}", where_, in_quotes(name_), fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void unexpected(const std::string& found) {
    switch (place_) {
      case Place::outside:
        fail_header("needs an object, found {}", found);
      case Place::top:
        fail_header("needs an object for {}, found {}", in_quotes(name_), found);
      case Place::metadata:
        fail_header("metadata {} needs text, found {}", in_quotes(key_), found);
      case Place::tensor:
        fail_tensor("{} needs {}, found {}", key_, key_ == "dtype" ? "text" : "a list of numbers", found);
      case Place::shape:
        fail_tensor("shape needs at most {} sizes, found {}", static_cast<int>(Shape::kMaxRank), found);
      case Place::offsets:
        fail_tensor("data_offsets needs two numbers, found {}", found);
    }
    fail_header("is not understood");
  }

  void set_dtype(const std::string& value) {
    for (const TypeRow& type : kTypes) {
      if (type.name != value) continue;
      tensor_.type = type.stored;
      return;
    }
    fail_tensor("dtype {} is unknown, needs one of F64, F32, F16, BF16, I64, I32, U8, BOOL", in_quotes(value));
  }

  void set_shape() {
    try {
      tensor_.shape = Shape(std::span<const int64_t>(numbers_));
    } catch (const ShapeError& error) {
      fail_tensor("{}", error.what());
    }
  }

  void finish_tensor() {
    for (size_t i = 0; i < kKeys.size(); ++i)
      if (!seen_[i]) fail_tensor("has no {}", kKeys[i]);
    const auto& [type, shape, begin, end] = tensor_;
    if (begin > end || end > data_bytes_)
      fail_tensor("data_offsets [{}, {}] do not lie in the {} bytes of data", begin, end, data_bytes_);
    const uint64_t bytes = static_cast<uint64_t>(shape.numel()) * size_of(type);
    if (end - begin != bytes)
      fail_tensor("shape {} of {} takes {} bytes, data_offsets [{}, {}] have {}", shape.text(), stored_name(type),
                  bytes, begin, end, end - begin);
    header_.tensors.emplace(name_, tensor_);
  }

  std::string where_;
  uint64_t data_bytes_;
  SafetensorsHeader header_;
  Place place_ = Place::outside;
  bool has_metadata_ = false;
  std::string name_;                // the key on the first level
  std::string key_;                 // the key on the second level
  StoredTensor tensor_;             // being read
  std::array<bool, 3> seen_{};      // which of kKeys it has
  std::vector<int64_t> numbers_{};  // of the list being read
};

void check_coverage(const SafetensorsHeader& header, const std::string& where, uint64_t data_bytes) {
  struct Piece {
    uint64_t begin, end;
    const std::string* name;
    auto operator<=>(const Piece&) const = default;
  };
  std::vector<Piece> pieces;
  pieces.reserve(header.tensors.size());
  for (const auto& [name, tensor] : header.tensors) pieces.push_back({tensor.begin, tensor.end, &name});
  std::sort(pieces.begin(), pieces.end());
  uint64_t covered = 0;
  for (const Piece& piece : pieces) {
    if (piece.begin != covered)
      fail<FileError>("{}: tensor {}: data begins at byte {}, needs {}: tensors may neither overlap nor leave gaps",
                      where, in_quotes(*piece.name), piece.begin, covered);
    covered = piece.end;
  }
  if (covered != data_bytes)
    fail<FileError>("{}: has {} bytes of data, its tensors have {}", where, data_bytes, covered);
}

}  // namespace

size_t size_of(StoredType type) {
  return row(type).bytes;
}
DType loaded_type(StoredType type) {
  return row(type).loaded;
}
std::string_view stored_name(StoredType type) {
  return row(type).name;
}

StoredType stored_type(DType type) {
  if (type == DType::bf16) return StoredType::bf16;
  return std::find_if(std::begin(kTypes), std::end(kTypes),
                      [&](const TypeRow& r) { return r.loaded == type && r.bytes == size_of(type); })
      ->stored;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, const std::string& where, uint64_t data_bytes) {
  refuse_nul<FileError>(text, where);
  HeaderHandler handler(where, data_bytes);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  SafetensorsHeader header = handler.take();
  check_coverage(header, where, data_bytes);
  return header;
}

}  // namespace attune

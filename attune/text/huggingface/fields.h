#pragma once
// Reads fields of a part of tokenizer.json. Each error names the file, the field and its value.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"

namespace attune::huggingface {

class Fields {
 public:
  /// `value` must be an object and outlive this. `where` begins messages: "tokenizer.json: pre_tokenizer".
  Fields(const nlohmann::json& value, std::string where) : Fields(value, std::move(where), ".") {}

  /// The fields of a whole file: "tokenizer.json: model" in messages.
  static Fields of_file(const nlohmann::json& value, std::string file) { return {value, std::move(file), ": "}; }

  const std::string& where() const { return where_; }
  std::string where(std::string_view name) const { return where_ + separator_ + std::string(name); }

  /// A field that is missing or null counts as absent.
  const nlohmann::json* find(const char* name) const {
    const auto found = value_.find(name);
    return found == value_.end() || found->is_null() ? nullptr : &*found;
  }
  const nlohmann::json& at(const char* name) const {
    const nlohmann::json* found = find(name);
    if (found == nullptr) fail<FileError>("{}: is missing", where(name));
    return *found;
  }

  const std::string& string(const char* name) const {
    const nlohmann::json& found = at(name);
    if (!found.is_string()) refuse(name, "a string");
    return found.get_ref<const std::string&>();
  }
  std::string string(const char* name, std::string_view otherwise) const {
    return find(name) ? string(name) : std::string(otherwise);
  }
  bool boolean(const char* name, bool otherwise) const {
    const nlohmann::json* found = find(name);
    if (found != nullptr && !found->is_boolean()) refuse(name, "true or false");
    return found == nullptr ? otherwise : found->get<bool>();
  }
  /// A whole number from 0 to `most`.
  int64_t number(const char* name, int64_t most) const {
    const nlohmann::json& found = at(name);
    const bool fits = found.is_number_integer() &&
                      (!found.is_number_unsigned() || found.get<uint64_t>() <= INT64_MAX) &&
                      found.get<int64_t>() >= 0 && found.get<int64_t>() <= most;
    if (!fits) refuse(name, "a number from 0 to " + std::to_string(most));
    return found.get<int64_t>();
  }
  int64_t number(const char* name, int64_t most, int64_t otherwise) const {
    return find(name) ? number(name, most) : otherwise;
  }
  const nlohmann::json& array(const char* name) const {
    const nlohmann::json& found = at(name);
    if (!found.is_array()) refuse(name, "an array");
    return found;
  }

  [[noreturn]] void refuse(const char* name, std::string_view expected) const {
    fail<FileError>("{}: is {}, expected {}", where(name), shown(at(name)), expected);
  }

  static std::string shown(const nlohmann::json& value) {
    return cut_text(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 100);
  }

 private:
  Fields(const nlohmann::json& value, std::string where, const char* separator)
      : value_(value), where_(std::move(where)), separator_(separator) {
    if (!value.is_object()) fail<FileError>("{}: is {}, expected an object", where_, shown(value));
  }

  const nlohmann::json& value_;
  std::string where_;
  const char* separator_;
};

}  // namespace attune::huggingface

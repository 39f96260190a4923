#pragma once
// A "Sequence" of normalizers, pre-tokenizers or decoders, and fields that their steps have in common.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attune/text/huggingface/fields.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/text_file.h"

namespace attune::huggingface {

inline constexpr int kDeepestSequence = 8;      // of sequences in each other
inline constexpr size_t kMostSteps = 64;        // with those of the sequences in a sequence
inline constexpr size_t kLongestContent = 256;  // bytes that a step can put in place of a character

/// Steps one after the other: Base is Normalizer, PreTokenizer or Decoder.
template <class Base>
class Steps : public Base {
 public:
  explicit Steps(std::vector<std::unique_ptr<Base>> steps) : steps_(std::move(steps)) {}

 protected:
  std::vector<std::unique_ptr<Base>> steps_;
};

/// Throws DataError, which begins with `what` ("decoding"), when steps made a text more than 64 times as long and 4 KiB
/// longer: each of many steps could double it.
inline void check_growth(const char* what, size_t before, size_t after) {
  if (after > 64 * before + 4096)
    fail<DataError>("{} turns a text of {} bytes into one of {} bytes", what, before, after);
}

/// How many steps an array has, with those of the sequences in it.
inline size_t count_steps(const nlohmann::json& values, const char* name) {
  size_t count = values.size();
  for (const nlohmann::json& value : values)
    if (const auto inner = value.find(name); inner != value.end() && inner->is_array())
      count += count_steps(*inner, name);
  return count;
}

/// The steps of the array `name`, each read by read(value, where, depth). Throws FileError.
template <class Base>
std::vector<std::unique_ptr<Base>> read_steps(const Fields& fields, const char* name, int depth,
                                              std::unique_ptr<Base> (*read)(const nlohmann::json*, const std::string&,
                                                                            int)) {
  const nlohmann::json& values = fields.array(name);
  if (depth >= kDeepestSequence || count_steps(values, name) > kMostSteps)
    fail<FileError>("{}: has more than {} steps, or is {} levels deep", fields.where(), kMostSteps, kDeepestSequence);
  std::vector<std::unique_ptr<Base>> steps;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string where = fields.where(name) + "[" + std::to_string(i) + "]";
    steps.push_back(read(&values[i], where, depth + 1));
    if (steps.back() == nullptr) fail<FileError>("{}: is null, expected an object", where);
  }
  return steps;
}

/// A text of one character. Throws FileError.
inline std::string read_character(const Fields& fields, const char* name) {
  const std::string& text = fields.string(name);
  if (text.empty() || !valid_utf8(text) || character_bytes(text[0]) != text.size())
    fields.refuse(name, "one character");
  return text;
}

/// A text of at most kLongestContent bytes. Throws FileError.
inline std::string content_of(const Fields& fields, const char* name) {
  const std::string& content = fields.string(name);
  if (content.size() > kLongestContent)
    fail<FileError>("{}: has {} bytes, at most {} are accepted", fields.where(name), content.size(), kLongestContent);
  return content;
}

}  // namespace attune::huggingface

#pragma once
// A "Sequence" of normalizers, pre-tokenizers or decoders, and the texts that such steps have.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attune/text/huggingface/fields.h"

namespace attune::huggingface {

inline constexpr int kDeepestSequence = 8;  // of sequences in each other
inline constexpr size_t kMostSteps = 64;
inline constexpr size_t kLongestContent = 256;  // bytes that a step can put in place of a character

/// Steps one after the other: Base is Normalizer, PreTokenizer or Decoder, Value what its apply() changes.
template <class Base, class Value>
class Steps : public Base {
 public:
  explicit Steps(std::vector<std::unique_ptr<Base>> steps) : steps_(std::move(steps)) {}
  void apply(Value& value) const override {
    for (const auto& step : steps_) step->apply(value);
  }

 protected:
  std::vector<std::unique_ptr<Base>> steps_;
};

/// The steps of the array `name`, each read by read(value, where, depth). Throws FileError.
template <class Base>
std::vector<std::unique_ptr<Base>> read_steps(const Fields& fields, const char* name, int depth,
                                              std::unique_ptr<Base> (*read)(const nlohmann::json*, const std::string&,
                                                                            int)) {
  const nlohmann::json& values = fields.array(name);
  if (depth >= kDeepestSequence || values.size() > kMostSteps)
    fail<FileError>("{}: has more than {} steps, or is {} levels deep", fields.where(), kMostSteps, kDeepestSequence);
  std::vector<std::unique_ptr<Base>> steps;
  for (size_t i = 0; i < values.size(); ++i) {
    const std::string where = fields.where(name) + "[" + std::to_string(i) + "]";
    steps.push_back(read(&values[i], where, depth + 1));
    if (steps.back() == nullptr) fail<FileError>("{}: is null, expected an object", where);
  }
  return steps;
}

/// A text of at most kLongestContent bytes. Throws FileError.
inline std::string content_of(const Fields& fields, const char* name) {
  const std::string& content = fields.string(name);
  if (content.size() > kLongestContent)
    fail<FileError>("{}: has {} bytes, at most {} are accepted", fields.where(name), content.size(), kLongestContent);
  return content;
}

}  // namespace attune::huggingface

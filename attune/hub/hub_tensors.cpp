#include "attune/hub/hub_tensors.h"

#include <string_view>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"

namespace attune {
namespace {

// The name of a norm's parameter in files that were converted from TensorFlow; "" if it has none.
std::string older_name(const std::string& name) {
  const auto with = [&](std::string_view today, std::string_view older) {
    return name.substr(0, name.size() - today.size()).append(older);
  };
  if (name.ends_with(".weight")) return with("weight", "gamma");
  if (name.ends_with(".bias")) return with("bias", "beta");
  return "";
}

}  // namespace

HubTensors::HubTensors(const std::filesystem::path& folder, std::string prefix)
    : source_(folder), prefix_(std::move(prefix)) {}

void HubTensors::move(const std::string& from, const std::string& to) {
  moved_ = stored_name(from);
  moved_to_ = to;
}

std::string HubTensors::stored_name(const std::string& name) const {
  if (!moved_.empty() && name == moved_to_) return moved_;
  const std::string bare = !prefix_.empty() && name.starts_with(prefix_) ? name.substr(prefix_.size()) : "";
  for (const std::string& candidate : {name, bare, older_name(name), older_name(bare)})
    if (!candidate.empty() && candidate != moved_ && source_.contains(candidate)) return candidate;
  return "";
}

Tensor HubTensors::read(const std::string& stored, Bfloat16 bfloat16) const {
  const DType dtype = source_.dtype(stored);
  if (dtype != DType::f32 && dtype != DType::f64 && dtype != DType::bf16)
    fail<FileError>("{}: tensor {} is {}, needs floating-point numbers", file(stored), in_quotes(stored),
                    name_of(dtype));
  const Tensor values = source_.read(stored, bfloat16);
  if (dtype != DType::f64) return values;
  const Tensor narrow = values.to(DType::f32);
  source_.release_pages(values);
  return narrow;
}

}  // namespace attune

#include "attune/inference/decoding/shortlist.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "attune/base/fail.h"
#include "attune/io/safetensors.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

constexpr const char* kFormat = "attune-shortlist";

std::vector<int32_t> load_ids(const SafetensorsReader& file, const char* name) {
  if (!file.contains(name) || file.dtype(name) != DType::i32 || file.shape(name).rank() != 1)
    fail<FileError>("{}: needs a tensor \"{}\", int32 [n]", file.path().string(), name);
  const Tensor ids = file.load(name);
  return host_values<int32_t>(ids);
}

Tensor ids_tensor(const std::vector<int32_t>& ids) {
  return Tensor::from({static_cast<int64_t>(ids.size())}, ids);
}

}  // namespace

Shortlist::Shortlist(const std::vector<std::vector<int32_t>>& targets, std::vector<int32_t> frequent,
                     int64_t target_vocab)
    : frequent_(std::move(frequent)), target_vocab_(target_vocab) {
  for (const std::vector<int32_t>& of_token : targets) {
    targets_.insert(targets_.end(), of_token.begin(), of_token.end());
    offsets_.push_back(static_cast<int32_t>(targets_.size()));
  }
  if (const std::string wrong = fault(); !wrong.empty()) fail<DataError>("shortlist: {}", wrong);
}

std::string Shortlist::fault() const {
  if (offsets_.empty() || offsets_.front() != 0 || offsets_.back() != static_cast<int64_t>(targets_.size()) ||
      !std::is_sorted(offsets_.begin(), offsets_.end()))
    return fmt::format("the offsets do not rise from 0 to the {} targets", targets_.size());
  for (const auto* ids : {&targets_, &frequent_})
    for (const int32_t id : *ids)
      if (id < 0 || id >= target_vocab_)
        return fmt::format("target {} is outside the vocabulary of {}", id, target_vocab_);
  return "";
}

Shortlist Shortlist::load(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  const auto& metadata = file.metadata();
  const auto format = metadata.find("format"), vocab = metadata.find("target_vocab");
  if (format == metadata.end() || format->second != kFormat || vocab == metadata.end())
    fail<FileError>("{}: is no shortlist (attune shortlist makes them)", path.string());
  Shortlist shortlist;
  const std::string& digits = vocab->second;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), shortlist.target_vocab_);
  if (error != std::errc() || end != digits.data() + digits.size() || shortlist.target_vocab_ < 1)
    fail<FileError>("{}: target_vocab = \"{}\"", path.string(), digits.substr(0, 40));
  shortlist.offsets_ = load_ids(file, "offsets");
  shortlist.targets_ = load_ids(file, "targets");
  shortlist.frequent_ = load_ids(file, "frequent");
  if (const std::string wrong = shortlist.fault(); !wrong.empty()) fail<FileError>("{}: {}", path.string(), wrong);
  return shortlist;
}

void Shortlist::save(const std::filesystem::path& path) const {
  const std::vector<NamedTensor> tensors = {
      {"offsets", ids_tensor(offsets_)}, {"targets", ids_tensor(targets_)}, {"frequent", ids_tensor(frequent_)}};
  write_safetensors(path, tensors, {{"format", kFormat}, {"target_vocab", std::to_string(target_vocab_)}});
}

std::vector<int32_t> Shortlist::targets_of(std::span<const int32_t> source) const {
  std::vector<int32_t> ids = frequent_;
  for (const int32_t token : std::set<int32_t>(source.begin(), source.end())) {  // each list once: it may be long
    if (token < 0 || token >= source_vocab()) continue;
    const auto s = static_cast<size_t>(token);
    ids.insert(ids.end(), targets_.begin() + offsets_[s], targets_.begin() + offsets_[s + 1]);
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace attune

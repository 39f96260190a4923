#include "attune/io/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/nn/make_panels.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

constexpr const char* kState = "state";
constexpr const char* kDue = "due";  // "no", or it is not there
constexpr size_t kMaxStateBytes = size_t{16} << 20;
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kSuffix = ".safetensors";

std::optional<int64_t> number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> file_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error != std::errc::no_such_file_or_directory)
    fail<FileError>("cannot list {}: {}", folder.string(), error.message());
  return names;
}

std::string name_of_step(int64_t step) {
  return fmt::format("{}{:08}{}", kPrefix, step, kSuffix);
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  std::string state;
  try {
    state = checkpoint.state.dump();
  } catch (const Json::exception&) {
    fail<FileError>("{}: the trainer's state is not valid UTF-8", path.string());
  }
  std::map<std::string, std::string> metadata = {{kState, std::move(state)}};
  if (checkpoint.kind != CheckpointKind::due) metadata[kDue] = "no";
  write_safetensors(path, checkpoint.tensors, metadata, Checksum::sha256);
}

Json checkpoint_state(const SafetensorsReader& reader) {
  const auto found = reader.metadata().find(kState);
  if (found == reader.metadata().end())
    fail<FileError>("{}: is no checkpoint: its metadata has no \"{}\"", reader.path().string(), kState);
  if (found->second.size() > kMaxStateBytes)
    fail<FileError>("{}: the trainer's state has {} bytes, at most {} are accepted", reader.path().string(),
                    found->second.size(), kMaxStateBytes);
  return parse_json(found->second, reader.path().string() + ": " + kState);
}

bool is_checkpoint(const std::filesystem::path& path) {
  try {
    return SafetensorsReader(path).metadata().contains(kState);
  } catch (const Error&) {
    return false;
  }
}

CheckpointFolder::CheckpointFolder(std::filesystem::path folder, int64_t keep_last)
    : folder_(std::move(folder)), keep_last_(keep_last) {}

std::filesystem::path CheckpointFolder::file(int64_t step) const {
  return folder_ / name_of_step(step);
}

void CheckpointFolder::write(int64_t step, const Checkpoint& checkpoint) const {
  if (step < 0) fail<FileError>("{}: a checkpoint cannot be of step {}", folder_.string(), step);
  make_directories(folder_);
  if (is_there_or_link(file(step)) && !is_checkpoint(file(step))) set_aside(step);
  write_checkpoint(file(step), checkpoint);
  if (keep_last_ <= 0) return;
  std::vector<int64_t> earlier = steps();  // later ones belong to another run and are not ours to remove
  std::erase_if(earlier, [&](int64_t other) { return other > step || !is_checkpoint(file(other)); });
  const bool stops = checkpoint.kind == CheckpointKind::stop;
  const auto not_due = std::stable_partition(earlier.begin(), earlier.end(),
                                             [&](int64_t other) { return other == step ? !stops : is_due(other); });
  const auto before = [](auto begin, auto end, int64_t kept) { return end - std::min<int64_t>(kept, end - begin); };
  std::vector<int64_t> old(earlier.begin(), before(earlier.begin(), not_due, keep_last_));
  old.insert(old.end(), not_due, before(not_due, earlier.end(), stops ? 2 : 0));
  for (const int64_t other : old) {
    std::error_code error;
    if (!std::filesystem::remove(file(other), error) && error)
      fail<FileError>("cannot remove {}: {}", file(other).string(), error.message());
  }
}

bool CheckpointFolder::is_due(int64_t step) const {
  return !SafetensorsReader(file(step)).metadata().contains(kDue);
}

std::string CheckpointFolder::damage(int64_t step) const {
  const MappedFile opened(file(step));  // throws when it cannot be read
  try {
    const SafetensorsReader reader(file(step));
    reader.verify();
    checkpoint_state(reader);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::vector<int64_t> CheckpointFolder::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : file_names(folder_)) {
    std::string_view digits = name;
    if (!digits.starts_with(kPrefix) || !digits.ends_with(kSuffix)) continue;
    digits.remove_prefix(kPrefix.size());
    digits.remove_suffix(kSuffix.size());
    const std::optional<int64_t> step = number(digits);
    if (step && *step >= 0 && name == name_of_step(*step)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

FoundCheckpoint CheckpointFolder::newest() const {
  FoundCheckpoint found;
  const std::vector<int64_t> all = steps();
  for (size_t i = all.size(); i > 0 && !found.step; --i) {
    std::string damage = this->damage(all[i - 1]);
    if (damage.empty()) {
      found.step = all[i - 1];
    } else {
      found.damaged.emplace(all[i - 1], std::move(damage));
    }
  }
  return found;
}

std::filesystem::path CheckpointFolder::set_aside(int64_t step) const {
  const std::filesystem::path path = file(step);
  std::filesystem::path aside = path;
  aside += ".damaged";
  for (int n = 2; is_there_or_link(aside); ++n) aside = path.string() + fmt::format(".damaged.{}", n);
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error) fail<FileError>("cannot rename {}: {}", path.string(), error.message());
  return aside;
}

void mean_of_checkpoints(std::span<const std::filesystem::path> paths, Module& target) {
  if (paths.empty()) fail<FileError>("mean of checkpoints: needs at least one file");
  const std::vector<NamedParameter> parameters = named_parameters(target);
  std::vector<SafetensorsReader> readers;
  for (const auto& path : paths) {
    readers.push_back(open_parameters(path));
    readers.back().verify();
    for (const auto& [name, parameter] : parameters) {
      const std::string stored = "model." + name;
      if (readers.back().shape(stored) != parameter->shape() || readers.back().dtype(stored) != parameter->dtype())
        fail<FileError>("{}: tensor {} is {} {}, the model has {} {}", path.string(), in_quotes(stored),
                        name_of(readers.back().dtype(stored)), readers.back().shape(stored).text(),
                        name_of(parameter->dtype()), parameter->shape().text());
    }
  }
  drop_panels(target);  // of what was there
  const double share = 1.0 / static_cast<double>(paths.size());
  for (const auto& [name, parameter] : parameters) {
    dispatch_floating("mean of checkpoints", parameter->dtype(), [&, &name = name, &parameter = parameter]<class T>(T) {
      std::vector<double> sum(static_cast<size_t>(parameter->numel()));
      for (const SafetensorsReader& reader : readers) {
        const Tensor stored = reader.load("model." + name);
        const HostView view(stored);
        const auto values = view.template as<T>();
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(values[i]);
      }
      std::vector<T> mean;
      for (const double of_parameter : sum) mean.push_back(static_cast<T>(of_parameter * share));
      parameter->assign(std::span<const T>(mean));
    });
  }
}

}  // namespace attune

#include "attune/io/safetensors.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include "attune/base/fail.h"
#include "attune/base/git_lfs.h"
#include "attune/base/json_fields.h"
#include "attune/io/content_digest.h"
#include "attune/io/json_file.h"
#include "attune/io/stored_values.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 64;
constexpr const char* kDigest = "sha256";
const std::string kNoDigest(64, '0');  // in the place of the digest while it is computed

}  // namespace

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : MappedTensors(path) {
  const std::span<const std::byte> bytes = file_->bytes();
  if (bytes.size() < kLengthBytes)
    fail<FileError>("{}: is no safetensors file: has {} bytes, needs at least 8", path.string(), bytes.size());
  check_is_fetched({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  const uint64_t rest = bytes.size() - kLengthBytes;
  if (length > kMaxHeader)
    fail<FileError>("{}: header length {} is above the limit of {}", path.string(), length, kMaxHeader);
  if (length > rest)
    fail<FileError>("{}: header length {} is beyond the file, which has {} bytes left", path.string(), length, rest);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  data_ = bytes.subspan(kLengthBytes + length);
  SafetensorsHeader header = parse_safetensors_header(text, path.string(), data_.size());
  metadata_ = std::move(header.metadata);
  tensors_ = std::move(header.tensors);
}

int64_t SafetensorsReader::element_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : tensors_) count += tensor.shape.numel();
  return count;
}

void SafetensorsReader::rename(const std::string& from, const std::string& to) {
  find(from);
  if (contains(to)) fail<FileError>("{}: has a tensor {} already", path_.string(), in_quotes(to));
  auto entry = tensors_.extract(from);
  entry.key() = to;
  tensors_.insert(std::move(entry));
}

Tensor SafetensorsReader::load(const std::string& name) const {
  const Tensor tensor = Tensor::empty(shape(name), {.dtype = dtype(name)});
  load_into(name, tensor);
  const StoredTensor& stored = find(name);
  file_->release(data_.subspan(stored.begin, stored.end - stored.begin));
  return tensor;
}

Tensor SafetensorsReader::map(const std::string& name, DType dtype) const {
  const StoredTensor& stored = find(name);
  const size_t offset = static_cast<size_t>(data_.data() - file_->bytes().data()) + stored.begin;
  if (stored.type != stored_type(dtype) || offset % size_of(dtype) != 0) return {};
  return Tensor::in_buffer(stored.shape, dtype, buffer_, offset);
}

Tensor SafetensorsReader::map_or_copy(const std::string& name, DType dtype, size_t alignment) const {
  const StoredTensor& stored = find(name, dtype);
  const Tensor mapped = map(name, dtype);
  if (mapped.defined() && reinterpret_cast<uintptr_t>(mapped.address()) % alignment == 0) return mapped;
  return Tensor::from_bytes(stored.shape, dtype, data_.subspan(stored.begin, stored.end - stored.begin));
}

void SafetensorsReader::load_into(const std::string& name, const Tensor& target) const {
  const StoredTensor& stored = find(name);
  if (target.shape() != stored.shape)
    fail<FileError>("{}: tensor {} has shape {}, needs {}", path_.string(), in_quotes(name), stored.shape.text(),
                    target.shape().text());
  if (target.dtype() != loaded_type(stored.type))
    fail<FileError>("{}: tensor {} is {}, needs {}", path_.string(), in_quotes(name), name_of(loaded_type(stored.type)),
                    name_of(target.dtype()));
  const auto source = data_.subspan(stored.begin, stored.end - stored.begin);
  if (source.empty()) return;
  load_stored(stored.type, source, target);
}

void SafetensorsReader::verify() const {
  const auto stored = metadata_.find(kDigest);
  if (stored == metadata_.end()) return;
  const auto header = file_->bytes().subspan(kLengthBytes, file_->bytes().size() - kLengthBytes - data_.size());
  std::string text(reinterpret_cast<const char*>(header.data()), header.size());
  const size_t at = text.find(stored->second);
  if (stored->second.size() != kNoDigest.size() || at == std::string::npos)
    fail<FileError>("{}: metadata {}: needs {} hexadecimal digits", path_.string(), kDigest, kNoDigest.size());
  text.replace(at, kNoDigest.size(), kNoDigest);
  std::map<uint64_t, uint64_t> parts;  // of the data: begin and end
  for (const auto& [name, tensor] : tensors_)
    if (tensor.begin < tensor.end) parts.emplace(tensor.begin, tensor.end);
  ContentDigest digest;
  digest.add(std::as_bytes(std::span(text)));
  for (const auto& [begin, end] : parts) digest.add(data_.subspan(begin, end - begin));
  if (digest.hex() != stored->second)
    fail<FileError>("{}: the content is not what was written: its sha256 differs", path_.string());
}

namespace {

// As they are given, but a tensor that follows another one in memory comes right behind it.
std::vector<const NamedTensor*> memory_order(std::span<const NamedTensor> tensors) {
  std::multimap<const void*, size_t> at;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!tensors[i].later && tensors[i].tensor.bytes() > 0) at.emplace(tensors[i].tensor.address(), i);
  std::vector<bool> done(tensors.size(), false);
  const auto next = [&](const NamedTensor& named) {
    const Tensor& t = named.tensor;
    if (named.later) return tensors.size();
    const auto [first, last] = at.equal_range(static_cast<const std::byte*>(t.address()) + t.bytes());
    const auto found = std::find_if(first, last, [&](const auto& entry) {
      return !done[entry.second] && Tensor::joined(std::array{t, tensors[entry.second].tensor}).defined();
    });
    return found == last ? tensors.size() : found->second;
  };
  std::vector<const NamedTensor*> order;
  for (size_t begin = 0; begin < tensors.size(); ++begin)
    for (size_t i = begin; i < tensors.size() && !done[i]; i = next(tensors[i])) {
      done[i] = true;
      order.push_back(&tensors[i]);
    }
  return order;
}

std::string json_text(const std::string& text, const std::filesystem::path& path) {
  try {
    return Json(text).dump();
  } catch (const Json::exception&) {
    fail<FileError>("{}: cannot write {}: it is not valid UTF-8", path.string(), in_quotes(text));
  }
}

std::string header_text(const std::filesystem::path& path, std::span<const NamedTensor* const> tensors,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto separate = [&](const char* separator) { text += text.back() == '{' ? "" : separator; };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      separate(",");
      text += json_text(key, path) + ":" + json_text(value, path);
    }
    text += "}";
  }
  uint64_t offset = 0;
  for (const NamedTensor* named : tensors) {
    separate(",");
    text +=
        fmt::format(R"({}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", json_text(named->name, path),
                    stored_name(stored_type(named->dtype())), named->shape().text(), offset, offset + named->bytes());
    offset += named->bytes();
  }
  text += "}";
  const size_t used = (kLengthBytes + text.size()) % kAlignment;
  text.append(used == 0 ? 0 : kAlignment - used, ' ');
  if (text.size() > kMaxHeader)
    fail<FileError>("{}: header would have {} bytes, at most {} are possible", path.string(), text.size(), kMaxHeader);
  return text;
}

std::string digest_of(const std::string& header, std::span<const NamedTensor* const> tensors) {
  ContentDigest digest;
  digest.add(std::as_bytes(std::span(header)));
  for (const NamedTensor* named : tensors) digest.add(HostView(named->values()).bytes());
  return digest.hex();
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                       const std::map<std::string, std::string>& metadata, Checksum checksum,
                       const std::function<void()>& before_each) {
  std::set<std::string_view> names = {"__metadata__"};
  for (const NamedTensor& named : tensors) {
    if (!named.later && !named.tensor.defined())
      fail<FileError>("{}: tensor {} has no data", path.string(), in_quotes(named.name));
    if (!names.insert(named.name).second)
      fail<FileError>("{}: the name {} is taken, a tensor cannot have it", path.string(), in_quotes(named.name));
  }
  std::vector<const NamedTensor*> order = memory_order(tensors);
  // Tensors of a multiple of 64 bytes come first, so that each begins at such a multiple; then wide elements come
  // before narrow ones.
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    const auto last = [](const NamedTensor& t) {
      return t.bytes() % kAlignment == 0 ? 0 : kAlignment - size_of(t.dtype());
    };
    return last(*a) < last(*b);
  });
  std::map<std::string, std::string> described = metadata;
  if (checksum == Checksum::sha256) described[kDigest] = kNoDigest;
  std::string header = header_text(path, order, described);
  if (checksum == Checksum::sha256) header.replace(header.find(kNoDigest), kNoDigest.size(), digest_of(header, order));
  const uint64_t length = header.size();
  AtomicFile file(path);
  file.write(&length, sizeof(length));
  file.write(header);
  for (const NamedTensor* named : order) {
    if (before_each) before_each();
    const HostView values(named->values());
    file.write(values.bytes().data(), values.bytes().size());
  }
  file.commit();
}

}  // namespace attune

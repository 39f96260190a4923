#include "attune/io/pytorch_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "attune/base/fail.h"
#include "attune/base/git_lfs.h"
#include "attune/io/byte_reader.h"
#include "attune/io/json_file.h"
#include "attune/io/pickle.h"
#include "attune/io/stored_values.h"
#include "attune/io/zip_directory.h"

namespace attune {
namespace {

using Bytes = std::span<const std::byte>;
using Tensors = std::map<std::string, LocatedTensor>;

constexpr uint64_t kMaxPickle = uint64_t{16} << 20;
constexpr std::string_view kPickleEntry = "/data.pkl";
constexpr std::array<uint8_t, 4> kZipMagic = {'P', 'K', 3, 4};
// What a file of PyTorch before 1.6 begins with: pickles of the number 0x1950a86a20f9469cfc6c and of version 1001.
constexpr std::array<uint8_t, 21> kLegacyMagic = {0x80, 2,   0x8a, 10,  'l',  0xfc, 0x9c, 'F',  0xf9, ' ', 'j',
                                                  0xa8, 'P', 0x19, '.', 0x80, 2,    'M',  0xe9, 3,    '.'};

template <size_t size>
bool begins_with(Bytes bytes, const std::array<uint8_t, size>& magic) {
  return bytes.size() >= size && std::memcmp(bytes.data(), magic.data(), size) == 0;
}

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// `begins` says for each storage where its data begins in the file.
Tensors state_dict(const PickleProgram& program, const std::vector<uint64_t>& begins, const std::string& where) {
  const auto* dict = program.result_as<PickleDict>();
  if (dict == nullptr)
    fail<FileError>("{}: does not hold a dict of tensors; to convert the file: {}", where, kConvertCommand);
  Tensors tensors;
  for (size_t i = 0; i < dict->items.size(); i += 2) {
    const auto* name = std::get_if<std::string_view>(&program.values[dict->items[i]]);
    if (name == nullptr) fail<FileError>("{}: a tensor's name is no text", where);
    const auto* reference = std::get_if<PickleTensorRef>(&program.values[dict->items[i + 1]]);
    if (reference == nullptr) fail<FileError>("{}: {} is no tensor", where, in_quotes(*name));
    const PickledTensor& tensor = program.tensors[reference->index];
    const StoredType type = program.storages[tensor.storage].type;
    const uint64_t begin = begins[tensor.storage] + static_cast<uint64_t>(tensor.offset) * size_of(type);
    if (!tensors.emplace(*name, LocatedTensor{type, tensor.shape, tensor.strides, begin}).second)
      fail<FileError>("{}: has tensor {} twice", where, in_quotes(*name));
  }
  return tensors;
}

// elements * size_of(type), where the file cannot have more than `most` bytes.
uint64_t storage_bytes(const PickledStorage& storage, uint64_t most, const std::string& where) {
  const auto elements = static_cast<uint64_t>(storage.elements);
  if (elements > most / size_of(storage.type))
    fail<FileError>("{}: storage {} has {} elements of {}, the file has room for {} bytes", where,
                    in_quotes(storage.key), elements, stored_name(storage.type), most);
  return elements * size_of(storage.type);
}

Tensors read_archive(Bytes file, const std::string& where) {
  const std::map<std::string, ZipEntry> entries = read_zip_directory(file, where);
  const auto contents = [&](const ZipEntry& entry) { return file.subspan(entry.begin, entry.size); };
  const auto pickle = std::ranges::find_if(entries, [](const auto& e) { return e.first.ends_with(kPickleEntry); });
  if (pickle == entries.end()) fail<FileError>("{}: zip archive has no data.pkl", where);
  if (pickle->second.size > kMaxPickle)
    fail<FileError>("{}: data.pkl has {} bytes, at most {} are accepted", where, pickle->second.size, kMaxPickle);
  const std::string root = pickle->first.substr(0, pickle->first.size() - kPickleEntry.size());
  if (const auto entry = entries.find(root + "/byteorder"); entry != entries.end()) {
    const Bytes stored = contents(entry->second);
    const std::string order = text_of(stored.first(std::min<size_t>(stored.size(), 20)));
    if (order != "little")
      fail<FileError>("{}: byte order is {}, needs \"little\"; to convert the file: {}", where, in_quotes(order),
                      kConvertCommand);
  }

  const PickleProgram program = read_pickle(contents(pickle->second), where);
  std::vector<uint64_t> begins;
  for (const PickledStorage& storage : program.storages) {
    const auto found = entries.find(std::string(root).append("/data/").append(storage.key));
    if (found == entries.end())
      fail<FileError>("{}: zip archive has no data for storage {}", where, in_quotes(storage.key));
    if (const uint64_t needed = storage_bytes(storage, file.size(), where); needed != found->second.size)
      fail<FileError>("{}: storage {} has {} bytes, needs {}", where, in_quotes(storage.key), found->second.size,
                      needed);
    begins.push_back(found->second.begin);
  }
  return state_dict(program, begins, where);
}

// The third pickle: {"protocol_version": 1001, "little_endian": True, "type_sizes": {...}}.
void check_byte_order(const PickleProgram& program, const std::string& where) {
  const auto* dict = program.result_as<PickleDict>();
  for (size_t i = 0; dict != nullptr && i < dict->items.size(); i += 2) {
    const auto* key = std::get_if<std::string_view>(&program.values[dict->items[i]]);
    if (key == nullptr || *key != "little_endian") continue;
    const bool* little = std::get_if<bool>(&program.values[dict->items[i + 1]]);
    if (little != nullptr && *little) return;
  }
  fail<FileError>("{}: does not say that its numbers are little-endian; to convert the file: {}", where,
                  kConvertCommand);
}

Tensors read_legacy(Bytes file, const std::string& where) {
  uint64_t position = kLegacyMagic.size();
  const auto next_pickle = [&] {
    PickleProgram program = read_pickle(file.subspan(position, std::min(file.size() - position, kMaxPickle)), where);
    position += program.bytes;
    return program;
  };
  check_byte_order(next_pickle(), where);
  const PickleProgram program = next_pickle();
  const PickleProgram order = next_pickle();  // of the storages: a list of keys

  std::map<std::string_view, size_t> storage_of;
  for (size_t i = 0; i < program.storages.size(); ++i) storage_of.emplace(program.storages[i].key, i);
  const auto* keys = order.result_as<PickleSequence>();
  if (keys == nullptr || keys->items.size() != program.storages.size())
    fail<FileError>("{}: has no list of its {} storages", where, program.storages.size());
  std::vector<uint64_t> begins(program.storages.size(), 0);
  ByteReader reader(file, where, position);
  for (const uint32_t item : keys->items) {
    const auto* key = std::get_if<std::string_view>(&order.values[item]);
    const auto found = key == nullptr ? storage_of.end() : storage_of.find(*key);
    if (found == storage_of.end() || begins[found->second] != 0)
      fail<FileError>("{}: the list of storages names one that there is not, or one twice", where);
    const PickledStorage& storage = program.storages[found->second];
    if (const auto elements = reader.number<int64_t>(); elements != storage.elements)
      fail<FileError>("{}: storage {} has {} elements, needs {}", where, in_quotes(storage.key), elements,
                      storage.elements);
    begins[found->second] = reader.position();
    reader.skip(storage_bytes(storage, reader.remaining(), where));
  }
  return state_dict(program, begins, where);
}

bool is_contiguous(const LocatedTensor& tensor) {
  int64_t expected = 1;
  for (int d = tensor.shape.rank(); d-- > 0;) {
    if (tensor.shape[d] != 1 && tensor.strides[static_cast<size_t>(d)] != expected) return false;
    expected *= tensor.shape[d];
  }
  return true;
}

// The elements of a tensor one after the other.
std::vector<std::byte> gathered(Bytes file, const LocatedTensor& tensor) {
  const size_t width = size_of(tensor.type), count = static_cast<size_t>(tensor.shape.numel());
  std::vector<std::byte> values(count * width);
  std::array<int64_t, Shape::kMaxRank> index{};
  int64_t element = 0;  // from the first one
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(values.data() + i * width, file.data() + tensor.begin + static_cast<size_t>(element) * width, width);
    for (int d = tensor.shape.rank(); d-- > 0;) {
      const auto at = static_cast<size_t>(d);
      if (index[at] + 1 < tensor.shape[d]) {
        ++index[at];
        element += tensor.strides[at];
        break;
      }
      element -= index[at] * tensor.strides[at];
      index[at] = 0;
    }
  }
  return values;
}

// Calls use(bytes) with the elements of a tensor one after the other.
template <class Use>
void with_values(Bytes file, const LocatedTensor& tensor, Use use) {
  if (is_contiguous(tensor))
    use(file.subspan(tensor.begin, static_cast<size_t>(tensor.shape.numel()) * size_of(tensor.type)));
  else
    use(Bytes(gathered(file, tensor)));
}

}  // namespace

PytorchReader::PytorchReader(const std::filesystem::path& path) : MappedTensors(path) {
  const Bytes bytes = file_->bytes();
  if (begins_with(bytes, kZipMagic)) {
    tensors_ = read_archive(bytes, path.string());
  } else if (begins_with(bytes, kLegacyMagic)) {
    tensors_ = read_legacy(bytes, path.string());
  } else {
    check_is_fetched({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
    fail<FileError>("{}: is no file of torch.save", path.string());
  }
}

// Tensors may be views of one storage. Together they count for at most 4 numbers for each byte of the file, so that a
// model which has no more numbers than this takes a small multiple of the file.
int64_t PytorchReader::element_count() const {
  const int64_t most = 4 * static_cast<int64_t>(file_->bytes().size());
  int64_t count = 0;
  for (const auto& [name, tensor] : tensors_) count = std::min(count + tensor.shape.numel(), most);
  return count;
}

Tensor PytorchReader::load(const std::string& name) const {
  const LocatedTensor& tensor = find(name);
  const Tensor loaded = Tensor::empty(tensor.shape, {.dtype = loaded_type(tensor.type)});
  if (loaded.numel() > 0)
    with_values(file_->bytes(), tensor, [&](Bytes values) {
      load_stored(tensor.type, values, loaded);
      file_->release(values);
    });
  return loaded;
}

Tensor PytorchReader::map(const std::string& name, DType dtype) const {
  const LocatedTensor& tensor = find(name);
  if (tensor.type != stored_type(dtype) || tensor.begin % size_of(dtype) != 0 || !is_contiguous(tensor)) return {};
  return Tensor::in_buffer(tensor.shape, dtype, buffer_, tensor.begin);
}

Tensor PytorchReader::map_or_copy(const std::string& name, DType dtype) const {
  const LocatedTensor& tensor = find(name, dtype);
  Tensor result = map(name, dtype);
  if (!result.defined())
    with_values(file_->bytes(), tensor,
                [&](Bytes values) { result = Tensor::from_bytes(tensor.shape, dtype, values); });
  return result;
}

}  // namespace attune

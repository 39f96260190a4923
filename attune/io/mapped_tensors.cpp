#include "attune/io/mapped_tensors.h"

#include "attune/base/fail.h"
#include "attune/base/json.h"
#include "attune/io/pytorch_file.h"

namespace attune {

template <class Entry>
MappedTensors<Entry>::MappedTensors(const std::filesystem::path& path)
    : path_(path),
      file_(std::make_shared<const MappedFile>(path, FileAccess::copy_on_write)),
      buffer_(std::make_shared<Buffer>(file_->writable(), file_->bytes().size(), file_)) {}

template <class Entry>
std::vector<std::string> MappedTensors<Entry>::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, entry] : tensors_) names.push_back(name);
  return names;
}

template <class Entry>
void MappedTensors<Entry>::release_pages(const Tensor& tensor) const {
  if (tensor.defined()) file_->release(tensor.host_bytes());
}

template <class Entry>
const Entry& MappedTensors<Entry>::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) fail<FileError>("{}: has no tensor {}", path_.string(), in_quotes(name));
  return found->second;
}

template <class Entry>
const Entry& MappedTensors<Entry>::find(const std::string& name, DType dtype) const {
  const Entry& entry = find(name);
  if (entry.type != stored_type(dtype))
    fail<FileError>("{}: tensor {} is {}, needs {}", path_.string(), in_quotes(name), stored_name(entry.type),
                    stored_name(stored_type(dtype)));
  return entry;
}

template class MappedTensors<StoredTensor>;
template class MappedTensors<LocatedTensor>;

}  // namespace attune

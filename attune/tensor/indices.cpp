#include "attune/tensor/indices.h"

#include <mutex>

#include "attune/base/fail.h"

namespace attune {

struct Indices::Shared {
  std::vector<int32_t> values;
  std::mutex mutex;  // protects `copy`: threads share indices
  Tensor copy = {};  // on the device that asked last; never on the host
};

Indices::Indices(std::vector<int32_t> values)
    : shared_(std::make_shared<Shared>()), end_(static_cast<int64_t>(values.size())) {
  shared_->values = std::move(values);
}

std::span<const int32_t> Indices::values() const {
  if (!shared_) return {};
  return std::span<const int32_t>(shared_->values).subspan(static_cast<size_t>(begin_), static_cast<size_t>(size()));
}

Indices Indices::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || end < begin || end > size())
    fail<ShapeError>("indices: [{}, {}) does not lie in {} of them", begin, end, size());
  Indices part = *this;
  part.begin_ = begin_ + begin;
  part.end_ = begin_ + end;
  return part;
}

Tensor Indices::on(const Device& device) const {
  if (!shared_ || empty()) return Tensor::empty({0}, {DType::i32, device});
  const auto all = static_cast<int64_t>(shared_->values.size());
  if (device.is_host()) {
    auto buffer = std::make_shared<Buffer>(shared_->values.data(), shared_->values.size() * sizeof(int32_t), shared_);
    return Tensor::in_buffer({all}, DType::i32, std::move(buffer), 0).rows(begin_, end_);
  }
  const std::lock_guard lock(shared_->mutex);
  if (!shared_->copy.defined() || shared_->copy.device() != device)
    shared_->copy = Tensor::from({all}, shared_->values, device);
  return shared_->copy.rows(begin_, end_);
}

void Indices::send(const Device& device) const {
  if (!shared_ || shared_->values.empty() || device.is_host()) return;
  const std::lock_guard lock(shared_->mutex);
  if (shared_->copy.defined() && shared_->copy.device() == device) return;
  const std::span<const int32_t> values = shared_->values;
  shared_->copy = Tensor::send_bytes({std::ssize(values)}, DType::i32, std::as_bytes(values), device);
}

}  // namespace attune

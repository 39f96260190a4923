#include "attune/nn/attention/mask.h"

#include <algorithm>
#include <numeric>

#include "attune/base/fail.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

// The explicit mask of what both masks allow; a dimension of size 1 is broadcast.
Tensor both_allowed(const Tensor& a, const Tensor& b) {
  int64_t sizes[3];
  for (int dim = 0; dim < 3; ++dim) {
    sizes[dim] = std::max(a.size(dim), b.size(dim));
    for (const Tensor& t : {a, b}) {
      if (t.size(dim) != 1 && t.size(dim) != sizes[dim])
        fail<ShapeError>("mask: {} and {} do not fit together", a.shape().text(), b.shape().text());
    }
  }
  const HostView a_view(a), b_view(b);
  const auto at = [](const Tensor& t, const HostView& view, int64_t i, int64_t j, int64_t k) {
    const int64_t row = std::min(i, t.size(0) - 1) * t.size(1) + std::min(j, t.size(1) - 1);
    return view.as<uint8_t>()[static_cast<size_t>(row * t.size(2) + std::min(k, t.size(2) - 1))];
  };
  std::vector<uint8_t> both;
  for (int64_t i = 0; i < sizes[0]; ++i)
    for (int64_t j = 0; j < sizes[1]; ++j)
      for (int64_t k = 0; k < sizes[2]; ++k) both.push_back(at(a, a_view, i, j, k) != 0 && at(b, b_view, i, j, k) != 0);
  return Tensor::from({sizes[0], sizes[1], sizes[2]}, both, a.device());
}

}  // namespace

Mask Mask::of_lengths(std::vector<int32_t> lengths) {
  Mask mask;
  mask.lengths_ = std::move(lengths);
  return mask;
}

Mask Mask::of_causal() {
  Mask mask;
  mask.causal_ = true;
  return mask;
}

Mask Mask::of_allowed(const Tensor& allowed) {
  if (allowed.dtype() != DType::u8 || allowed.rank() != 3)
    fail<ShapeError>("mask: is {} {}, needs uint8 [batch or 1, queries or 1, keys]", name_of(allowed.dtype()),
                     allowed.shape().text());
  Mask mask;
  mask.allowed_ = allowed;
  return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
  Mask mask = a;
  mask.causal_ = a.causal_ || b.causal_;
  if (!a.lengths_) mask.lengths_ = b.lengths_;
  if (a.lengths_ && b.lengths_) {
    if (a.lengths_->size() != b.lengths_->size())
      fail<ShapeError>("mask: lengths of {} and of {} sequences", a.lengths_->size(), b.lengths_->size());
    std::transform(a.lengths_->begin(), a.lengths_->end(), b.lengths_->begin(), mask.lengths_->begin(),
                   [](int32_t x, int32_t y) { return std::min(x, y); });
  }
  if (!a.allowed_.defined()) mask.allowed_ = b.allowed_;
  if (a.allowed_.defined() && b.allowed_.defined()) mask.allowed_ = both_allowed(a.allowed_, b.allowed_);
  return mask;
}

Mask padding_mask(const Tensor& ids, int32_t pad) {
  if (ids.rank() != 2) fail<ShapeError>("padding_mask: needs ids [batch, length], found {}", ids.shape().text());
  const int64_t batch = ids.size(0), length = ids.size(1);
  const HostView view(ids);
  const auto values = view.as<int32_t>();
  std::vector<int32_t> lengths;
  bool at_end = true;
  std::vector<uint8_t> allowed;
  for (int64_t i = 0; i < batch; ++i) {
    const auto row = values.subspan(static_cast<size_t>(i * length), static_cast<size_t>(length));
    const auto end = std::find(row.begin(), row.end(), pad);
    lengths.push_back(static_cast<int32_t>(end - row.begin()));
    at_end = at_end && std::all_of(end, row.end(), [&](int32_t id) { return id == pad; });
    for (const int32_t id : row) allowed.push_back(id != pad);
  }
  return at_end ? Mask::of_lengths(std::move(lengths))
                : Mask::of_allowed(Tensor::from({batch, 1, length}, allowed, ids.device()));
}

Mask causal_mask() {
  return Mask::of_causal();
}

Packing packing_of(int64_t batch, int64_t length, const Mask& mask) {
  std::vector<int32_t> lengths(static_cast<size_t>(batch), static_cast<int32_t>(length));
  if (mask.lengths()) lengths = *mask.lengths();
  if (static_cast<int64_t>(lengths.size()) != batch)
    fail<ShapeError>("mask: has {} lengths for a batch of {}", lengths.size(), batch);
  std::vector<int32_t> pack, unpack(static_cast<size_t>(batch * length), -1);
  for (int64_t i = 0; i < batch; ++i) {
    const int32_t n = lengths[static_cast<size_t>(i)];
    if (n < 0 || n > length) fail<ShapeError>("mask: length {} of sequence {} exceeds {}", n, i, length);
    for (int64_t j = 0; j < n; ++j) {
      unpack[static_cast<size_t>(i * length + j)] = static_cast<int32_t>(pack.size());
      pack.push_back(static_cast<int32_t>(i * length + j));
    }
  }
  Packing packing{.sequences = Sequences::from_lengths(lengths), .pack = {}, .unpack = {}};
  packing.pack = std::move(pack);
  packing.unpack = std::move(unpack);
  return packing;
}

AttentionMask attention_mask(const Mask& mask, const Sequences& queries, const Sequences& keys) {
  AttentionMask packed{.queries = queries, .keys = keys, .causal = mask.causal(), .allowed = {}};
  if (!mask.allowed().defined()) return packed;
  packed.allowed = mask.allowed();
  if (packed.allowed.size(1) == 1 && queries.max_length() > 1) {  // one row for all queries
    const Tensor rows =
        Tensor::full({1, queries.max_length(), packed.allowed.size(2)}, 1, {DType::u8, packed.allowed.device()});
    packed.allowed = both_allowed(packed.allowed, rows);
  }
  return packed;
}

}  // namespace attune

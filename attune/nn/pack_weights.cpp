#include "attune/nn/pack_weights.h"

#include <algorithm>
#include <map>
#include <vector>

namespace attune {
namespace {

class WeightCollector final : public Visitor {
 public:
  struct Found {
    Tensor weight;
    std::vector<PackedSlot*> slots;
  };
  const std::vector<Found>& found() const { return found_; }

 protected:
  void on_weight(const std::string&, Tensor& weight, PackedSlot& packed, WeightUse use) override {
    if (use != WeightUse::product || !weight.defined() || weight.dtype() != DType::f32) return;
    const auto [place, is_new] = places_.try_emplace(weight.raw(), found_.size());
    if (is_new) found_.push_back({weight.detach(), {}});
    found_[place->second].slots.push_back(&packed);
  }

 private:
  std::map<const void*, size_t> places_;
  std::vector<Found> found_;
};

}  // namespace

void pack_weights(Module& module, WeightFormat format, const std::function<void(const Tensor&)>& packed) {
  WeightCollector collector;
  module.visit(collector);
  // One piece of memory, so that it lies in large pages.
  int64_t bytes = 0;
  for (const auto& [weight, slots] : collector.found())
    bytes += PackedWeight::storage_bytes(format, weight.size(0), weight.size(1));
  const Tensor storage = Tensor::empty({bytes}, {.dtype = DType::u8});
  int64_t begin = 0;
  for (const auto& [weight, slots] : collector.found()) {
    const int64_t end = begin + PackedWeight::storage_bytes(format, weight.size(0), weight.size(1));
    const auto panels =
        std::make_shared<const PackedWeight>(PackedWeight::pack(weight, format, storage.rows(begin, end)));
    for (PackedSlot* slot : slots) *slot = panels;
    if (packed) packed(weight);
    begin = end;
  }
}

void ensure_packed(Module& module) {
  WeightCollector collector;
  module.visit(collector);
  const auto is_packed = [](const PackedSlot* slot) { return *slot != nullptr; };
  for (const auto& [weight, slots] : collector.found())
    if (!std::ranges::all_of(slots, is_packed)) return pack_weights(module, WeightFormat::float32);
}

void drop_packed_weights(Module& module) {
  WeightCollector collector;
  module.visit(collector);
  for (const auto& [weight, slots] : collector.found())
    for (PackedSlot* slot : slots) slot->reset();
}

}  // namespace attune

#include "attune/nn/make_panels.h"

#include <algorithm>
#include <map>
#include <vector>

namespace attune {
namespace {

class WeightCollector final : public Visitor {
 public:
  struct Found {
    Tensor weight;
    std::vector<PanelSlot*> slots;
  };
  const std::vector<Found>& found() const { return found_; }

 protected:
  void on_weight(const std::string&, Tensor& weight, PanelSlot& packed, WeightUse use) override {
    if (use != WeightUse::product || !weight.defined() || weight.dtype() != DType::f32) return;
    const auto [place, is_new] = positions_.try_emplace(weight.address(), found_.size());
    if (is_new) found_.push_back({weight.detach(), {}});
    found_[place->second].slots.push_back(&packed);
  }

 private:
  std::map<const void*, size_t> positions_;
  std::vector<Found> found_;
};

}  // namespace

void make_panels(Module& module, WeightFormat format, const std::function<void(const Tensor&)>& packed) {
  WeightCollector collector;
  module.visit(collector);
  if (collector.found().empty()) return;
  // One piece of memory, so that it lies in large pages.
  int64_t bytes = 0;
  for (const auto& [weight, slots] : collector.found())
    bytes += PanelWeight::storage_bytes(format, weight.size(0), weight.size(1));
  const Tensor storage = Tensor::empty({bytes}, {DType::u8, collector.found()[0].weight.device()});
  int64_t begin = 0;
  for (const auto& [weight, slots] : collector.found()) {
    const int64_t end = begin + PanelWeight::storage_bytes(format, weight.size(0), weight.size(1));
    const auto panels =
        std::make_shared<const PanelWeight>(PanelWeight::pack(weight, format, storage.rows(begin, end)));
    for (PanelSlot* slot : slots) *slot = panels;
    if (packed) packed(weight);
    begin = end;
  }
}

void ensure_panels(Module& module) {
  WeightCollector collector;
  module.visit(collector);
  const auto is_packed = [](const PanelSlot* slot) { return *slot != nullptr; };
  for (const auto& [weight, slots] : collector.found())
    if (!std::ranges::all_of(slots, is_packed)) return make_panels(module, WeightFormat::float32);
}

void drop_panel_weights(Module& module) {
  WeightCollector collector;
  module.visit(collector);
  for (const auto& [weight, slots] : collector.found())
    for (PanelSlot* slot : slots) slot->reset();
}

}  // namespace attune

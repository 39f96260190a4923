#include "attune/inference/place_model.h"

#include "attune/base/fail.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

// What there is of a model: the first parameter's device, and the format of quantised panels that stand alone.
class Inspection final : public Visitor {
 public:
  explicit Inspection(Module& model) { model.visit(*this); }
  std::optional<Device> device;
  std::optional<WeightFormat> quantised;

 protected:
  void on_parameter(const std::string&, Parameter& p) override {
    if (!p.defined()) return;
    const PanelWeight* const matrix = p.panels ? p.panels.get() : p.quantised.get();
    if (!device) device = p.tensor.defined() ? p.tensor.device() : matrix->storage().device();
    if (!p.tensor.defined() && is_quantised(matrix->format())) quantised = matrix->format();
  }
};

}  // namespace

Device place_model(Module& model, const std::optional<Device>& device, ProductPrecision precision,
                   std::span<const std::string> adapters) {
  const Inspection found(model);
  const Device before = found.device.value_or(Device{}), after = device.value_or(before);
  if (found.quantised && precision == ProductPrecision::bfloat16)
    fail<ConfigError>("precision = bfloat16: the model's weights are {} panels; products in bfloat16 need matrices",
                      enum_name(*found.quantised));
  if (before != after && !adapters.empty())
    fail<ConfigError>("device {}: the model with its adapters to choose from is on {}; load the folder with the device",
                      after.text(), before.text());
  if (!after.is_host() && precision == ProductPrecision::bfloat16) round_matrices(model);  // half as much to move
  if (before != after) move_parameters(model, after);
  ensure_panels(model, panel_format(precision));
  return after;
}

}  // namespace attune

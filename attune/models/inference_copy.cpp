#include "attune/models/inference_copy.h"

#include "attune/models/build.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

template <class Model, class Build>
std::unique_ptr<Model> copy(Model& model, std::optional<WeightFormat> format, const std::optional<Device>& device,
                            Build&& build) {
  std::unique_ptr<Model> made = build_without_values(model.config(), build);
  copy_for_inference(model, *made, format, device);
  return made;
}

}  // namespace

std::unique_ptr<Transformer> inference_copy(Transformer& model, std::optional<WeightFormat> format,
                                            const std::optional<Device>& device) {
  return copy(model, format, device, build_transformer);
}

std::unique_ptr<DecoderLm> inference_copy(DecoderLm& model, std::optional<WeightFormat> format,
                                          const std::optional<Device>& device) {
  return copy(model, format, device, build_decoder_lm);
}

std::unique_ptr<EncoderClassifier> inference_copy(EncoderClassifier& model, std::optional<WeightFormat> format,
                                                  const std::optional<Device>& device) {
  return copy(model, format, device, build_encoder_classifier);
}

}  // namespace attune

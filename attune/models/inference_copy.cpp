#include "attune/models/inference_copy.h"

#include "attune/models/build.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

template <class Model, class Build>
std::unique_ptr<Model> copy(Model& model, std::optional<WeightFormat> format, Build&& build) {
  std::unique_ptr<Model> made = build_without_values(model.config(), build);
  copy_for_inference(model, *made, format);
  return made;
}

}  // namespace

std::unique_ptr<Transformer> inference_copy(Transformer& model, std::optional<WeightFormat> format) {
  return copy(model, format, build_transformer);
}

std::unique_ptr<DecoderLm> inference_copy(DecoderLm& model, std::optional<WeightFormat> format) {
  return copy(model, format, build_decoder_lm);
}

std::unique_ptr<EncoderClassifier> inference_copy(EncoderClassifier& model, std::optional<WeightFormat> format) {
  return copy(model, format, build_encoder_classifier);
}

}  // namespace attune

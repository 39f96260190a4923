#pragma once

#include <memory>
#include <optional>

#include "attune/kernels/gemm/panels.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/encoder_classifier.h"
#include "attune/models/transformer.h"

namespace attune {

/// Returns a copy of `model` for inference on `device`, see copy_for_inference(). Training `model` afterwards does not
/// change the copy.
std::unique_ptr<Transformer> inference_copy(Transformer& model, std::optional<WeightFormat> format = {},
                                            const std::optional<Device>& device = {});
std::unique_ptr<DecoderLm> inference_copy(DecoderLm& model, std::optional<WeightFormat> format = {},
                                          const std::optional<Device>& device = {});
std::unique_ptr<EncoderClassifier> inference_copy(EncoderClassifier& model, std::optional<WeightFormat> format = {},
                                                  const std::optional<Device>& device = {});

}  // namespace attune

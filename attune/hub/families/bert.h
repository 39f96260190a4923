#pragma once
// What the models after BERT have in common.

#include <string>

#include "attune/hub/family.h"

namespace attune {

/// The configuration of BERT's encoder.
TransformerConfig bert_encoder(const HubFiles& files);

/// The names of embedding and encoder below `base`: "bert.".
NameTable bert_encoder_names(const std::string& base);

}  // namespace attune

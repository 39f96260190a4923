// M2M100 (Fan et al. 2021) and NLLB (NLLB Team 2022): one model for many languages, whose tokens begin source and
// target.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/encoder_decoder.h"
#include "attune/hub/translate.h"

namespace attune {
namespace m2m100 {

// fairseq's sinusoids: all sines, then all cosines; the first position comes after that of the pad token, which has
// none itself.
TransformerConfig translate(const HubFiles& files) {
  TransformerConfig c = bart_sizes(files);
  const int64_t pad = files.config.integer("pad_token_id", 1);
  c.positions =
      SinusoidalPositions{.order = SinusoidOrder::halves, .full_range = true, .first = pad + 1, .padding_token = pad};
  c.projection_bias = false;
  c.activation = activation_of(files.config, "activation_function", "relu");
  c.scale_embeddings = files.config.flag("scale_embedding", true);
  return c;
}

Json describe(const DescribedModel& model) {
  const auto* const sinusoids = std::get_if<SinusoidalPositions>(&model.config.positions);
  Json json = bart_fields(model.config);
  json["pad_token_id"] = sinusoids && sinusoids->padding_token >= 0 ? sinusoids->padding_token : model.pad;
  return json;
}

}  // namespace m2m100

Family m2m100_family() {
  return {.model_types = {"m2m_100"},
          .classes = {{"M2M100ForConditionalGeneration", Architecture::encoder_decoder, "m2m_100"},
                      {"M2M100Model", Architecture::encoder_decoder, "", true}},
          .prefix = "model.",
          .translate = m2m100::translate,
          .names = bart_names,
          .describe = m2m100::describe,
          .ignored = {"*coder.embed_tokens.weight", "*shared.weight", "*.embed_positions.weights"}};
}

}  // namespace attune

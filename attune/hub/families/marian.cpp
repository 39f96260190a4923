// Marian: Junczys-Dowmunt et al. 2018, and the OPUS-MT models, Tiedemann and Thottingal 2020.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/encoder_decoder.h"

namespace attune {
namespace marian {

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = bart_sizes(files);
  c.positions = SinusoidalPositions{.order = SinusoidOrder::halves};
  c.norm = NormPlacement::post;
  c.target_vocab = hub.integer("decoder_vocab_size", c.source_vocab);
  c.share_embeddings = c.share_embeddings && hub.flag("share_encoder_decoder_embeddings", true);
  return c;
}

// transformers makes the table of sinusoids as long as this.
constexpr int64_t kMostPositions = 1024;

Json describe(const DescribedModel& model) {
  const TransformerConfig& c = model.config;
  Json json = bart_fields(c);
  json.update({{"max_position_embeddings", kMostPositions},
               {"decoder_vocab_size", c.target_vocab},
               {"share_encoder_decoder_embeddings", c.share_embeddings},
               {"static_position_embeddings", true}});
  return json;
}

}  // namespace marian

Family marian_family() {
  return {.model_types = {"marian"},
          .classes = {{"MarianMTModel", Architecture::encoder_decoder, "marian"},
                      {"MarianModel", Architecture::encoder_decoder, "", true}},
          .prefix = "model.",
          .translate = marian::translate,
          .names = bart_names,
          .describe = marian::describe,
          .ignored = {"*coder.embed_tokens.weight", "*shared.weight", "*.embed_positions.weight"}};  // sinusoids
}

}  // namespace attune

// BART: Lewis et al. 2020. mBART, Liu et al. 2020, differs by its norms: before the sublayers, and a final one.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/encoder_decoder.h"

namespace attune {
namespace bart {

TransformerConfig translate(const HubFiles& files) {
  const bool multilingual = files.config.text("model_type") == "mbart";
  TransformerConfig c = bart_sizes(files);
  c.positions = LearnedPositions{.max_length = files.config.integer("max_position_embeddings", 1024)};
  c.norm = multilingual ? NormPlacement::pre : NormPlacement::post;
  c.embedding_norm = true;
  return c;
}

Json describe(const DescribedModel& model) {
  Json json = bart_fields(model.config);
  json["max_position_embeddings"] = learned_positions_of(model.config);
  return json;
}

}  // namespace bart

Family bart_family() {
  return {.model_types = {"bart", "mbart"},
          .classes = {{"BartForConditionalGeneration", Architecture::encoder_decoder, "bart"},
                      {"MBartForConditionalGeneration", Architecture::encoder_decoder, "mbart"},
                      {"BartModel", Architecture::encoder_decoder, "", true},
                      {"MBartModel", Architecture::encoder_decoder, "", true}},
          .prefix = "model.",
          .translate = bart::translate,
          .names = bart_names,
          .describe = bart::describe,
          // The shared table under its other names, and numbers that the first files have for nothing.
          .ignored = {"*coder.embed_tokens.weight", "*shared.weight", "*coder.version"}};
}

}  // namespace attune

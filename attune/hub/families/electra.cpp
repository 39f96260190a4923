// ELECTRA: Clark et al. 2020. BERT, perhaps with narrow tables of embeddings, and with other heads.

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/bert.h"
#include "attune/hub/translate.h"

namespace attune {
namespace electra {

TransformerConfig translate(const HubFiles& files) {
  TransformerConfig c = bert_encoder(files);
  set_embedding_dim(c, files.config.integer("embedding_size", 128));
  c.pooler = true;
  c.transform_activation = Activation::gelu;
  set_masked_lm_head(c, files, "generator_lm_head", Activation::gelu);
  return c;
}

Json describe(const DescribedModel& model) {
  Json json = bert_fields(model.config);
  json["embedding_size"] = model.config.embedding_width();
  return json;
}

NameTable names(const TransformerConfig&, const HubFiles&) {
  NameTable table = bert_encoder_names("electra.");
  const NameTable more = {
      {"embedding.projection", {"electra.embeddings_project"}},
      {"pooler", {"classifier.dense"}},
      {"head", {"classifier.out_proj"}},
      {"transform", {"generator_predictions.dense"}},
      {"transform.norm", {"generator_predictions.LayerNorm"}},
      {"projection", {"generator_lm_head"}},
  };
  table.insert(table.end(), more.begin(), more.end());
  return table;
}

}  // namespace electra

Family electra_family() {
  return {.model_types = {"electra"},
          .classes = {{"ElectraModel", Architecture::encoder, "electra"},
                      {"ElectraForPreTraining", Architecture::encoder, ""},  // its head tells replaced tokens apart
                      {"ElectraForMaskedLM", Architecture::encoder_masked_lm, "electra"},
                      {"ElectraForSequenceClassification", Architecture::encoder_classifier, "electra"}},
          .prefix = "electra.",
          .translate = electra::translate,
          .names = electra::names,
          .describe = electra::describe,
          // Of the other heads that a file may have.
          .ignored = {"*embeddings.position_ids", "discriminator_predictions.*", "generator_*"}};
}

}  // namespace attune

// RoBERTa (Liu et al. 2019) and XLM-R (Conneau et al. 2020): BERT with other heads, and positions that begin after the
// pad token's id.

#include <algorithm>

#include "attune/hub/describe.h"
#include "attune/hub/families.h"
#include "attune/hub/families/bert.h"
#include "attune/hub/translate.h"

namespace attune {
namespace roberta {

// The row of a text's first token in the table of positions: those before it are for padding.
int64_t first_position(const HubConfig& hub) {
  return hub.integer("pad_token_id", 1) + 1;
}

TransformerConfig translate(const HubFiles& files) {
  const HubConfig& hub = files.config;
  TransformerConfig c = bert_encoder(files);
  const int64_t rows = hub.integer("max_position_embeddings", 514);
  if (rows <= first_position(hub)) hub.refuse("max_position_embeddings", "needs more than pad_token_id + 1");
  c.positions = LearnedPositions{.max_length = rows - first_position(hub)};
  c.pooler = true;
  set_masked_lm_head(c, files, "lm_head.decoder", Activation::gelu);
  return c;
}

Json describe(const DescribedModel& model) {
  Json json = bert_fields(model.config);
  json["pad_token_id"] = model.pad;
  json["max_position_embeddings"] = learned_positions_of(model.config) + model.pad + 1;
  return json;
}

NameTable names(const TransformerConfig& c, const HubFiles& files) {
  NameTable table = bert_encoder_names("roberta.");
  std::ranges::find(table, "embedding.position", &NameRow::ours)->transform =
      part_of_rows(first_position(files.config));
  const NameTable heads = {
      {"pooler", {"classifier.dense"}},
      {"head", {"classifier.out_proj"}},
      {"transform", {"lm_head.dense"}},
      {"transform.norm", {"lm_head.layer_norm"}},
      {"projection", {"lm_head.decoder"}},
      {"projection.bias", {projection_bias_name(c, files, "lm_head.decoder.bias", "lm_head.bias")}},
  };
  table.insert(table.end(), heads.begin(), heads.end());
  return table;
}

}  // namespace roberta

Family roberta_family() {
  return {.model_types = {"roberta", "xlm-roberta", "camembert"},
          .classes = {{"RobertaModel", Architecture::encoder, "roberta"},
                      {"RobertaForMaskedLM", Architecture::encoder_masked_lm, "roberta"},
                      {"RobertaForSequenceClassification", Architecture::encoder_classifier, "roberta"},
                      {"XLMRobertaModel", Architecture::encoder, "xlm-roberta"},
                      {"XLMRobertaForMaskedLM", Architecture::encoder_masked_lm, "xlm-roberta"},
                      {"XLMRobertaForSequenceClassification", Architecture::encoder_classifier, "xlm-roberta"},
                      {"CamembertModel", Architecture::encoder, "camembert"},
                      {"CamembertForMaskedLM", Architecture::encoder_masked_lm, "camembert"},
                      {"CamembertForSequenceClassification", Architecture::encoder_classifier, "camembert"}},
          .prefix = "roberta.",
          .translate = roberta::translate,
          .names = roberta::names,
          .describe = roberta::describe,
          // Of the other heads that a file may have.
          .ignored = {"*embeddings.position_ids", "lm_head.*", "roberta.pooler.*", "pooler.*"}};
}

}  // namespace attune

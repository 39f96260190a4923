#include "attune/inference/option_fields.h"

#include "attune/base/deadline.h"
#include "attune/base/json_fields.h"

namespace attune {

std::optional<std::chrono::steady_clock::time_point> DecodingFields::deadline() const {
  if (timeout_seconds == 0) return {};
  return deadline_after(timeout_seconds, "options.timeout_seconds");
}

TranslateFields translate_fields(const Translator& translator, const Json& options) {
  TranslateFields fields{.generation = translator.generation()};
  read_fields(options, fields, "options");
  fields.options.generation = fields.generation;
  fields.options.deadline = fields.decoding.deadline();
  return fields;
}

EmbedFields embed_fields(const Json& options) {
  EmbedFields fields;
  read_fields(options, fields, "options");
  if (options.contains("pooling")) fields.options.pooling = fields.pooling;
  if (options.contains("normalize")) fields.options.normalize = fields.normalize;
  if (options.contains("prompt_name")) fields.options.prompt_name = fields.prompt_name;
  return fields;
}

}  // namespace attune

#include "attune/inference/option_fields.h"

#include "attune/base/deadline.h"
#include "attune/base/error.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"

namespace attune {

std::optional<std::chrono::steady_clock::time_point> DecodingFields::deadline() const {
  if (timeout_seconds == 0) return {};
  return deadline_after(timeout_seconds, "options.timeout_seconds");
}

LoadFields load_fields(const Json& options) {
  LoadFields fields;
  read_fields(options, fields, "options");
  if (!fields.device.empty()) fields.scheduling.device = Device::named(fields.device);
  fields.scheduling.precision = resolved(fields.precision, fields.scheduling.device.value_or(Device{}));
  return fields;
}

AdapterFolders take_adapters(Json& table, const std::string& where) {
  AdapterFolders folders;
  if (!table.is_object() || !table.contains("adapters")) return folders;
  const Json adapters = table["adapters"];
  table.erase("adapters");
  if (!adapters.is_object()) fail<ConfigError>("{}.adapters: needs names and folders, found {}", where, show(adapters));
  for (const auto& [name, folder] : adapters.items()) {
    if (!folder.is_string()) fail<ConfigError>("{}.adapters.{}: needs a folder, found {}", where, name, show(folder));
    folders.emplace(name, folder.get<std::string>());
  }
  return folders;
}

TranslateFields translate_fields(const Translator& translator, const Json& options) {
  TranslateFields fields{.generation = translator.generation()};
  read_fields(options, fields, "options");
  if (!options.contains("beam_groups")) fields.generation.resize_beam(fields.generation.beam_size);
  fields.options.generation = fields.generation;
  fields.options.deadline = fields.decoding.deadline();
  return fields;
}

GenerateFields generate_fields(const TextGenerator& generator, const TextGenerator* draft, const Json& options) {
  GenerateFields fields{.sampling = generator.sampling()};
  read_fields(options, fields, "options");
  if (draft == nullptr && options.contains("draft_tokens"))
    fail<ConfigError>("options.draft_tokens: is for calls with a draft, and there is none");
  if (draft != nullptr) fields.options.draft = &draft->model();
  fields.options.sampling = fields.sampling;
  fields.options.deadline = fields.decoding.deadline();
  return fields;
}

ClassifyFields classify_fields(const Json& options) {
  ClassifyFields fields;
  read_fields(options, fields, "options");
  if (options.contains("max_tokens")) fields.options.max_tokens = fields.max_tokens;
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

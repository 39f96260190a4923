#include "attune/serve/openapi_interfaces.h"

#include <initializer_list>

#include "attune/serve/page_files.h"

namespace attune::serve {
namespace {

// The parts of a schema: OpenAPI 3.0.3, section 4.7.24.

struct Property {
  const char* name;
  Json schema;
  bool required = false;
};
using Properties = std::vector<Property>;
constexpr bool kRequired = true;

Json of_type(const char* type) {
  Json json;
  json["type"] = type;
  return json;
}
Json text() {
  return of_type("string");
}
Json integer() {
  return of_type("integer");
}
Json number() {
  return of_type("number");
}
Json flag() {
  return of_type("boolean");
}
Json at_least(int64_t least, Json schema) {
  schema["minimum"] = least;
  return schema;
}
// The bounds are integers or fractions, as the schema's values are.
Json between(const Json& least, const Json& most, Json schema) {
  schema["minimum"] = least;
  schema["maximum"] = most;
  return schema;
}
Json above(const Json& least, Json schema) {
  schema["minimum"] = least;
  schema["exclusiveMinimum"] = true;
  return schema;
}
Json one_of_names(std::initializer_list<const char*> names) {
  Json json = text();
  for (const char* name : names) json["enum"].push_back(name);
  return json;
}
Json or_null(Json schema) {
  schema["nullable"] = true;
  return schema;
}
Json list_of(const Json& items) {
  Json json = of_type("array");
  json["items"] = items;
  return json;
}
Json of_length(int64_t least, int64_t most, Json list) {
  list["minItems"] = least;
  list["maxItems"] = most;
  return list;
}
Json either(const std::vector<Json>& schemas) {
  Json json;
  for (const Json& schema : schemas) json["oneOf"].push_back(schema);
  return json;
}
Json one_or_list(const Json& items) {
  return either({items, list_of(items)});
}

// An object that may have other properties too.
Json object_with(const Properties& properties) {
  Json json = of_type("object");
  for (const Property& property : properties) {
    json["properties"][property.name] = property.schema;
    if (property.required) json["required"].push_back(property.name);
  }
  return json;
}
Json only(Json object) {
  object["additionalProperties"] = false;
  return object;
}
Properties both(Properties first, const Properties& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// What several interfaces have.

Json status() {
  return object_with({{"status", text(), kRequired}});
}
Json texts_of_embeddings(const Properties& more) {
  return only(object_with(both({{"model", text()}, {"inputs", one_or_list(text()), kRequired}}, more)));
}
Properties cutting_fields() {
  return {{"truncate", flag()}, {"truncation_direction", one_of_names({"Right", "right"})}, {"timeout", number()}};
}
// Texts, or the ids of their tokens.
Json texts_or_ids() {
  return either({text(), list_of(text()), list_of(integer()), list_of(list_of(integer()))});
}
Json usage() {
  return object_with({{"prompt_tokens", integer(), kRequired},
                      {"completion_tokens", integer()},
                      {"total_tokens", integer(), kRequired}});
}

std::vector<InterfaceDescription> page_interfaces() {
  std::vector<InterfaceDescription> files;
  for (const PageFile& file : page_files())
    files.push_back({.path = file.path,
                     .summary = "A file of the page in the browser",
                     .tag = "page",
                     .answer = text(),
                     .answer_type = file.type});
  return files;
}

std::vector<InterfaceDescription> operation_interfaces() {
  const Json model = object_with({{"id", text(), kRequired},
                                  {"object", text(), kRequired},
                                  {"created", integer(), kRequired},
                                  {"owned_by", text(), kRequired},
                                  {"parent", text()}});
  return {{.path = "/health", .summary = "Whether the process answers", .tag = "operation", .answer = status()},
          {.path = "/ready", .summary = "Whether requests are taken", .tag = "operation", .answer = status()},
          {.path = "/metrics",
           .summary = "Numbers in Prometheus' text format",
           .tag = "operation",
           .answer = text(),
           .answer_type = "text/plain"},
          {.path = "/openapi.json", .summary = "This document", .tag = "operation", .answer = of_type("object")},
          {.path = "/admin/reload",
           .summary = "Loads models again whose folders have changed",
           .tag = "operation",
           .answer = status(),
           .success = "It will be done, and the log says how it ends",
           .success_status = "202"},
          {.path = "/v1/models",
           .summary = "The models",
           .tag = "language models",
           .answer = object_with({{"object", text(), kRequired}, {"data", list_of(model), kRequired}})},
          {.path = "/v1/models/{id}", .summary = "A model", .tag = "language models", .answer = model}};
}

InterfaceDescription translate() {
  const Json texts = one_or_list(text());
  return {.path = "/translate",
          .summary = "Translates (LibreTranslate)",
          .tag = "translation",
          .body = only(object_with({{"q", texts, kRequired},
                                    {"source", text(), kRequired},
                                    {"target", text(), kRequired},
                                    {"format", one_of_names({"text", "html"})},
                                    {"alternatives", at_least(0, integer())},
                                    {"api_key", text()},
                                    {"timeout", number()}})),
          .answer = object_with({{"translatedText", texts, kRequired},
                                 {"alternatives", list_of(texts)},
                                 {"detectedLanguage", one_or_list(schema_named("Detected"))}})};
}

InterfaceDescription own_translate() {
  const Json translation =
      object_with({{"text", text(), kRequired}, {"sentences", list_of(schema_named("Sentence")), kRequired}});
  return {.path = "/v1/translate",
          .summary = "Translates, with scores, alignments and constraints",
          .tag = "translation",
          .body = only(object_with({{"model", text()},
                                    {"source", text()},
                                    {"target", text()},
                                    {"text", one_or_list(text()), kRequired},
                                    {"n_best", at_least(1, integer())},
                                    {"beam_size", at_least(1, integer())},
                                    {"length_penalty", between(0, 10, number())},
                                    {"max_length", at_least(1, integer())},
                                    {"no_repeat_ngram_size", between(0, 64, integer())},
                                    {"alignments", flag()},
                                    {"required", one_or_list(text())},
                                    {"banned", one_or_list(text())},
                                    {"prefix", one_or_list(text())},
                                    {"split", flag()},
                                    {"stream", flag()},
                                    {"timeout", number()}})),
          .answer = object_with({{"model", text(), kRequired}, {"translations", list_of(translation), kRequired}}),
          .streams = true};
}

InterfaceDescription attention() {
  const Json side = object_with({{"tokens", list_of(text()), kRequired},
                                 {"words", list_of(text()), kRequired},
                                 {"word_of_token", list_of(integer()), kRequired}});
  return {.path = "/v1/attention",
          .summary = "Where the model looks: the cross-attention of a source and its translation in a layer",
          .tag = "translation",
          .body = only(object_with({{"model", text()},
                                    {"source", text()},
                                    {"target", text()},
                                    {"text", text(), kRequired},
                                    {"translation", one_or_list(text()), kRequired},
                                    {"layer", at_least(1, integer())},
                                    {"timeout", number()}})),
          .answer = object_with({{"model", text(), kRequired},
                                 {"layer", integer(), kRequired},
                                 {"layers", integer(), kRequired},
                                 {"source", side, kRequired},
                                 {"target", side, kRequired},
                                 {"heads", list_of(list_of(list_of(number()))), kRequired}})};
}

std::vector<InterfaceDescription> translation_interfaces() {
  const Json language =
      object_with({{"code", text(), kRequired}, {"name", text(), kRequired}, {"targets", list_of(text()), kRequired}});
  return {translate(),
          {.path = "/detect",
           .summary = "The language of a text (LibreTranslate)",
           .tag = "translation",
           .body = only(object_with({{"q", text(), kRequired}, {"api_key", text()}})),
           .answer = list_of(schema_named("Detected"))},
          {.path = "/languages",
           .summary = "The languages (LibreTranslate)",
           .tag = "translation",
           .answer = list_of(language)},
          {.path = "/frontend/settings",
           .summary = "What clients should know (LibreTranslate)",
           .tag = "translation",
           .answer = of_type("object")},
          own_translate(),
          attention()};
}

// The fields that both interfaces of language models have.
Properties sampling_fields() {
  return {{"model", text()},
          {"temperature", between(0, 100, number())},
          {"top_p", above(0, between(0, 1, number()))},
          {"top_k", at_least(0, integer())},
          {"min_p", between(0, 1, number())},
          {"repetition_penalty", between(0.01, 100, number())},
          {"seed", at_least(0, integer())},
          {"n", at_least(1, integer())},
          {"stop", one_or_list(text())},
          {"stream", flag()},
          {"stream_options", only(object_with({{"include_usage", flag()}}))},
          {"max_tokens", at_least(1, integer())},
          {"timeout", number()}};
}

// `text_of_choice`: "text" of completions, "message" of chats.
Json completion_answer(const Property& text_of_choice) {
  const Json choice = object_with({{"index", integer(), kRequired},
                                   text_of_choice,
                                   {"logprobs", or_null(of_type("object"))},
                                   {"finish_reason", or_null(text()), kRequired}});
  return object_with({{"id", text(), kRequired},
                      {"object", text(), kRequired},
                      {"created", integer(), kRequired},
                      {"model", text(), kRequired},
                      {"choices", list_of(choice), kRequired},
                      {"usage", usage()}});
}

InterfaceDescription completions() {
  return {.path = "/v1/completions",
          .summary = "Continues prompts (OpenAI)",
          .tag = "language models",
          .body = object_with(both(sampling_fields(), {{"prompt", texts_or_ids(), kRequired},
                                                       {"logprobs", between(0, 5, integer())},
                                                       {"echo", flag()},
                                                       {"best_of", integer()},
                                                       {"suffix", or_null(text())},
                                                       {"frequency_penalty", number()},
                                                       {"presence_penalty", number()},
                                                       {"logit_bias", of_type("object")},
                                                       {"user", text()}})),
          .answer = completion_answer({"text", text(), kRequired}),
          .streams = true};
}

InterfaceDescription chat_completions() {
  const Json part = object_with({{"type", text()}, {"text", text()}});
  const Json message =
      object_with({{"role", text(), kRequired}, {"content", either({text(), list_of(part)})}, {"name", text()}});
  const Json answer = object_with({{"role", text(), kRequired}, {"content", text(), kRequired}});
  return {.path = "/v1/chat/completions",
          .summary = "Continues a conversation by the template of the model's folder (OpenAI)",
          .tag = "language models",
          .body = object_with(both(sampling_fields(), {{"messages", list_of(message), kRequired},
                                                       {"max_completion_tokens", at_least(1, integer())},
                                                       {"logprobs", flag()},
                                                       {"top_logprobs", between(0, 20, integer())},
                                                       {"user", text()}})),
          .answer = completion_answer({"message", answer, kRequired}),
          .streams = true};
}

InterfaceDescription openai_embeddings() {
  const Json embedding = object_with({{"object", text(), kRequired},
                                      {"index", integer(), kRequired},
                                      {"embedding", either({list_of(number()), text()}), kRequired}});
  return {.path = "/v1/embeddings",
          .summary = "Vectors of texts (OpenAI)",
          .tag = "embeddings",
          .body = only(object_with({{"model", text()},
                                    {"input", texts_or_ids(), kRequired},
                                    {"encoding_format", one_of_names({"float", "base64"})},
                                    {"dimensions", at_least(1, integer())},
                                    {"user", text()},
                                    {"timeout", number()}})),
          .answer = object_with({{"object", text(), kRequired},
                                 {"data", list_of(embedding), kRequired},
                                 {"model", text(), kRequired},
                                 {"usage", usage(), kRequired}})};
}

InterfaceDescription predict() {
  const Json text_or_pair = of_length(1, 2, list_of(text()));
  return {.path = "/predict",
          .summary = "Labels of texts and of pairs of texts (text-embeddings-inference)",
          .tag = "classification",
          .body = only(object_with(both({{"model", text()},
                                         {"inputs", either({text(), text_or_pair, list_of(text_or_pair)}), kRequired},
                                         {"raw_scores", flag()}},
                                        cutting_fields()))),
          .answer = one_or_list(list_of(schema_named("Label")))};
}

InterfaceDescription rerank() {
  const Json rank = object_with({{"index", integer(), kRequired}, {"score", number(), kRequired}, {"text", text()}});
  return {.path = "/rerank",
          .summary = "Texts by how well they fit a query, best first (text-embeddings-inference)",
          .tag = "classification",
          .body = only(object_with(both({{"model", text()},
                                         {"query", text(), kRequired},
                                         {"texts", list_of(text()), kRequired},
                                         {"raw_scores", flag()},
                                         {"return_text", flag()}},
                                        cutting_fields()))),
          .answer = list_of(rank)};
}

std::vector<InterfaceDescription> encoder_interfaces() {
  const Json token =
      object_with({{"id", integer(), kRequired}, {"text", text(), kRequired}, {"special", flag(), kRequired}});
  return {openai_embeddings(),
          {.path = "/embed",
           .summary = "Vectors of texts (text-embeddings-inference)",
           .tag = "embeddings",
           .body = texts_of_embeddings(both({{"normalize", flag()}}, cutting_fields())),
           .answer = list_of(list_of(number()))},
          predict(),
          rerank(),
          {.path = "/tokenize",
           .summary = "Tokens of texts (text-embeddings-inference)",
           .tag = "embeddings",
           .body = texts_of_embeddings({{"add_special_tokens", flag()}}),
           .answer = list_of(list_of(token))},
          {.path = "/info", .summary = "Models and limits", .tag = "embeddings", .answer = of_type("object")}};
}

Json sentence() {
  const Json candidate = object_with({{"text", text(), kRequired},
                                      {"score", number(), kRequired},
                                      {"log_probability", number(), kRequired},
                                      {"finished", flag(), kRequired},
                                      {"tokens", list_of(text())},
                                      {"token_log_probabilities", list_of(number())},
                                      {"alignment", list_of(list_of(integer()))}});
  return object_with({{"source", text(), kRequired},
                      {"space_after", text()},
                      {"cut_short", text()},
                      {"n_best", list_of(candidate), kRequired}});
}

}  // namespace

Json schema_named(const char* name) {
  Json json;
  json["$ref"] = std::string("#/components/schemas/") + name;
  return json;
}

std::vector<InterfaceDescription> interface_descriptions() {
  std::vector<InterfaceDescription> all = operation_interfaces();
  const auto add = [&](const std::vector<InterfaceDescription>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  add(page_interfaces());
  add(translation_interfaces());
  add({completions(), chat_completions()});
  add(encoder_interfaces());
  return all;
}

Json named_schemas() {
  const Json openai_error = object_with({{"message", text(), kRequired},
                                         {"type", text(), kRequired},
                                         {"param", or_null(text())},
                                         {"code", or_null(text())}});
  Json schemas;
  schemas["Error"] = object_with({{"error", text(), kRequired}});
  schemas["OpenAIError"] = object_with({{"error", openai_error, kRequired}});
  schemas["EmbeddingsError"] = object_with({{"error", text(), kRequired}, {"error_type", text(), kRequired}});
  schemas["Detected"] = object_with({{"language", text(), kRequired}, {"confidence", number(), kRequired}});
  schemas["Label"] = object_with({{"label", text(), kRequired}, {"score", number(), kRequired}});
  schemas["Sentence"] = sentence();
  schemas["Event"] = object_with({{"data", text(), kRequired}});  // of a stream: JSON, or [DONE] at its end
  return schemas;
}

}  // namespace attune::serve

#include "attune/serve/openapi.h"

#include <algorithm>
#include <vector>

#include "attune/serve/openapi_interfaces.h"
#include "attune/serve/routes/routes.h"

namespace attune::serve {
namespace {

struct StatusDescription {
  int status;
  const char* text;
};
constexpr StatusDescription kStatuses[] = {{400, "What is wrong, with the field's name"},
                                           {401, "The API key is missing or not known"},
                                           {403, "The API key, or a page of this origin, may not do that"},
                                           {404, "There is no such model"},
                                           {413, "The text or the body is too long"},
                                           {415, "The body has another type"},
                                           {422, "What is wrong, with the field's name"},
                                           {429, "Too many requests; see Retry-After"},
                                           {500, "The server's own failure"},
                                           {501, "Not built in"},
                                           {503, "Loading, stopping or short of memory; see Retry-After"},
                                           {504, "The time for the request is over"}};

const char* error_schema(ErrorForm form) {
  switch (form) {
    case ErrorForm::openai:
      return "OpenAIError";
    case ErrorForm::libretranslate:
      return "Error";
    case ErrorForm::text_embeddings:
      return "EmbeddingsError";
  }
  return "";
}

// Whether a model works on the answer. Such a request can end with any of the errors.
bool asks_a_model(const Route& route) {
  return route.method == "POST" && route.access != Access::admin;
}

bool has_id(const Route& route) {
  return route.path.ends_with("{id}");
}

// 403: a page of another origin asks.
std::vector<int> error_statuses(const Route& route) {
  if (asks_a_model(route)) {
    const int wrong = route.errors == ErrorForm::text_embeddings ? 422 : 400;
    std::vector<int> statuses = {wrong, 401, 403, 404, 413, 415, 429, 500, 503, 504};
    if (route.access == Access::body_key) statuses.push_back(501);  // LibreTranslate's API, which may detect languages
    return statuses;
  }
  if (has_id(route)) return {400, 401, 403, 404, 503};
  if (route.access != Access::open) return {401, 403, 503};
  // Of the routes without a key, LibreTranslate's but /health need the models, and answer 503 until these are loaded.
  const bool needs_models = route.errors == ErrorForm::libretranslate && route.handle != answer_health;
  return needs_models ? std::vector{403, 503} : std::vector{403};
}

Json content(const std::vector<const char*>& types, const Json& schema) {
  Json by_type = Json::object();
  for (const char* type : types) by_type[type]["schema"] = schema;
  return by_type;
}

Json responses(const Route& route, const InterfaceDescription& description) {
  Json answer = content({description.answer_type}, description.answer);
  if (description.streams) answer["text/event-stream"]["schema"] = schema_named("Event");
  Json all;
  all[description.success_status] = {{"description", description.success}, {"content", std::move(answer)}};
  const std::vector<int> errors = error_statuses(route);
  for (const auto& [status, text] : kStatuses) {
    if (std::find(errors.begin(), errors.end(), status) == errors.end()) continue;
    all[std::to_string(status)] = {
        {"description", text}, {"content", content({"application/json"}, schema_named(error_schema(route.errors)))}};
  }
  return all;
}

Json operation(const Route& route, const InterfaceDescription& description) {
  Json json;
  json["summary"] = description.summary;
  json["tags"] = Json::array({description.tag});
  if (has_id(route)) json["parameters"] = Json::array({Json{{"$ref", "#/components/parameters/Id"}}});
  if (asks_a_model(route)) json["parameters"] = Json::array({Json{{"$ref", "#/components/parameters/Timeout"}}});
  if (!description.body.is_null()) {
    std::vector<const char*> types = {"application/json"};
    if (route.access == Access::body_key)
      types.insert(types.end(), {"application/x-www-form-urlencoded", "multipart/form-data"});
    json["requestBody"] = {{"required", true}, {"content", content(types, description.body)}};
  }
  json["responses"] = responses(route, description);
  if (route.access == Access::open) json["security"] = Json::array();
  return json;
}

Json components() {
  Json json;
  json["securitySchemes"]["key"] = {{"type", "http"}, {"scheme", "bearer"}};
  json["parameters"]["Timeout"] = {{"name", "X-Timeout"},
                                   {"in", "header"},
                                   {"required", false},
                                   {"description", "Seconds after which the request ends"},
                                   {"schema", {{"type", "number"}, {"minimum", 0}, {"exclusiveMinimum", true}}}};
  json["parameters"]["Id"] = {{"name", "id"}, {"in", "path"}, {"required", true}, {"schema", {{"type", "string"}}}};
  json["schemas"] = named_schemas();
  return json;
}

Json document() {
  Json json;
  json["openapi"] = "3.0.3";
  json["info"] = {
      {"title", "Attune"},
      {"version", "1"},
      {"description", "Translation, generation, classification and embeddings over HTTP; see docs/serving.md."}};
  json["security"] = Json::array({Json{{"key", Json::array()}}});
  json["paths"] = Json::object();
  for (const InterfaceDescription& description : interface_descriptions()) {
    for (const Route& route : routes())
      if (route.path == description.path)
        json["paths"][description.path][route.method == "GET" ? "get" : "post"] = operation(route, description);
  }
  json["components"] = components();
  return json;
}

}  // namespace

std::string_view openapi_document() {
  static const std::string text = show(document());
  return text;
}

}  // namespace attune::serve

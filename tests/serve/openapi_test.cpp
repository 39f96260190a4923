#include "attune/serve/openapi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "attune/base/error.h"
#include "attune/base/json_fields.h"
#include "attune/models/generation_config.h"
#include "attune/models/sampling_config.h"
#include "attune/serve/openapi_interfaces.h"
#include "attune/serve/routes/routes.h"

namespace attune::serve {
namespace {

TEST(OpenApi, HasEveryRouteAndNoOther) {
  const Json document = Json::parse(openapi_document());
  std::set<std::string> described, served;
  for (const auto& [path, methods] : document["paths"].items())
    for (const auto& [method, operation] : methods.items()) described.insert(method + " " + path);
  for (const Route& route : routes())
    served.insert((route.method == "GET" ? "get " : "post ") + std::string(route.path));
  EXPECT_EQ(described, served);
  EXPECT_EQ(interface_descriptions().size(), routes().size());
}

void expect_references(const Json& json, const Json& document) {
  if (json.is_object() && json.contains("$ref")) {
    const std::string pointer = json["$ref"].get<std::string>().substr(1);
    EXPECT_TRUE(document.contains(Json::json_pointer(pointer))) << pointer;
  }
  if (json.is_structured())
    for (const auto& [key, value] : json.items()) expect_references(value, document);
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const Json document = Json::parse(openapi_document());
  expect_references(document, document);
}

TEST(OpenApi, OptionsOfASearchHaveTheBoundsOfTheSearch) {
  const Json document = Json::parse(openapi_document());
  const Json& body = document.at("paths").at("/v1/translate").at("post").at("requestBody");
  const Json& fields = body.at("content").at("application/json").at("schema").at("properties");
  GenerationConfig largest, larger;
  largest.length_penalty = fields.at("length_penalty").at("maximum").get<double>();
  largest.no_repeat_ngram_size = fields.at("no_repeat_ngram_size").at("maximum").get<int64_t>();
  EXPECT_NO_THROW(largest.validate());
  larger.length_penalty = std::nextafter(largest.length_penalty, 1e9);
  EXPECT_THROW(larger.validate(), ConfigError);
  larger = {.no_repeat_ngram_size = largest.no_repeat_ngram_size + 1};
  EXPECT_THROW(larger.validate(), ConfigError);
  GenerationConfig least;
  least.length_penalty = fields.at("length_penalty").at("minimum").get<double>();
  EXPECT_NO_THROW(least.validate());
}

TEST(OpenApi, OptionsOfSamplingHaveTheBoundsOfSampling) {
  const Json document = Json::parse(openapi_document());
  const Json& body = document.at("paths").at("/v1/completions").at("post").at("requestBody");
  const Json& top_p = body.at("content").at("application/json").at("schema").at("properties").at("top_p");
  SamplingConfig none, all;
  none.top_p = top_p.at("minimum").get<double>();
  EXPECT_THROW(none.validate(), ConfigError);
  EXPECT_TRUE(top_p.at("exclusiveMinimum").get<bool>());
  all.top_p = top_p.at("maximum").get<double>();
  EXPECT_NO_THROW(all.validate());
}

// As programs read it that check answers: event by event.
TEST(OpenApi, AStreamIsDescribedByItsEvents) {
  const Json document = Json::parse(openapi_document());
  for (const char* path : {"/v1/translate", "/v1/completions", "/v1/chat/completions"}) {
    const Json& answer = document["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"];
    EXPECT_EQ(answer["schema"]["$ref"], "#/components/schemas/Event") << path;
  }
  EXPECT_EQ(document["components"]["schemas"]["Event"]["required"], Json::array({"data"}));
}

// It is answered before anything is loaded.
TEST(OpenApi, AReloadIsAccepted) {
  const Json document = Json::parse(openapi_document());
  const Json& responses = document["paths"]["/admin/reload"]["post"]["responses"];
  EXPECT_TRUE(responses.contains("202"));
  EXPECT_FALSE(responses.contains("200"));
  EXPECT_TRUE(document["paths"]["/health"]["get"]["responses"].contains("200"));
  EXPECT_FALSE(document["paths"]["/health"]["get"]["responses"].contains("503"));
  EXPECT_TRUE(document["paths"]["/ready"]["get"]["responses"].contains("503"));
}

}  // namespace
}  // namespace attune::serve

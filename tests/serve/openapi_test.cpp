#include "attune/serve/openapi.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "attune/base/json_fields.h"
#include "attune/serve/openapi_interfaces.h"
#include "attune/serve/routes.h"

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

// As programs read it that check answers: event by event.
TEST(OpenApi, AStreamIsDescribedByItsEvents) {
  const Json document = Json::parse(openapi_document());
  for (const char* path : {"/v1/translate", "/v1/completions", "/v1/chat/completions"}) {
    const Json& answer = document["paths"][path]["post"]["responses"]["200"]["content"]["text/event-stream"];
    EXPECT_EQ(answer["schema"]["$ref"], "#/components/schemas/Event") << path;
  }
  EXPECT_EQ(document["components"]["schemas"]["Event"]["required"], Json::array({"data"}));
}

}  // namespace
}  // namespace attune::serve

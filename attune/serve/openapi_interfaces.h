#pragma once
// What each interface takes and returns, as JSON schemas.

#include <vector>

#include "attune/base/json_fields.h"

namespace attune::serve {

/// What OpenAPI says of a route, beside what its Route has.
struct InterfaceDescription {
  const char* path;
  const char* summary;
  const char* tag;
  Json body = nullptr;  // the schema of a request's body; null: it has none
  Json answer;          // the schema of the answer
  const char* answer_type = "application/json";
  bool streams = false;  // whether it may be a stream of events instead
  const char* success = "The answer";
  const char* success_status = "200";
};

std::vector<InterfaceDescription> interface_descriptions();

/// The schemas that others refer to, by name.
Json named_schemas();
/// The reference to one of them.
Json schema_named(const char* name);

}  // namespace attune::serve

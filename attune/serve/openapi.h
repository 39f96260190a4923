#pragma once

#include <string_view>

namespace attune::serve {

/// The interfaces as an OpenAPI 3.0 document, in JSON.
std::string_view openapi_document();

}  // namespace attune::serve

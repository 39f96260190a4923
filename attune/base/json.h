#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attune {

using Json = nlohmann::ordered_json;

/// Returns a value as one line of JSON. Does not throw for strings that are not valid UTF-8.
std::string show(const Json& value);

}  // namespace attune

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attune {

using Json = nlohmann::ordered_json;

/// A value as JSON in one line: never throws, whatever bytes a file has put into its strings.
std::string show(const Json& value);

}  // namespace attune

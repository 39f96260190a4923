#pragma once
// config.json of a model folder that has been parsed.

#include <string>

#include "attune/base/json.h"
#include "attune/io/config_file.h"

namespace attune {

/// As read_config_file(), of a config.json that has been read; `where` begins every error.
ConfigFile config_of(Json json, const std::string& where);

}  // namespace attune

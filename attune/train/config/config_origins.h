#pragma once
// How a configuration comes together from a preset, a file and assignments: what config_file.cpp and
// automatic_config_file.cpp share.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/json.h"
#include "attune/train/config.h"

namespace attune {

/// Where keys come from.
struct Origin {
  std::string name;  // for messages: "run.toml", "--set train.steps=5", "preset bert-tiny"
  std::function<void(Json&)> add_to;
};

/// Preset, file, assignments: a later one counts more. Empty: there is none. Throws FileError and ConfigError.
std::vector<Origin> origins_of(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                               std::string_view preset);

/// The keys of all origins. Of a key that several have, the last one counts.
Json joined(const std::vector<Origin>& origins);

/// The defaults of the architecture that [model] asks for.
RunConfig defaults_of(const Json& json);

/// Throws ConfigError that names the key. Does not ask whether values go together.
RunConfig read_keys(const Json& json);

/// The same, and throws ConfigError where values do not go together, and DeviceError where train.device cannot be used.
RunConfig read_usable_sections(const Json& json);

using Read = RunConfig (*)(const Json& json);

/// Reads the keys of all origins; the model of train.initialize_from counts least. Throws what `read` throws, and names
/// the origin.
RunConfig read_origins(std::vector<Origin> origins, Read read);

}  // namespace attune

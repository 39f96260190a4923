#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attune/hub/hub_config.h"
#include "attune/models/generation_config.h"
#include "attune/models/sampling_config.h"
#include "attune/text/tokenizer.h"

namespace attune {

/// How an encoder-decoder of the hub searches for outputs: by generation_config.json of the folder, or, in older
/// folders without it, by `config`, its config.json. Outputs are searched for and ranked as by transformers, but have
/// at most 256 tokens, and not 20, where the files name no limit. The start and the ends come from config.json where
/// generation_config.json has none. Throws FileError, and ConfigError naming a field that is not supported.
GenerationConfig read_hub_generation(const std::filesystem::path& folder, const HubConfig& config);

/// How a language model of the hub continues a text, from the same files. The likeliest token is taken where they do
/// not say "do_sample"; an end is honoured, and so are suppressed tokens. Throws as above.
SamplingConfig read_hub_sampling(const std::filesystem::path& folder, const HubConfig& config);

/// generation_config.json for these settings: the other direction. Adds to `left_out` a line for each setting that
/// transformers does not have.
Json hub_generation_of(const GenerationConfig& settings, const SpecialIds& special, std::vector<std::string>& left_out);
Json hub_sampling_of(const SamplingConfig& settings, const SpecialIds& special, std::vector<std::string>& left_out);

}  // namespace attune

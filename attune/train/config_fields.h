#pragma once
// Which fields of a run's configuration an architecture has.

#include <string_view>

#include "attune/base/json.h"
#include "attune/train/config.h"

namespace attune {

/// Whether the architecture has `field`: a section ("generation"), or a key with its section ("data.train_files").
bool has_field(Architecture architecture, std::string_view field);

/// Throws ConfigError when a field of another architecture does not have its default, saying what to use instead.
void refuse_foreign_fields(const RunConfig& config);

/// The sections as JSON, without the fields of other architectures.
Json own_fields(const RunConfig& config);

}  // namespace attune

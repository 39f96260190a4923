#pragma once
// Which fields of a run's configuration an architecture has.

#include <string>
#include <string_view>
#include <utility>

#include "attune/base/error.h"
#include "attune/base/json.h"
#include "attune/train/config.h"

namespace attune {

/// A key that the architecture does not have and another one has: "data.train_source: architecture = ...".
class ForeignKey final : public ConfigError {
 public:
  ForeignKey(std::string section, std::string key, const std::string& why)
      : ConfigError(section + "." + key + ": " + why), section_(std::move(section)), key_(std::move(key)) {}
  const std::string& section() const { return section_; }
  const std::string& key() const { return key_; }

 private:
  std::string section_, key_;
};

/// Whether the architecture has `field`: a section ("generation"), or a key with its section ("data.train_files").
bool has_field(Architecture architecture, std::string_view field);

/// Throws ForeignKey when a field of another architecture does not have its default, saying what to use instead.
void refuse_foreign_fields(const RunConfig& config);

/// The sections as JSON, without the fields of other architectures.
Json own_fields(const RunConfig& config);

}  // namespace attune

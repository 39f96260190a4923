#pragma once
// Every key of the configuration with its meaning: `attune train --describe-config` and docs/configuration.md.

#include <string>

namespace attune {

/// docs/configuration.md: every key of every architecture, every field of every kind, and the presets.
std::string configuration_page();

}  // namespace attune

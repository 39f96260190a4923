#pragma once
// What the keys of a configuration mean: the one place from which --describe-config and docs/configuration.md are made.

#include <span>

namespace attune {

struct KeyHelp {
  const char* key;      // "train.steps"; a field of a kind with the kind's name: "latent.latent_dim"
  const char* meaning;  // one sentence without its full stop; says what 0 or "" stands for
  const char* unit;     // "": none
};

/// One entry for each key of every architecture and for each field of every kind, in the order of the page.
std::span<const KeyHelp> key_help();

/// The entry of a key. Throws ConfigError where there is none.
const KeyHelp& help_of(const char* section, const char* key);

}  // namespace attune

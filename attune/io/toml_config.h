#pragma once
// Configuration files in TOML (https://toml.io), as Json that read_fields() understands.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/fields.h"
#include "attune/base/json.h"

namespace attune {

/// A file of at most 1 MiB. Throws FileError "file:line:column: message" for what is not TOML, and FileError naming the
/// key for what no configuration needs: dates, times, infinities, more than 32 levels, more than 4096 keys in a table.
Json read_toml(const std::filesystem::path& path);

/// The same for text; `where` takes the place of the file's name.
Json parse_toml(std::string_view text, const std::string& where);

/// Sets one key: "model.d_model=256", "data.train_source=[\"a.en\", \"b.en\"]", "model.encoder_attention=latent". The
/// value is read as TOML or, where it is not TOML, as a string. Throws ConfigError naming the assignment.
void apply_override(Json& config, const std::string& assignment);

/// Sorts assignments: those of whole tables come before those of keys in them. So their order only matters where one
/// key is set twice: then the last one counts.
std::vector<std::string> in_order_of_depth(std::vector<std::string> assignments);

/// Puts the keys of `sections` into those of `config`, one by one. A table without "kind" only changes the keys that it
/// has, in the table that is in its place; a name in that place, as in "latent", is read as {kind = "latent"}. Every
/// other value replaces the one in its place.
void put_sections(Json& config, const Json& sections);

/// A table of tables as TOML text: one [section] for each, deeper tables inline. parse_toml() gives the same values
/// back.
std::string write_toml(const Json& sections);

/// One value: a number, true, a string, a list, an inline table.
std::string write_toml_value(const Json& value);

}  // namespace attune

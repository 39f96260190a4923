#pragma once
// What runs have measured, read from their folders.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "attune/base/json.h"

namespace attune::cli {

/// Returns the lines of a file of JSON lines. A last line without an end is left out: a running process still writes
/// it. `check` gets each line with its place, "metrics.jsonl:12". Throws FileError, and what `check` throws.
std::vector<Json> read_json_lines(const std::filesystem::path& file,
                                  const std::function<void(const Json& json, const std::string& where)>& check);

/// The lines of a run's metrics.jsonl, or of such a file itself. Throws FileError and DataError naming the line.
std::vector<Json> read_metrics(const std::filesystem::path& run);

/// Every name in the lines but step and time, in the order in which they first appear.
std::vector<std::string> names_of(const std::vector<Json>& lines);

/// The unit of a value: "nats", "share", ...; its own name where no other value has its unit. Values of one unit are
/// drawn in one panel. `lines` are those of the run.
std::string unit_of(const std::string& name, const std::vector<Json>& lines);

/// A value of a validation at the step where it was best.
struct BestValue {
  double value = 0;
  int64_t step = 0;
};
/// Returns the best value with this name; nothing where no line has a finite one. Less is better for losses,
/// perplexities and bits, more is better for all others.
std::optional<BestValue> best_of(const std::vector<Json>& lines, const std::string& name);

/// The largest number of a name: the last one where it grows in the course of a run. Nothing where no line has one.
std::optional<double> largest(const std::vector<Json>& lines, const char* name);

/// The first number of a name; nothing where no line has one.
std::optional<double> first(const std::vector<Json>& lines, const char* name);

/// The folder of a run's model: model/ where the run has ended, else best/; nothing where neither is there.
std::optional<std::filesystem::path> model_of_run(const std::filesystem::path& run);

/// The keys of a run's config.toml with their sections, "train.steps", as they are written.
Json flat_config(const std::filesystem::path& run);

}  // namespace attune::cli

#include "attune/cli/bench/profile.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/json_fields.h"

namespace attune::cli {

Json profile_json(const std::vector<ProfileEntry>& entries, int64_t steps, double peak_gflops) {
  double total = 0;
  for (const ProfileEntry& entry : entries) total += entry.seconds;
  const auto count = static_cast<double>(steps);
  Json rows = Json::array(), other;
  for (const ProfileEntry& entry : entries) {
    const bool rest = entry.name == kStepScope;
    Json row = {{"operation", rest ? "other" : entry.name},
                {"calls_per_step", static_cast<double>(entry.calls) / count},
                {"ms_per_step", entry.seconds * 1e3 / count},
                {"share_of_step", entry.seconds / total}};
    if (entry.work > 0) {
      const double gflops = static_cast<double>(entry.work) / entry.seconds / 1e9;
      row["gflops_per_s"] = gflops;
      row["share_of_peak"] = gflops / peak_gflops;
    }
    if (rest) {
      other = std::move(row);
    } else {
      rows.push_back(std::move(row));
    }
  }
  if (!other.is_null()) rows.push_back(std::move(other));
  return rows;
}

std::string profile_table(const Json& profile) {
  std::string table =
      fmt::format("{:<40}{:>10}{:>12}{:>9}{:>10}{:>9}\n", "operation", "calls", "ms", "of step", "GFLOP/s", "of peak");
  for (const Json& row : profile) {
    table += fmt::format("{:<40}{:>10.4g}{:>12.3f}{:>8.1f}%", row.at("operation").get<std::string>(),
                         row.at("calls_per_step").get<double>(), row.at("ms_per_step").get<double>(),
                         100 * row.at("share_of_step").get<double>());
    if (row.contains("gflops_per_s"))
      table += fmt::format("{:>10.1f}{:>8.1f}%", row.at("gflops_per_s").get<double>(),
                           100 * row.at("share_of_peak").get<double>());
    table += "\n";
  }
  return table;
}

Json trace_json(const std::vector<ProfileEvent>& events) {
  double first = events.empty() ? 0 : events.front().begin;
  for (const ProfileEvent& event : events) first = std::min(first, event.begin);
  Json complete = Json::array();
  for (const ProfileEvent& event : events) {
    Json json = {{"name", event.name},         {"ph", "X"}, {"ts", (event.begin - first) * 1e6},
                 {"dur", event.seconds * 1e6}, {"pid", 1},  {"tid", 1}};
    if (event.work > 0) json["args"] = {{"flops", event.work}};
    complete.push_back(std::move(json));
  }
  return {{"traceEvents", std::move(complete)}, {"displayTimeUnit", "ms"}};
}

}  // namespace attune::cli

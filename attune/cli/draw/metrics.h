#pragma once

#include <string>
#include <vector>

namespace attune::cli {

/// Curves of what runs have measured.
struct MetricsPicture {
  std::vector<std::string> runs;    // folders, or files like metrics.jsonl
  std::vector<std::string> values;  // names in them; none: loss and valid_loss
  std::string axis = "step";        // or time, tokens
  double smooth = 0;                // weight of the values before in the moving average; below 1
  bool log_x = false, log_y = false;
};

/// The picture as SVG, one panel for each unit, see unit_of(). Throws ConfigError for what a run has not measured.
std::string draw_metrics(const MetricsPicture& picture);

}  // namespace attune::cli

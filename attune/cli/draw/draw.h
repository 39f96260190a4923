#pragma once
// attune draw: pictures of what the literature describes, drawn by the code that computes it.

#include <functional>
#include <string>

#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/cli/command.h"

namespace attune::cli {

/// Adds a kind of picture with the option --out; `picture` returns the SVG.
CLI::App* add_picture(CLI::App& draw, const std::string& kind, const std::string& description,
                      const std::string& examples, std::function<std::string()> picture);

void add_draw_positions(CLI::App& draw);
void add_draw_mask(CLI::App& draw);
void add_draw_schedule(CLI::App& draw);
void add_draw_block(CLI::App& draw);
void add_draw_attention(CLI::App& draw);
void add_draw_metrics(CLI::App& draw);

/// Throws ConfigError unless low <= value <= high.
inline void check_within(const char* option, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high) fail<ConfigError>("{} {}: needs {} to {}", option, value, low, high);
}

}  // namespace attune::cli

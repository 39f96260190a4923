// attune draw mask: who may attend to whom.

#include <fmt/format.h>
#include <algorithm>
#include <limits>

#include "attune/base/fail.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/cli/options/pattern_options.h"

namespace attune::cli {
namespace {

constexpr int64_t kMostSequences = 16;

struct MaskCommand {
  std::string pattern = "full";
  PatternOptions sizes = {.size = 8, .stride = 8, .summary = 2};
  bool causal = false;
  int64_t length = 32;
  std::vector<int64_t> lengths;
};

// One sequence of a batch that is padded to `padded` places.
HeatMap mask_of(const MaskCommand& c, const AttentionPattern& pattern, int64_t length, int64_t padded) {
  HeatMap map{.rows = padded, .columns = padded};
  int64_t pairs = 0;
  for (int64_t i = 0; i < padded; ++i) {
    for (int64_t j = 0; j < padded; ++j) {
      const bool there = i < length && j < length;
      const bool allowed = there && (!c.causal || j <= i) && allows(pattern, i, j);
      pairs += allowed ? 1 : 0;
      map.values.push_back(!there ? std::numeric_limits<double>::quiet_NaN() : allowed ? 1.0 : 0.0);
    }
  }
  map.title = fmt::format("{} of {} pairs, {:.0f}%", pairs, length * length,
                          100.0 * static_cast<double>(pairs) / static_cast<double>(length * length));
  return map;
}

void check_options(const CLI::App& app, const MaskCommand& c, const AttentionPattern& pattern) {
  std::vector<std::string> known = {"--pattern", "--causal", "--length", "--lengths", "--out"};
  const auto add = [&](const char* size, int64_t&) { known.push_back(fmt::format("--{}", size)); };
  std::visit([&](auto kind) { visit_fields(kind, add); }, pattern);
  refuse_option_beside(app, known, "--pattern " + c.pattern);
  if (!c.lengths.empty() && app.count("--length") > 0) fail<ConfigError>("--length is not for --lengths");
}

std::string draw_mask(const MaskCommand& c, const CLI::App& app) {
  const AttentionPattern pattern = c.sizes.pattern("--pattern", c.pattern);
  check_options(app, c, pattern);
  const std::vector<int64_t> lengths = c.lengths.empty() ? std::vector{c.length} : c.lengths;
  if (lengths.size() > kMostSequences)
    fail<ConfigError>("--lengths: has {} sequences, at most {} are drawn", lengths.size(), kMostSequences);
  for (const int64_t length : lengths)
    check_within(c.lengths.empty() ? "--length" : "--lengths", length, 1, kMostCells);
  const int64_t padded = *std::max_element(lengths.begin(), lengths.end());
  HeatMaps picture{.title = fmt::format("Attention: {}{}", pattern_text(pattern), c.causal ? ", causal" : ""),
                   .note = c.lengths.empty() ? "" : "A batch as the literature pads it; packed, it has no padding.",
                   .row_name = "query i",
                   .column_name = "key j",
                   .low = -0.2,
                   .high = 1.4,
                   .meanings = {{1.0, "may attend"}, {0.0, "may not"}},
                   .grey_meaning = std::any_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n < padded; })
                                       ? "padding"
                                       : ""};
  for (const int64_t length : lengths) picture.maps.push_back(mask_of(c, pattern, length, padded));
  return draw_heat_maps(picture);
}

}  // namespace

void add_draw_mask(CLI::App& draw) {
  const auto c = std::make_shared<MaskCommand>();
  CLI::App* command = add_picture(draw, "mask", "Which positions may attend to which",
                                  "  attune draw mask --causal --length 16 --out causal.svg\n"
                                  "  attune draw mask --pattern window --size 4 --out window.svg\n"
                                  "  attune draw mask --pattern fixed --stride 8 --summary 2 --causal --out fixed.svg\n"
                                  "  attune draw mask --lengths 5,12,9 --out padding.svg",
                                  [c, &draw] { return draw_mask(*c, *draw.get_subcommand("mask")); });
  command->add_option("--pattern", c->pattern, "full, window, strided or fixed")->capture_default_str();
  c->sizes.add_to(*command);
  command->add_flag("--causal", c->causal, "A query sees no later key");
  command->add_option("--length", c->length, "Positions of the sequence")->capture_default_str();
  command->add_option("--lengths", c->lengths, "Sequences of a padded batch, in place of --length")->delimiter(',');
}

}  // namespace attune::cli

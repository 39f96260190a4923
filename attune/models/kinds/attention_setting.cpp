#include "attune/models/kinds/attention_setting.h"

#include <cmath>
#include <string>

#include "attune/base/fail.h"
#include "attune/base/with_prefix.h"

namespace attune {

void check_divides_width(const AttentionSetting& setting) {
  if (setting.d_model % setting.heads != 0)
    fail<ConfigError>("d_model = {} is not divisible by {} = {}", setting.d_model, setting.heads_field, setting.heads);
}

void check_attention_scale(const std::string& field, double scale) {
  if (!(scale >= 0 && std::isfinite(scale)))
    fail<ConfigError>("{}.scale = {}: needs a positive number, or 0 for 1 / sqrt(the width of a head)", field, scale);
}

void check_rotary_width(const std::string& field, int64_t width, const AttentionSetting& setting) {
  const RotaryOptions& rotary = setting.positions.rotary.value();
  if (width % 2 != 0)
    fail<ConfigError>("{} = {}: {} = \"rotary\" need an even number", field, width, setting.positions_field);
  if (rotary.dimensions > width)
    fail<ConfigError>("{}.dimensions = {}: {} is {}", setting.positions_field, rotary.dimensions, field, width);
  with_prefix(std::string(setting.positions_field) + ".", [&] {  // checks the number of its factors
    rotary_frequencies(rotary, rotary.dimensions > 0 ? rotary.dimensions : width);
  });
}

}  // namespace attune

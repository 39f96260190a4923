#include "attune/models/kinds/attention_setting.h"

#include "attune/base/fail.h"

namespace attune {

void check_rotary_width(const std::string& field, int64_t width, const RotaryOptions& rotary) {
  if (width % 2 != 0) fail<ConfigError>("{} = {}: positions = \"rotary\" need an even number", field, width);
  if (rotary.dimensions > width)
    fail<ConfigError>("positions.dimensions = {}: {} is {}", rotary.dimensions, field, width);
}

}  // namespace attune

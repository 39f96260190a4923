#include "attune/ops/attention/attention_check.h"

#include <cmath>

#include "attune/base/fail.h"

namespace attune {

void check_columns(std::string_view op, std::string_view name, const HeadColumns& part) {
  const bool matrix = part.x.defined() && part.x.rank() == 2;
  if (!matrix || part.column < 0 || part.heads < 0 || part.d < 0 || part.column + part.heads * part.d > part.x.size(1))
    fail<ShapeError>("{}: {} heads of {} from column {} on do not lie in {} {}", op, part.heads, part.d, part.column,
                     name, part.x.shape().text());
}

void check_scale(std::string_view op, double scale) {
  if (!(scale >= 0)) fail<ShapeError>("{}: scale = {}, needs a positive number, or 0 for 1 / sqrt(d_k)", op, scale);
}

void check_soft_cap(std::string_view op, double soft_cap, bool added) {
  if (!(soft_cap >= 0 && std::isfinite(soft_cap)))
    fail<ConfigError>("{}: soft_cap = {}, needs a finite number of at least 0", op, soft_cap);
  if (soft_cap > 0 && added)
    fail<ConfigError>("{}: soft_cap = {}, together with a term that is added to the scores", op, soft_cap);
}

}  // namespace attune

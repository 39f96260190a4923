#include "attune/nn/adapters/lora_config.h"

#include <cmath>

#include "attune/base/check.h"
#include "attune/base/fail.h"

namespace attune {

double LoraConfig::scale() const {
  const auto r = static_cast<double>(rank);
  return alpha_in_use() / (rank_stabilized ? std::sqrt(r) : r);
}

void LoraConfig::validate() const {
  constexpr int64_t kMostRank = 1 << 14;
  if (rank < 0 || rank > kMostRank) fail<ConfigError>("rank = {}: needs a number from 0 to {}", rank, kMostRank);
  if (!(alpha >= 0 && alpha < 1e6)) fail<ConfigError>("alpha = {}: needs a number from 0, below 1000000", alpha);
  check_below_one("dropout", dropout);
  if (on() && targets.empty()) fail<ConfigError>("targets: names no projection");
}

}  // namespace attune

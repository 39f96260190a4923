#include "attune/nn/attention/relative_bias.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/nn/new_parameter.h"
#include "attune/ops/embedding.h"

namespace attune {
namespace {

Indices buckets_of(const RelativeBiasConfig& config) {
  config.validate();
  std::vector<int32_t> buckets;
  for (int64_t distance = -config.max_distance; distance <= config.max_distance; ++distance)
    buckets.push_back(static_cast<int32_t>(relative_bucket(config, distance)));
  return Indices(std::move(buckets));
}

}  // namespace

void RelativeBiasConfig::validate() const {
  check_range<int64_t>("buckets", buckets, 4, 1 << 12);
  if (buckets % 2 != 0) fail<ConfigError>("buckets = {}: needs an even number", buckets);
  check_range<int64_t>("max_distance", max_distance, buckets / 2 + 1, 1 << 16);
}

int64_t relative_bucket(const RelativeBiasConfig& config, int64_t distance) {
  const int64_t buckets = config.bidirectional ? config.buckets / 2 : config.buckets, exact = buckets / 2;
  const int64_t first = config.bidirectional && distance > 0 ? buckets : 0;
  const int64_t length = config.bidirectional ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  if (length < exact) return first + length;
  // In float32, as the models were trained: near the border of a bucket float64 decides otherwise.
  const auto ratio = std::log(static_cast<double>(config.max_distance) / static_cast<double>(exact));
  const float position = std::log(static_cast<float>(length) / static_cast<float>(exact)) / static_cast<float>(ratio) *
                         static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<int64_t>(position), buckets - 1);
}

RelativeBias::RelativeBias(const RelativeBiasConfig& config)
    : weight_{.tensor = new_parameter({config.buckets, config.heads})}, buckets_(buckets_of(config)) {}

Tensor RelativeBias::by_distance() const {
  return embedding(buckets_, weight_.tensor);
}

}  // namespace attune

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// How the base model's weights, which are not trained, are stored in memory.
enum class BasePrecision {
  float32,
  int8  // as `attune quantize` makes them; products read the widened numbers: Dettmers et al. 2023, "QLoRA"
};

template <>
struct EnumNames<BasePrecision> {
  static constexpr std::pair<BasePrecision, const char*> values[] = {{BasePrecision::float32, "float32"},
                                                                     {BasePrecision::int8, "int8"}};
};

/// Low-rank adapters, Hu et al. 2021: a projection with the weight W [out, in] becomes x W^T + s (x A^T) B^T, with
/// A [rank, in] and B [out, rank].
struct LoraConfig {
  int64_t rank = 0;                                       // 0: there are no adapters
  double alpha = 0;                                       // s = alpha / rank (section 4.1); 0: twice the rank
  bool rank_stabilized = false;                           // s = alpha / sqrt(rank), Kalajdzievski 2023
  double dropout = 0;                                     // on x in front of A
  BasePrecision base_precision = BasePrecision::float32;  // of the matrices W, which do not change
  /// Names of projections ("w_q") or patterns of whole names ("encoder.layers.*.w_q"); "all": every projection of the
  /// layers. Section 4.2 adapts the queries and values of attention.
  std::vector<std::string> targets = {"w_q", "w_v"};
  bool operator==(const LoraConfig&) const = default;

  bool on() const { return rank > 0; }
  double alpha_in_use() const { return alpha > 0 ? alpha : 2 * static_cast<double>(rank); }
  double scale() const;   // s
  void validate() const;  // throws ConfigError naming the field
};

template <class FieldVisitor>
void visit_fields(LoraConfig& c, FieldVisitor& v) {
  v("rank", c.rank);
  v("alpha", c.alpha);
  v("rank_stabilized", c.rank_stabilized);
  v("dropout", c.dropout);
  v("base_precision", c.base_precision);
  v("targets", c.targets);
}

}  // namespace attune

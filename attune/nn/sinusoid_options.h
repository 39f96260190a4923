#pragma once

#include <cstdint>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

/// Where the sines and cosines of a position stand.
enum class SinusoidOrder {
  interleaved,  // sin, cos, sin, cos, ...: Vaswani et al. 2017
  halves,       // all sines, then all cosines: tensor2tensor, fairseq, Marian
};

template <>
struct EnumNames<SinusoidOrder> {
  static constexpr std::pair<SinusoidOrder, const char*> values[] = {{SinusoidOrder::interleaved, "interleaved"},
                                                                     {SinusoidOrder::halves, "halves"}};
};

struct SinusoidOptions {
  SinusoidOrder order = SinusoidOrder::interleaved;
  /// false: the frequencies are 10000^(-2i / d_model), Vaswani et al. 2017; true: 10000^(-i / (d_model / 2 - 1)), so
  /// that the last is 1 / 10000, as in tensor2tensor and fairseq.
  bool full_range = false;
  int64_t first = 0;           // the position of the first token
  int64_t padding_token = -1;  // this token has no position and is not counted, as in fairseq; -1: none is
  bool operator==(const SinusoidOptions&) const = default;
};

template <class FieldVisitor>
void visit_fields(SinusoidOptions& c, FieldVisitor& v) {
  v("order", c.order);
  v("full_range", c.full_range);
  v("first", c.first);
  v("padding_token", c.padding_token);
}

}  // namespace attune

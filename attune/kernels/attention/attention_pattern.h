#pragma once
// Sparse patterns of self-attention: which keys a query may attend to, in addition to causality and masks.

#include <cstdint>
#include <string_view>
#include <variant>

namespace [[gnu::visibility("default")]] attune {

/// Every key.
struct FullAttention {
  bool operator==(const FullAttention&) const = default;
};

/// |i - j| < size. Source: Beltagy et al. 2020, section 3.1.
struct SlidingWindow {
  int64_t size = 256;
  bool operator==(const SlidingWindow&) const = default;
};

/// |i - j| < stride, or stride divides i - j. Source: Child et al. 2019, section 4.3; the positions of both heads
/// are merged into one set, section 5.1.
struct StridedAttention {
  int64_t stride = 128;
  bool operator==(const StridedAttention&) const = default;
};

/// i and j lie in the same block of `stride` positions, or j is one of the last `summary` positions of its block (c in
/// the paper). Source: Child et al. 2019, section 4.3.
struct FixedAttention {
  int64_t stride = 128;
  int64_t summary = 8;
  bool operator==(const FixedAttention&) const = default;
};

using AttentionPattern = std::variant<FullAttention, SlidingWindow, StridedAttention, FixedAttention>;

/// Whether the query at position i = `query` of its sequence may attend to the key at position j = `key`, regardless of
/// causality. Every kernel must agree with this definition. Positions are not negative.
bool allows(const AttentionPattern& pattern, int64_t query, int64_t key);

/// Throws ConfigError, beginning with `where` and naming the field, unless sizes and strides are at least 1 and
/// 1 <= summary <= stride.
void check_pattern(std::string_view where, const AttentionPattern& pattern);

template <class V>
void visit_fields(FullAttention&, V&) {}
template <class V>
void visit_fields(SlidingWindow& p, V& v) {
  v("size", p.size);
}
template <class V>
void visit_fields(StridedAttention& p, V& v) {
  v("stride", p.stride);
}
template <class V>
void visit_fields(FixedAttention& p, V& v) {
  v("stride", p.stride);
  v("summary", p.summary);
}

}  // namespace attune

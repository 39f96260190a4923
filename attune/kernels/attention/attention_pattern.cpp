#include "attune/kernels/attention/attention_pattern.h"

#include <cstdlib>

#include "attune/base/fail.h"

namespace attune {
namespace {

bool allows_pair(const FullAttention&, int64_t, int64_t) {
  return true;
}
bool allows_pair(const SlidingWindow& p, int64_t i, int64_t j) {
  return std::abs(i - j) < p.size;
}
bool allows_pair(const StridedAttention& p, int64_t i, int64_t j) {
  return std::abs(i - j) < p.stride || (i - j) % p.stride == 0;
}
bool allows_pair(const FixedAttention& p, int64_t i, int64_t j) {
  return i / p.stride == j / p.stride || j % p.stride >= p.stride - p.summary;
}

void check_positive(std::string_view where, const char* name, int64_t value) {
  if (value < 1) fail<ConfigError>("{}: {} = {}, needs at least 1", where, name, value);
}
void check_fields(std::string_view, const FullAttention&) {}
void check_fields(std::string_view where, const SlidingWindow& p) {
  check_positive(where, "size", p.size);
}
void check_fields(std::string_view where, const StridedAttention& p) {
  check_positive(where, "stride", p.stride);
}
void check_fields(std::string_view where, const FixedAttention& p) {
  check_positive(where, "stride", p.stride);
  check_positive(where, "summary", p.summary);
  if (p.summary > p.stride)
    fail<ConfigError>("{}: summary = {}, needs at most stride = {}", where, p.summary, p.stride);
}

}  // namespace

bool allows(const AttentionPattern& pattern, int64_t query, int64_t key) {
  return std::visit([&](const auto& p) { return allows_pair(p, query, key); }, pattern);
}

void check_pattern(std::string_view where, const AttentionPattern& pattern) {
  std::visit([&](const auto& p) { check_fields(where, p); }, pattern);
}

}  // namespace attune

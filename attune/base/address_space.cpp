#include "attune/base/address_space.h"

#include <sys/resource.h>

#include "attune/base/statm.h"

namespace attune {

std::optional<int64_t> address_space_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

std::optional<int64_t> address_space_in_use() {
  return statm_bytes(StatmField::address_space);
}

std::optional<int64_t> address_space_left() {
  const std::optional<int64_t> limit = address_space_limit();
  if (!limit) return std::nullopt;
  const std::optional<int64_t> used = address_space_in_use();
  if (!used) return std::nullopt;
  return *limit - *used;
}

}  // namespace attune

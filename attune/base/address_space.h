#pragma once

#include <cstdint>
#include <optional>

namespace attune {

/// Returns the limit of the process's address space in bytes (`ulimit -v`), or nothing if there is no limit.
std::optional<int64_t> address_space_limit();
/// Returns how many bytes of it the process uses, or nothing if the system does not say.
std::optional<int64_t> address_space_in_use();
/// Returns how many bytes are left, or nothing if there is no limit or the system does not say.
std::optional<int64_t> address_space_left();

}  // namespace attune

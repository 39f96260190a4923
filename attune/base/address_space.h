#pragma once

#include <cstdint>
#include <optional>

namespace attune {

/// The limit of the process's address space in bytes (`ulimit -v`); without a value there is none.
std::optional<int64_t> address_space_limit();
/// How much of it the process uses; without a value the system does not say.
std::optional<int64_t> address_space_in_use();
/// How much of it is left; without a value there is no limit, or the system does not say.
std::optional<int64_t> address_space_left();

}  // namespace attune

#pragma once

#include <cstdint>

namespace attune {

/// The most memory that this process has had at once, in bytes: pages of mapped files that it has read are counted.
int64_t peak_process_bytes();

}  // namespace attune

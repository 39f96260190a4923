#pragma once

#include <span>

#include "attune/inference/decoding_model.h"

namespace attune {

/// The logits of a row where the host can read them.
inline std::span<const float> host_logits(const LogitsRow& row) {
  const auto columns = static_cast<size_t>(row.logits->size(1));
  return row.logits->values<float>().subspan(static_cast<size_t>(row.row) * columns, static_cast<size_t>(row.size));
}

}  // namespace attune

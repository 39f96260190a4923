#include "attune/data/twice.h"

namespace attune {

std::vector<int32_t> offsets_twice(const std::vector<int32_t>& offsets) {
  std::vector<int32_t> both = offsets;
  for (size_t i = 1; i < offsets.size(); ++i) both.push_back(offsets.back() + offsets[i]);
  return both;
}

PackedBatch twice(const PackedBatch& batch) {
  return {.source = values_twice(batch.source),
          .source_offsets = offsets_twice(batch.source_offsets),
          .target_input = values_twice(batch.target_input),
          .target_offsets = offsets_twice(batch.target_offsets),
          .labels = values_twice(batch.labels)};
}

LabelledBatch twice(const LabelledBatch& batch) {
  return {.tokens = values_twice(batch.tokens),
          .offsets = offsets_twice(batch.offsets),
          .labels = values_twice(batch.labels),
          .types = values_twice(batch.types),
          .values = values_twice(batch.values)};
}

MaskedBatch twice(const MaskedBatch& batch) {
  MaskedBatch both{.tokens = values_twice(batch.tokens),
                   .offsets = offsets_twice(batch.offsets),
                   .rows = batch.rows,
                   .labels = values_twice(batch.labels)};
  for (const int32_t row : batch.rows) both.rows.push_back(row + static_cast<int32_t>(batch.tokens.size()));
  return both;
}

LanguageModelBatch twice(const LanguageModelBatch& batch) {
  return {.input = values_twice(batch.input),
          .offsets = offsets_twice(batch.offsets),
          .labels = values_twice(batch.labels)};
}

}  // namespace attune

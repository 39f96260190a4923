#pragma once
// The batches of R-Drop (Liang et al. 2021): each example goes through the model twice, with other dropout masks.

#include <cstdint>
#include <vector>

#include "attune/data/batch_sampler.h"
#include "attune/data/labelled_corpus.h"
#include "attune/data/masking.h"
#include "attune/data/window_sampler.h"

namespace attune {

/// The batch, and behind it all of its examples once more: of n rows, i and i + n / 2 are one place of the text.
PackedBatch twice(const PackedBatch& batch);
LabelledBatch twice(const LabelledBatch& batch);
MaskedBatch twice(const MaskedBatch& batch);
LanguageModelBatch twice(const LanguageModelBatch& batch);

/// The values, and behind them the same values.
template <class T>
std::vector<T> values_twice(const std::vector<T>& values) {
  std::vector<T> both = values;
  both.insert(both.end(), values.begin(), values.end());
  return both;
}

/// Offsets of lists that lie one behind another, from 0, and behind them those of the same lists.
std::vector<int32_t> offsets_twice(const std::vector<int32_t>& offsets);

}  // namespace attune

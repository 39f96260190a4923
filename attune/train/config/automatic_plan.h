#pragma once
// The size of a model and the length of its training, from the amount of text.

#include <cstdint>

#include "attune/train/config.h"
#include "attune/train/tasks/text_measures.h"

namespace attune {

/// What a run is made of, for an amount of text.
struct AutomaticPlan {
  TokenizerKind tokenizer = TokenizerKind::unigram;
  double text_tokens = 0;  // of a side, estimated
  int64_t d_model = 0, heads = 0, layers = 0, d_ff = 0, vocab = 0, context = 0;
  double dropout = 0, learning_rate = 0;
  int64_t batch_tokens = 0, steps = 0;
  double epochs = 0, seconds = 0;
};

/// The plan for all of the text or, where that takes too long, for the largest share of it that does not.
AutomaticPlan plan_for(const TextMeasures& text);

/// Whether the architecture is trained on pairs or labelled texts, not on running text.
bool has_examples(Architecture architecture);
/// Whether the text has the marks of subwords ("@@").
bool is_cut_into_subwords(const TextMeasures& text);
/// Returns the value rounded to two digits, as people write numbers; at most 1e15.
int64_t readable(double value);

}  // namespace attune

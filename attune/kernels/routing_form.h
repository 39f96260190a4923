#pragma once

#include <cstdint>

namespace [[gnu::visibility("default")]] attune {

/// What the scores of experts are: a softmax or sigmoids of the router's logits.
enum class ExpertScores { softmax, sigmoid };

/// What a group of experts is chosen by.
enum class GroupScore {
  maximum,     // its best expert: DeepSeek-AI 2024, "DeepSeek-V2", section 2.2.2
  sum_of_two,  // the sum of its two best: DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2
};

/// How the experts of a token follow from their scores.
struct RoutingForm {
  int64_t experts_per_token = 1;
  /// Experts are in groups of equal size, one after the other; those of the top_groups best groups can be chosen.
  int64_t groups = 1, top_groups = 1;
  GroupScore group_score = GroupScore::maximum;
  bool normalised = true;  // the weights of a token's experts are divided by their sum
  double scale = 1;        // and multiplied with this
};

}  // namespace attune

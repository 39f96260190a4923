#pragma once
// What the feed-forward sublayer of a layer can be.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "attune/base/fields.h"
#include "attune/kernels/routing_form.h"
#include "attune/nn/feed_forward.h"

namespace [[gnu::visibility("default")]] attune {

template <>
struct EnumNames<ExpertScores> {
  static constexpr std::pair<ExpertScores, const char*> values[] = {{ExpertScores::softmax, "softmax"},
                                                                    {ExpertScores::sigmoid, "sigmoid"}};
};
template <>
struct EnumNames<GroupScore> {
  static constexpr std::pair<GroupScore, const char*> values[] = {{GroupScore::maximum, "maximum"},
                                                                  {GroupScore::sum_of_two, "sum_of_two"}};
};

/// One network for all tokens, Vaswani et al. 2017, section 3.3.
struct Dense {
  bool operator==(const Dense&) const = default;
};

/// Several networks, the experts; each token goes through some of them: Shazeer et al. 2017; Fedus et al. 2021, "Switch
/// Transformers"; DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2. The defaults are those of Mixtral (Jiang et al.
/// 2024).
struct Experts {
  int64_t experts = 8;
  int64_t experts_per_token = 2;
  int64_t shared_experts = 0;                    // that work on every token
  int64_t d_ff = 0;                              // inner width of an expert; 0: that of the model
  std::vector<int64_t> dense_layers = {};        // of each stack, from 0: layers that have one network for all tokens
  ExpertScores scores = ExpertScores::softmax;   // of a token for each expert
  int64_t groups = 1, top_groups = 1;            // experts are chosen from the top_groups best of so many equal groups
  GroupScore group_score = GroupScore::maximum;  // what a group is chosen by
  bool choice_bias = false;                      // a number for each expert, added to its score for the choice alone
  bool normalised_weights = true;                // the weights of a token's experts are divided by their sum
  double weight_scale = 1;                       // and multiplied with this
  double balance_loss = 0.01;                    // coefficient of Fedus et al. 2021, equation 4, in training; 0: none
  double bias_rate = 0;  // each update moves choice_bias by this, DeepSeek-AI 2024, "DeepSeek-V3", section 2.1.2
  bool operator==(const Experts&) const = default;

  RoutingForm routing() const;
  bool is_dense(int64_t layer) const;
};

template <class FieldVisitor>
void visit_fields(Dense&, FieldVisitor&) {}

template <class FieldVisitor>
void visit_fields(Experts& c, FieldVisitor& v) {
  v("experts", c.experts);
  v("experts_per_token", c.experts_per_token);
  v("shared_experts", c.shared_experts);
  v("d_ff", c.d_ff);
  v("dense_layers", c.dense_layers);
  v("scores", c.scores);
  v("groups", c.groups);
  v("top_groups", c.top_groups);
  v("group_score", c.group_score);
  v("choice_bias", c.choice_bias);
  v("normalised_weights", c.normalised_weights);
  v("weight_scale", c.weight_scale);
  v("balance_loss", c.balance_loss);
  v("bias_rate", c.bias_rate);
}

using FeedForwardKind = std::variant<Dense, Experts>;

template <>
struct VariantNames<FeedForwardKind> {
  static constexpr const char* values[] = {"dense", "experts"};
};

// All of these take `network`, the model's own settings of feed-forward networks.

/// Throws ConfigError naming the field. `layers` is the number of layers of the longest stack.
void validate(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layers);
/// The sublayer of layer `layer` of a stack, from 0, and the numbers of its parameters: of all, and of those that one
/// token is multiplied with.
std::unique_ptr<FeedForwardNetwork> build(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layer);
int64_t parameter_count(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layer);
int64_t active_parameter_count(const FeedForwardKind& kind, const FeedForwardConfig& network, int64_t layer);
/// Whether there are experts, and layers that have one network instead.
bool has_dense_layers(const FeedForwardKind& kind);
/// For people: "8 experts of 2048, 2 for each token"; empty for one network.
std::string summary(const FeedForwardKind& kind, const FeedForwardConfig& network);

}  // namespace attune

// A random configuration of Attune has no equivalent on the hub, or it is written, read back and computes the same.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>

#include "tests/hub/exported_model.h"
#include "tests/hub/hub_model.h"
#include "tests/hub/model_outputs.h"
#include "tests/models/small_config.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

bool flag() {
  return *rc::gen::arbitrary<bool>();
}

// Once in `times`.
bool rarely(int times) {
  return *rc::gen::inRange(0, times) == 0;
}

AttentionKind any_attention(bool rotary) {
  if (rarely(4))
    return MultiHeadLatent{.latent_dim = 6,
                           .query_latent_dim = one_of<int64_t>({0, 5}),
                           .latent_norm = !rarely(5),
                           .bias = flag(),
                           .head_dim = one_of<int64_t>({0, 3}),
                           .value_dim = one_of<int64_t>({0, 5}),
                           .rotary_dim = rotary ? 4 : 0,
                           .scale = rarely(5) ? 0.7 : 0.0};
  return MultiHead{
      .kv_heads = one_of<int64_t>({0, 2}),
      .head_dim = one_of<int64_t>({0, 0, 6}),
      .bias = one_of({AttentionBias::none, AttentionBias::none, AttentionBias::all, AttentionBias::query_key_value}),
      .head_norm = rarely(5),
      .scale = rarely(6) ? 1.0 : 0.0,
      .pattern = one_of<AttentionPattern>({FullAttention{}, FullAttention{}, SlidingWindow{.size = 3}})};
}

FeedForwardKind any_feed_forward() {
  const Experts deepseek{.experts = 4,
                         .experts_per_token = 2,
                         .shared_experts = 1,
                         .d_ff = 6,
                         .dense_layers = {0},
                         .scores = ExpertScores::sigmoid,
                         .groups = 2,
                         .group_score = GroupScore::sum_of_two,
                         .choice_bias = flag(),
                         .weight_scale = 2.5};
  return one_of<FeedForwardKind>({Dense{}, Dense{}, Dense{}, Experts{.experts = 4}, deepseek});
}

// Choices that families have are more likely than others, so that some models have an equivalent.
TransformerConfig any_config() {
  TransformerConfig c = small_config(
      one_of({Architecture::decoder_lm, Architecture::decoder_lm, Architecture::encoder,
              Architecture::encoder_masked_lm, Architecture::encoder_classifier, Architecture::encoder_decoder}));
  const bool decoder = c.architecture == Architecture::decoder_lm;
  const bool modern = decoder && !rarely(3);
  c.positions = modern
                    ? PositionKind(RotaryOptions{.pairing = one_of({RotaryPairing::half, RotaryPairing::interleaved})})
                    : one_of<PositionKind>({LearnedPositions{.max_length = 16}, LearnedPositions{.max_length = 16},
                                            LearnedPositions{.max_length = 16},
                                            SinusoidalPositions{.order = SinusoidOrder::halves},
                                            RelativeBiasPositions{.buckets = 8}, AlibiPositions{}});
  c.attention = modern ? any_attention(true)
                       : AttentionKind(MultiHead{.bias = one_of({AttentionBias::all, AttentionBias::none})});
  c.encoder_attention = c.decoder_attention = c.cross_attention =
      MultiHead{.bias = one_of({AttentionBias::all, AttentionBias::none})};
  c.norm_form = modern && !rarely(5) ? NormForm::rms : NormForm::variance;
  c.norm = decoder ? NormPlacement::pre : rarely(4) ? NormPlacement::pre : NormPlacement::post;
  c.norm_bias = !rarely(5);
  c.activation = modern
                     ? one_of({FeedForwardActivation::swiglu, FeedForwardActivation::swiglu,
                               FeedForwardActivation::geglu, FeedForwardActivation::gelu_tanh})
                     : one_of({FeedForwardActivation::relu, FeedForwardActivation::gelu, FeedForwardActivation::silu});
  c.feed_forward_bias = modern ? rarely(5) : flag();
  c.feed_forward = modern ? any_feed_forward() : FeedForwardKind(Dense{});
  c.scale_embeddings = c.architecture == Architecture::encoder_decoder && flag();
  c.embedding_norm = !decoder && !rarely(4);
  c.token_types = c.architecture == Architecture::encoder_decoder || decoder ? 0 : one_of<int64_t>({0, 2});
  c.share_embeddings = c.share_projection = flag();
  if (rarely(4)) c.share_projection = flag();
  c.projection_bias = rarely(decoder ? 6 : 2);
  c.pooler = c.prediction_transform = c.transform_norm = flag();
  c.transform_activation = one_of({Activation::tanh, Activation::gelu});
  return c;
}

bool is_valid(const TransformerConfig& c) {
  try {
    c.validate();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

// The families that random models were written as, and how many models have no equivalent.
struct Outcomes {
  std::map<std::string, int> written;
  int refused = 0;
};

// Writes a random model, if it is valid and has an equivalent, and compares what is read back.
void check_a_random_model(Outcomes& outcomes) {
  const TransformerConfig c = any_config();
  if (!is_valid(c)) return;
  const std::unique_ptr<Module> model = model_to_export(c, 1 + static_cast<uint64_t>(*rc::gen::inRange(0, 100)));
  std::optional<HubForm> form;
  try {
    form = form_of(*model, c);
  } catch (const ConfigError& error) {
    ++outcomes.refused;
    RC_ASSERT(std::string(error.what()).find("has no equivalent on the hub; the nearest is") == 0);
    return;
  }
  ++outcomes.written[std::string(form->hub_class.name)];
  const TemporaryFolder folder(memory_folder());
  write_hub_model(folder.path(), *model, c, *form, {});
  const PackedTokens tokens = random_tokens({5, 1, 9}, 1);
  RC_ASSERT(relative_difference(model_outputs(*HubFolder(folder.path()).load(LoadedWeights::mapped), tokens),
                                model_outputs(*model, tokens)) < 1e-5);
}

TEST(ExportChoices, AModelHasNoEquivalentOrComputesTheSame) {
  Outcomes outcomes;
  EXPECT_TRUE(rc::check("exported models compute the same", [&] {
    for (int i = 0; i < 5; ++i) check_a_random_model(outcomes);  // few models are valid and have an equivalent
  }));
  EXPECT_GT(outcomes.refused, 0);
  EXPECT_GE(outcomes.written.size(), 4u) << "too few random models have an equivalent for the test to say something";
}

}  // namespace
}  // namespace attune

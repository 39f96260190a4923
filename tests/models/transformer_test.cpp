#include "attune/models/transformer.h"

#include <gtest/gtest.h>

#include "attune/autograd/graph.h"
#include "attune/nn/attention/multi_head_attention.h"
#include "attune/nn/attention/multi_head_latent_attention.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/largest_error.h"

namespace attune {
namespace {

TransformerConfig small_config() {
  TransformerConfig c;
  c.source_vocab = 11;
  c.target_vocab = 13;
  c.d_model = 8;
  c.heads = 2;
  c.layers = 2;
  c.d_ff = 12;
  c.dropout = c.attention_dropout = c.activation_dropout = 0;
  return c;
}

std::vector<TransformerConfig> variants() {
  std::vector<TransformerConfig> all;
  for (const AttentionKind& kind : {AttentionKind(MultiHead{}), AttentionKind(MultiHead{.bias = AttentionBias::none}),
                                    AttentionKind(MultiHeadLatent{.latent_dim = 3})}) {
    for (const NormPlacement norm : {NormPlacement::pre, NormPlacement::post}) {
      TransformerConfig c = small_config();
      c.encoder_attention = c.decoder_attention = c.cross_attention = kind;
      c.norm = norm;
      c.activation = norm == NormPlacement::pre ? FeedForwardActivation::gelu : FeedForwardActivation::relu;
      c.norm_form = std::holds_alternative<MultiHead>(kind) ? NormForm::variance : NormForm::unbiased_std;
      all.push_back(c);
    }
  }
  all.push_back(small_config());
  all.back().cross_attention = MultiHeadLatent{.latent_dim = 4};  // a choice for each place
  all.push_back(small_config());
  all.back().target_vocab = all.back().source_vocab;
  all.back().share_embeddings = all.back().share_projection = true;
  return all;
}

PackedTokens tokens(const std::vector<std::vector<int32_t>>& sentences) {
  std::vector<int32_t> ids, offsets = {0};
  for (const auto& s : sentences) {
    ids.insert(ids.end(), s.begin(), s.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
  }
  return pack_tokens(ids, offsets);
}

const PackedTokens kSource = tokens({{4, 5, 6, 3}, {7, 3}, {8, 9, 3}});
const PackedTokens kTarget = tokens({{2, 5, 6}, {2, 7, 8, 4}, {2}});

TEST(Transformer, ParametersOfTheLiterature) {
  MultiHeadAttention attention({.d_model = 512, .heads = 8});
  EXPECT_EQ(parameter_count(attention), 1'050'624);  // 4 (512^2 + 512)
  MultiHeadLatentAttention latent({.d_model = 512, .heads = 8, .latent_dim = 128});
  EXPECT_EQ(parameter_count(latent), 2 * 512 * 512 + 3 * 512 * 128);

  TransformerConfig c;  // the base model of the paper, with a shared vocabulary of 37,000
  c.source_vocab = c.target_vocab = 37000;
  c.share_embeddings = c.share_projection = true;
  c.norm = NormPlacement::post;
  const int64_t d = 512, ff = 2048, norm = 2 * d;
  const int64_t feed_forward = d * ff + ff + ff * d + d, block = 4 * (d * d + d);
  const int64_t encoder_layer = block + feed_forward + 2 * norm, decoder_layer = 2 * block + feed_forward + 3 * norm;
  EXPECT_EQ(encoder_layer, 3'152'384);
  EXPECT_EQ(decoder_layer, 4'204'032);
  EXPECT_EQ(count_parameters(c).total(),
            6 * (encoder_layer + decoder_layer) + 37000 * d + 37000);  // 63 million: table 3, row "base"
}

TEST(Transformer, CountOfTheConfigurationIsThatOfTheModel) {
  for (const TransformerConfig& c : variants())
    EXPECT_EQ(count_parameters(c).total(), parameter_count(*build_transformer(c)));
}

TEST(Transformer, GradientMatchesFiniteDifferences) {
  for (const TransformerConfig& c : variants()) {
    const auto model = build_transformer(c, 3);
    convert_parameters(*model, DType::f64);
    const Indices labels = {5, 6, 3, 7, 8, 4, 3, 3};
    // The model's own parameters are the inputs: it reads them through the memory that they share.
    require_gradients(*model);
    backward(model->loss(kSource, kTarget, labels, {.label_smoothing = 0.1}).loss);
    const NoGrad no_grad;
    LargestError error;
    for (const NamedParameter& p : named_parameters(*model)) {
      ASSERT_TRUE(gradient(*p.tensor).defined()) << p.name;
      for (int64_t i = 0; i < p.tensor->numel(); i += 7) {  // every seventh number of every parameter
        double& value = p.tensor->data<double>()[i];
        const double kept = value, h = 1e-5;
        value = kept + h;
        const double up = model->loss(kSource, kTarget, labels, {.label_smoothing = 0.1}).loss.item();
        value = kept - h;
        const double down = model->loss(kSource, kTarget, labels, {.label_smoothing = 0.1}).loss.item();
        value = kept;
        error.add(gradient(*p.tensor).data<double>()[i], (up - down) / (2 * h));
      }
    }
    EXPECT_LT(error.relative(), 1e-6);
  }
}

TEST(Transformer, CachedStepsEqualDecodingWithoutACache) {
  const NoGrad no_grad;
  for (const TransformerConfig& c : variants()) {
    const auto model = build_transformer(c, 5);
    const Tensor memory = model->encode(kSource);
    KvCache cache = model->start(memory, kSource.sequences);
    std::vector<std::vector<int32_t>> prefix(3);
    for (int32_t step = 0; step < 6; ++step) {
      std::vector<int32_t> next;
      for (int32_t r = 0; r < 3; ++r) {
        next.push_back(step == 0 ? 2 : 4 + (step * 3 + r) % 7);
        prefix[static_cast<size_t>(r)].push_back(next.back());
      }
      const Tensor logits = model->step(next, cache);
      const PackedTokens target = tokens(prefix);
      const Tensor all = model->project(model->decode(memory, kSource.sequences, target));
      for (int64_t r = 0; r < 3; ++r) {
        const int64_t last = target.sequences.begin(r) + target.sequences.length(r) - 1;
        EXPECT_LT(relative_error(logits.rows(r, r + 1), all.rows(last, last + 1)), 1e-5);
      }
    }
  }
}

TEST(Transformer, LatentCachesHoldTheLatentAlone) {
  TransformerConfig c = small_config();
  const int64_t source = kSource.sequences.total(), rows = kSource.sequences.count();
  auto cache_bytes = [&] {
    const NoGrad no_grad;
    const auto model = build_transformer(c);
    KvCache cache = model->start(model->encode(kSource), kSource.sequences);
    model->step(std::vector<int32_t>{2, 2, 2}, cache);
    return cache.bytes();
  };
  EXPECT_EQ(cache_bytes(), c.layers * 2 * c.d_model * 4 * (source + rows));
  c.decoder_attention = c.cross_attention = MultiHeadLatent{.latent_dim = 3};
  EXPECT_EQ(cache_bytes(), c.layers * 3 * 4 * (source + rows));
}

TEST(Transformer, PaddedAndPackedBatchesAgree) {
  const NoGrad no_grad;
  const auto model = build_transformer(small_config(), 2);
  const Tensor src = Tensor::from({3, 4}, std::vector<int32_t>{4, 5, 6, 3, 7, 3, 0, 0, 8, 9, 3, 0});
  const Mask mask = padding_mask(src, 0);
  const Tensor padded = model->encode(src, mask), packed = model->encode(kSource);
  EXPECT_LT(relative_error(padded.reshape({12, 8}).rows(0, 4), packed.rows(0, 4)), 1e-6);
  EXPECT_LT(relative_error(padded.reshape({12, 8}).rows(4, 6), packed.rows(4, 6)), 1e-6);
  EXPECT_LT(relative_error(padded.reshape({12, 8}).rows(8, 11), packed.rows(6, 9)), 1e-6);
  for (const float v : padded.reshape({12, 8}).rows(6, 8).values<float>()) EXPECT_EQ(v, 0.0f);
}

TEST(Transformer, TheSameSeedGivesTheSameModelAndDropout) {
  TransformerConfig c = small_config();
  c.dropout = c.attention_dropout = c.activation_dropout = 0.5;
  auto run = [&](uint64_t seed, uint64_t step) {
    const auto model = build_transformer(c, seed);
    const DropoutScope dropout({.seed = 9, .step = step});
    return model->encode(kSource);
  };
  EXPECT_TRUE(same_bits(run(1, 1), run(1, 1)));
  EXPECT_FALSE(same_bits(run(1, 1), run(1, 2)));
  EXPECT_FALSE(same_bits(run(1, 1), run(2, 1)));
  const auto model = build_transformer(c, 1);
  EXPECT_TRUE(same_bits(model->encode(kSource), model->encode(kSource)));
}

TEST(Transformer, ConfigurationsThatCannotBe) {
  auto message = [](auto change) {
    TransformerConfig c = small_config();
    change(c);
    return message_of<ConfigError>([&] { build_transformer(c); });
  };
  EXPECT_EQ(message([](auto& c) { c.heads = 3; }), "d_model = 8 is not divisible by heads = 3");
  EXPECT_EQ(message([](auto& c) { c.dropout = 1; }), "dropout = 1: needs a number from 0 to below 1");
  EXPECT_EQ(message([](auto& c) { c.layers = 0; }), "layers = 0: needs a number from 1 to 1024");
  EXPECT_EQ(message([](auto& c) { c.share_embeddings = true; }),
            "share_embeddings = true needs one vocabulary, but source_vocab = 11 and target_vocab = 13");
}

TEST(Transformer, TokensOutsideTheVocabulary) {
  const auto model = build_transformer(small_config());
  EXPECT_THROW(model->encode(tokens({{4, 11}})), DataError);
  EXPECT_THROW(model->encode(tokens({{-1}})), DataError);
}

}  // namespace
}  // namespace attune

// Walks the product of what a configuration may choose, at a size where each model takes milliseconds: a combination
// works (its gradient is right, cached decoding equals uncached, it is written and read back) or is refused with the
// names of the two fields that cannot be together.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "attune/autograd/graph.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "attune/io/config_file.h"
#include "attune/io/parameter_file.h"
#include "attune/models/build.h"
#include "attune/ops/linear/precision.h"
#include "tests/models/every_choice.h"
#include "tests/models/small_config.h"
#include "tests/support/directional_error.h"
#include "tests/support/errors.h"
#include "tests/support/gradient_check.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<PositionKind> kPositions = {
    SinusoidalPositions{.order = SinusoidOrder::halves, .full_range = true, .first = 2},
    LearnedPositions{.max_length = 16},
    RelativePositions{.clip = 2},
    RelativeBiasPositions{.buckets = 8, .max_distance = 6},
    RotaryOptions{},
    RotaryOptions{.pairing = RotaryPairing::interleaved, .dimensions = 2},
    RotaryOptions{.scaling = RotaryScaling::yarn, .factor = 4, .original_length = 8},
    AlibiPositions{},
    NoPositions{}};

const std::vector<AttentionKind> kAttention = {
    MultiHead{},
    MultiHead{.bias = AttentionBias::none},
    MultiHead{.kv_heads = 2, .bias = AttentionBias::query_key_value},
    MultiHead{.kv_heads = 1, .bias = AttentionBias::output, .scale = 1, .scale_by_layer = true},
    MultiHead{.kv_heads = 2, .head_dim = 6, .bias = AttentionBias::none, .head_norm = true, .soft_cap = 0.8},
    MultiHeadLatent{},
    MultiHeadLatent{.latent_dim = 6, .query_latent_dim = 5, .latent_norm = true},
    MultiHeadLatent{.rotary_dim = 2},
    MultiHeadLatent{.latent_dim = 6,
                    .query_latent_dim = 5,
                    .latent_norm = true,
                    .bias = true,
                    .head_dim = 3,
                    .value_dim = 5,
                    .rotary_dim = 4,
                    .scale = 0.7}};

const std::vector<AttentionPattern> kPatterns = {FullAttention{}, SlidingWindow{.size = 3},
                                                 StridedAttention{.stride = 2},
                                                 FixedAttention{.stride = 3, .summary = 1}};

const std::vector<NormForm> kNormForms = {NormForm::variance, NormForm::unbiased_std, NormForm::rms};
const std::vector<FeedForwardActivation> kActivations = {
    FeedForwardActivation::relu,         FeedForwardActivation::gelu,  FeedForwardActivation::gelu_tanh,
    FeedForwardActivation::gelu_sigmoid, FeedForwardActivation::silu,  FeedForwardActivation::tanh,
    FeedForwardActivation::swiglu,       FeedForwardActivation::geglu, FeedForwardActivation::geglu_tanh,
    FeedForwardActivation::reglu};

const std::vector<FeedForwardKind> kFeedForwards = {
    Dense{}, Experts{},
    Experts{.experts = 4, .experts_per_token = 1, .shared_experts = 1, .d_ff = 5, .dense_layers = {0}},
    Experts{.experts = 6,
            .experts_per_token = 3,
            .d_ff = 7,
            .scores = ExpertScores::sigmoid,
            .groups = 3,
            .top_groups = 2,
            .group_score = GroupScore::sum_of_two,
            .choice_bias = true,
            .weight_scale = 2.5,
            .balance_loss = 0,
            .bias_rate = 0.001},
    Experts{.experts = 6, .groups = 2, .normalised_weights = false}};

TEST(Choices, EveryKindIsTried) {
  expect_every_alternative(kPositions);
  expect_every_alternative(kAttention);
  expect_every_alternative(kPatterns);
  expect_every_alternative(kFeedForwards);
  expect_every_value(kNormForms);
  expect_every_value(kActivations);
}

void set_pattern(AttentionKind& kind, const AttentionPattern& pattern) {
  std::visit([&](auto& attention) { attention.pattern = pattern; }, kind);
}

// Norms are 1 and biases 0 at first, which hides mistakes.
void shake(Module& model, uint64_t seed) {
  uint64_t stream = 100;
  for (const NamedParameter& p : named_parameters(model)) {
    Random random(seed, stream++);
    for (double& value : p.tensor->values<double>()) value += 0.2 * random.normal();
  }
}

void check_cached(const DecoderLm& model, double tolerance) {
  const PackedTokens tokens = random_tokens({9, 9}, 8);
  const auto ids = tokens.ids.values();
  const NoGrad no_grad;
  const Tensor expected = model.project(model.decode(tokens));
  // The first four tokens as a prompt, or step by step; the rest step by step.
  for (const bool with_prompt : {true, false}) {
    KvCache cache = model.start(2);
    for (int64_t t = 0; t < 9; ++t) {
      Tensor logits;
      if (with_prompt && t < 3) continue;
      if (with_prompt && t == 3) {
        const std::vector<int32_t> prompts = {ids[0], ids[1], ids[2], ids[3], ids[9], ids[10], ids[11], ids[12]};
        logits = model.prompt(pack_tokens(prompts, {0, 4, 8}), cache);
      } else {
        const std::vector<int32_t> next = {ids[static_cast<size_t>(t)], ids[static_cast<size_t>(9 + t)]};
        logits = model.step(next, cache);
      }
      for (int64_t r = 0; r < 2; ++r)
        ASSERT_LT(relative_error(logits.rows(r, r + 1), expected.rows(9 * r + t, 9 * r + t + 1)), tolerance)
            << "row " << r << " place " << t << (with_prompt ? " after a prompt" : "");
    }
  }
}

void check_cached(const Transformer& model, double tolerance) {
  const PackedTokens source = random_tokens({5, 3}, 9), target = random_tokens({6, 6}, 10);
  const auto ids = target.ids.values();
  const NoGrad no_grad;
  const Tensor memory = model.encode(source);
  const Tensor expected = model.project(model.decode(memory, source.sequences, target));
  KvCache cache = model.start(memory, source.sequences);
  for (int64_t t = 0; t < 6; ++t) {
    const std::vector<int32_t> next = {ids[static_cast<size_t>(t)], ids[static_cast<size_t>(6 + t)]};
    const Tensor logits = model.step(next, cache);
    for (int64_t r = 0; r < 2; ++r)
      ASSERT_LT(relative_error(logits.rows(r, r + 1), expected.rows(6 * r + t, 6 * r + t + 1)), tolerance)
          << "row " << r << " place " << t;
  }
}

void check_folder(Module& model, const TransformerConfig& config) {
  const TemporaryFolder folder(memory_folder());
  write_model_config(folder.path(), config);
  save_parameters(folder / kParameterFile, model);
  const TransformerConfig read = read_model_config(folder.path());
  ASSERT_EQ(write_fields(read), write_fields(config));
  check_parameter_file(folder.path(), read);
  const auto other = build_model(read, 99);
  convert_parameters(*other, DType::f64);
  load_parameters(folder / kParameterFile, *other);
  const NoGrad no_grad;
  ASSERT_EQ(loss_of(*other, config.architecture).item(), loss_of(model, config.architecture).item());
}

void check_cached(const Module& model, double tolerance) {
  if (const auto* lm = dynamic_cast<const DecoderLm*>(&model)) check_cached(*lm, tolerance);
  if (const auto* transformer = dynamic_cast<const Transformer*>(&model)) check_cached(*transformer, tolerance);
}

// Products in bfloat16 give what those in float32 give, but for rounding.
void check_bfloat16(const TransformerConfig& config) {
  const auto model = build_model(config);
  require_gradients(*model);
  const double expected = loss_of(*model, config.architecture).item();
  const ProductPrecisionScope bfloat16(ProductPrecision::bfloat16);
  const Tensor loss = loss_of(*model, config.architecture);
  EXPECT_NEAR(loss.item(), expected, 0.05 * expected);
  backward(loss);
  for (const NamedParameter& p : trained_parameters(*model)) {
    const Tensor g = gradient(*p.tensor);
    EXPECT_TRUE(!g.defined() || first_not_finite(g) < 0) << p.name;
  }
  check_cached(*model, 0.3);  // vectors of a few numbers
}

void check_works(const TransformerConfig& config, bool also_bfloat16 = true) {
  const ThreadScope one_thread(1);  // there is nothing to share out
  const auto model = build_model(config);
  ASSERT_EQ(parameter_count(*model), count_parameters(config).total());
  convert_parameters(*model, DType::f64);
  shake(*model, 5);
  const auto loss = [&] { return loss_of(*model, config.architecture); };
  double error = directional_error(*model, loss);
  if (error > 1e-6) {  // among thousands of models with ReLU one lies on a corner: it moves away
    shake(*model, 6);
    error = directional_error(*model, loss);
  }
  EXPECT_LT(error, 1e-6);
  check_cached(*model, 1e-10);
  if (also_bfloat16) check_bfloat16(config);
}

// What may not be together, and a field that the error has to name.
const char* refused(const AttentionKind& attention, const PositionKind& positions) {
  if (const auto* multi_head = std::get_if<MultiHead>(&attention)) {
    const bool adds =
        std::holds_alternative<AlibiPositions>(positions) || std::holds_alternative<RelativeBiasPositions>(positions);
    return multi_head->soft_cap > 0 && adds ? "soft_cap" : nullptr;
  }
  const auto* latent = std::get_if<MultiHeadLatent>(&attention);
  const bool rotary = std::holds_alternative<RotaryOptions>(positions);
  if (rotary != (latent->rotary_dim > 0)) return "rotary_dim";
  return std::holds_alternative<RelativePositions>(positions) ? "relative" : nullptr;
}

// f(config, name) for positions x attention x pattern; `set` says where the attention goes.
void walk_attention(Architecture architecture, const std::function<void(TransformerConfig&, const AttentionKind&)>& set,
                    const std::function<void(const TransformerConfig&, const char* refused_for)>& f) {
  for (const PositionKind& positions : kPositions)
    for (AttentionKind attention : kAttention)
      for (const AttentionPattern& pattern : kPatterns) {
        set_pattern(attention, pattern);
        TransformerConfig c = small_config(architecture);
        c.positions = positions;
        set(c, attention);
        SCOPED_TRACE(write_fields(c).dump());
        f(c, refused(attention, positions));
        if (testing::Test::HasFatalFailure()) return;
      }
}

void check_or_refused(const TransformerConfig& c, const char* refused_for) {
  // Of the thousands of language models those with one activation and one form of norms stand for all.
  const bool also_bfloat16 = c.activation == kActivations.front() && c.norm_form == kNormForms.front();
  if (refused_for == nullptr) return check_works(c, also_bfloat16);
  const std::string message = message_of<ConfigError>([&] { build_model(c); });
  EXPECT_NE(message.find(refused_for), std::string::npos) << message;
  EXPECT_NE(message.find("attention"), std::string::npos) << message;
}

// The whole product, for the architecture whose models are the smallest.
TEST(Choices, EverythingOfLanguageModels) {
  for (const NormPlacement norm : {NormPlacement::pre, NormPlacement::post})
    for (const NormForm form : kNormForms)
      for (const FeedForwardActivation activation : kActivations) {
        walk_attention(
            Architecture::decoder_lm,
            [&](auto& c, const auto& attention) {
              c.attention = attention;
              c.norm = norm;
              c.norm_form = form;
              c.activation = activation;
            },
            check_or_refused);
        if (HasFatalFailure()) return;
      }
}

TEST(Choices, PositionsAttentionAndPatternsOfClassifiers) {
  walk_attention(
      Architecture::encoder_classifier, [](auto& c, const auto& attention) { c.attention = attention; },
      check_or_refused);
}

TEST(Choices, PositionsAttentionAndPatternsOfEncoderDecoders) {
  walk_attention(
      Architecture::encoder_decoder,
      [](auto& c, const AttentionKind& attention) {
        c.encoder_attention = c.decoder_attention = attention;
        c.cross_attention = attention;
        set_pattern(c.cross_attention, FullAttention{});
        if (auto* latent = std::get_if<MultiHeadLatent>(&c.cross_attention)) latent->rotary_dim = 0;
      },
      check_or_refused);
}

TEST(Choices, NormsActivationsAndBiases) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_decoder,
                                          Architecture::encoder_classifier, Architecture::encoder_masked_lm})
    for (const NormPlacement norm : {NormPlacement::pre, NormPlacement::post, NormPlacement::sandwich})
      for (const NormForm form : kNormForms)
        for (const FeedForwardActivation activation : kActivations)
          for (const bool plain : {true, false}) {
            TransformerConfig c = small_config(architecture);
            c.norm = norm;
            c.norm_form = form;
            c.activation = activation;
            c.feed_forward_bias = c.scale_embeddings = c.final_norm = plain;
            c.embedding_norm = !plain;
            c.norm_bias = plain;
            c.pooler = !plain;
            if (architecture != Architecture::encoder_decoder) {
              c.first_norm = plain || norm == NormPlacement::post;
              c.parallel_residual = !plain && norm != NormPlacement::post;
            }
            if (architecture != Architecture::encoder_classifier) c.logit_soft_cap = plain ? 0 : 0.7;
            if (architecture == Architecture::encoder_classifier || architecture == Architecture::encoder_masked_lm) {
              c.token_types = plain ? 0 : 2;
              c.embedding_dim = plain ? 0 : 6;
              c.transform_activation = plain ? Activation::tanh : Activation::gelu;
              c.transform_bias = plain;
              c.transform_norm = !plain;
            }
            if (architecture == Architecture::decoder_lm) c.embedding_dim = plain ? 0 : 6;
            c.prediction_transform = architecture == Architecture::encoder_masked_lm && !plain;
            if (architecture != Architecture::encoder_classifier) c.logit_scale = plain ? 1 : 0.5;
            if (architecture == Architecture::encoder_decoder && !plain) {
              c.decoder_heads = 2;
              c.decoder_layers = 3;
              c.decoder_d_ff = 7;
            }
            c.pooling = plain ? Pooling::mean : Pooling::first;
            if (architecture != Architecture::encoder_classifier) c.projection_bias = plain;
            if (!plain) c.positions = LearnedPositions{};
            SCOPED_TRACE(write_fields(c).dump());
            check_works(c);
            if (HasFatalFailure()) return;
          }
}

TEST(Choices, FeedForwardNetworks) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_decoder,
                                          Architecture::encoder_classifier, Architecture::encoder_masked_lm})
    for (const FeedForwardKind& kind : kFeedForwards)
      for (const FeedForwardActivation activation : {FeedForwardActivation::gelu, FeedForwardActivation::swiglu})
        for (const bool plain : {true, false}) {
          TransformerConfig c = small_config(architecture);
          c.feed_forward = kind;
          c.activation = activation;
          c.feed_forward_bias = plain;
          c.norm = plain ? NormPlacement::pre : NormPlacement::post;
          if (architecture == Architecture::encoder_decoder && !plain) c.decoder_layers = 3;
          SCOPED_TRACE(write_fields(c).dump());
          check_works(c);
          const auto model = build_model(c);
          convert_parameters(*model, DType::f64);
          check_folder(*model, c);
          if (HasFatalFailure()) return;
        }
}

TEST(Choices, LayersWithLocalAttention) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_classifier})
    for (const PositionKind& global : {PositionKind(RotaryOptions{}), PositionKind(RelativePositions{}),
                                       PositionKind(RelativeBiasPositions{.buckets = 8})})
      for (const PositionKind& local : {PositionKind(RotaryOptions{.base = 100}), PositionKind(NoPositions{})}) {
        TransformerConfig c = small_config(architecture);
        c.layers = 3;
        c.positions = global;
        c.layer_attention = {LayerAttention::local, LayerAttention::global, LayerAttention::local};
        c.local_window = 3;
        c.local_positions = local;
        SCOPED_TRACE(write_fields(c).dump());
        check_works(c);
        const auto model = build_model(c);
        convert_parameters(*model, DType::f64);
        check_folder(*model, c);
        if (HasFatalFailure()) return;
      }
}

// The table of all layers is for those that are not local.
TEST(Choices, LocalLayersHaveNoRelativeBias) {
  TransformerConfig c = small_config(Architecture::decoder_lm);
  c.layers = 1;
  c.positions = RelativeBiasPositions{.buckets = 8};
  c.layer_attention = {LayerAttention::local};
  c.local_window = 3;
  c.local_positions = NoPositions{};
  const auto model = build_model(c);
  const double before = loss_of(*model, c.architecture).item();
  for (const NamedParameter& p : named_parameters(*model))
    if (p.name.find("relative_bias") != std::string::npos)
      for (float& x : p.tensor->values<float>()) x += 1 + 3 * x;
  EXPECT_EQ(loss_of(*model, c.architecture).item(), before);
}

TEST(Choices, Sharing) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_decoder})
    for (const bool layers : {true, false})
      for (const bool projection : {true, false})
        for (const bool embeddings : {true, false})
          for (const AttentionKind& attention : kAttention) {
            TransformerConfig c = small_config(architecture);
            c.share_layers = layers;
            c.share_projection = projection;
            if (architecture == Architecture::encoder_decoder) c.share_embeddings = embeddings;
            if (refused(attention, c.positions) != nullptr) continue;
            const auto* multi_head = std::get_if<MultiHead>(&attention);
            if (layers && multi_head && multi_head->scale_by_layer) continue;  // refused
            c.attention = c.encoder_attention = c.decoder_attention = c.cross_attention = attention;
            if (architecture == Architecture::encoder_decoder) c.attention = MultiHead{};
            SCOPED_TRACE(write_fields(c).dump());
            check_works(c);
            if (HasFatalFailure()) return;
          }
}

// Models with 6 layers, of which this many groups repeat a block of so many.
TEST(Choices, GroupsOfLayersThatShareParameters) {
  for (const Architecture architecture :
       {Architecture::decoder_lm, Architecture::encoder_decoder, Architecture::encoder_classifier})
    for (const auto& [groups, block] : {std::pair(2, 1), std::pair(1, 2), std::pair(3, 2), std::pair(6, 1)}) {
      TransformerConfig c = small_config(architecture);
      c.layers = 6;
      c.share_layers = true;
      c.layer_groups = groups;
      c.layer_block = block;
      SCOPED_TRACE(write_fields(c).dump());
      check_works(c);
      const auto model = build_model(c);
      convert_parameters(*model, DType::f64);
      check_folder(*model, c);
      // The same as layers of their own with these parameters.
      TransformerConfig alone = c;
      alone.share_layers = false;
      alone.layer_groups = alone.layer_block = 1;
      const auto copy = build_model(alone, 2);
      convert_parameters(*copy, DType::f64);
      std::map<std::string, Tensor> values;
      for (const NamedParameter& p : named_parameters(*model)) values[p.name] = *p.tensor;
      for (const NamedParameter& p : named_parameters(*copy)) {
        std::string name = p.name;
        if (const size_t at = name.find("layers."); at != std::string::npos) {
          const size_t digit = at + std::string("layers.").size();
          name[digit] = static_cast<char>('0' + (name[digit] - '0') / (6 / groups) * (6 / groups) +
                                          (name[digit] - '0') % (6 / groups) % block);
        }
        p.tensor->copy_from(values.at(name));
      }
      EXPECT_EQ(loss_of(*copy, architecture).item(), loss_of(*model, architecture).item());
      if (HasFatalFailure()) return;
    }
}

TEST(Choices, EmbeddingsAsWideAsTheModelAreProjectedWhereTheyHaveAWidth) {
  for (const Architecture architecture : {Architecture::decoder_lm, Architecture::encoder_classifier}) {
    TransformerConfig c = small_config(architecture);
    const int64_t without = count_parameters(c).total();
    c.embedding_dim = c.d_model;
    EXPECT_GT(count_parameters(c).total(), without);
    check_works(c);
  }
}

TEST(Choices, EachIsWrittenAndReadBack) {
  const auto check = [](TransformerConfig c) {
    // A field that the architecture does not have is not written.
    TransformerConfig written;
    read_fields(write_fields(c), written, "config");
    const auto model = build_model(written);
    convert_parameters(*model, DType::f64);
    check_folder(*model, written);
  };
  for (const PositionKind& positions : kPositions)
    for (const AttentionKind& attention : kAttention) {
      if (refused(attention, positions) != nullptr) continue;
      TransformerConfig c = small_config(Architecture::decoder_lm);
      c.positions = positions;
      c.attention = attention;
      check(c);
    }
  for (const AttentionPattern& pattern : kPatterns)
    for (const NormForm form : kNormForms)
      for (const FeedForwardActivation activation : kActivations) {
        TransformerConfig c = small_config(Architecture::encoder_classifier);
        set_pattern(c.attention, pattern);
        c.norm_form = form;
        c.activation = activation;
        check(c);
      }
}

}  // namespace
}  // namespace attune

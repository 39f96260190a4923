// attune draw block: what a model's layers consist of.

#include <fmt/format.h>
#include <cctype>
#include <limits>

#include "attune/base/fail.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/stacks.h"
#include "attune/cli/model_description.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/pattern_options.h"
#include "attune/hub/open_folder.h"
#include "attune/models/presets.h"
#include "attune/models/settings.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

constexpr const char* kAttention = "#fbdcb8";  // as in the figure of the paper
constexpr const char* kFeedForward = "#c5e4f3";
constexpr const char* kNorm = "#f2f3c1";
constexpr const char* kEmbedding = "#fbdfe2";
constexpr const char* kProjection = "#dcdff0";
constexpr const char* kSoftmax = "#cde7d2";

using Kind = StackPart::Kind;

struct BlockCommand {
  std::string what, preset;
  std::vector<std::string> set;
};

/// A configuration and what it is called.
struct Described {
  std::string name;
  TransformerConfig config;
};

StackPart norm_of(const TransformerConfig& c) {
  StackPart norm{.kind = Kind::box, .name = "LayerNorm", .fill = kNorm};
  switch (c.norm_form) {
    case NormForm::variance:
      break;
    case NormForm::unbiased_std:
      norm.detail = "with the unbiased standard deviation";
      break;
    case NormForm::rms:
      norm.name = "RMSNorm";
      break;
  }
  return norm;
}

std::string heads_text(const TransformerConfig& c, const AttentionKind& kind) {
  const std::string detail = std::visit([&](const auto& k) { return k.detail(c.d_model, c.heads); }, kind);
  return fmt::format("{} heads of {}{}{}", c.heads, c.head_dim(), detail.empty() ? "" : ", ", detail);
}

StackPart self_attention(const TransformerConfig& c, const AttentionKind& kind, bool causal) {
  const AttentionPattern& pattern = pattern_of(kind);
  std::string detail = heads_text(c, kind) + attention_detail(c.positions);
  if (!std::holds_alternative<FullAttention>(pattern)) detail += ", " + pattern_text(pattern);
  if (const std::string local = local_attention_text(c); !local.empty()) detail += "; local in " + local;
  std::string name = std::visit([](const auto& k) { return std::string(k.kTitle); }, kind) + " attention";
  if (causal) name = "masked " + name;
  name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
  return {.kind = Kind::box, .name = name, .detail = detail, .fill = kAttention};
}

StackPart cross_attention(const TransformerConfig& c) {
  return {.kind = Kind::box,
          .name = std::visit([](const auto& k) { return k.kCrossTitle; }, c.cross_attention),
          .detail = heads_text(c, c.cross_attention),
          .fill = kAttention,
          .reads_neighbour = true};
}

const char* title_of(FeedForwardActivation activation) {
  switch (activation) {
    case FeedForwardActivation::relu:
      return "ReLU";
    case FeedForwardActivation::gelu:
      return "GELU";
    case FeedForwardActivation::gelu_tanh:
      return "GELU (tanh)";
    case FeedForwardActivation::gelu_sigmoid:
      return "GELU (sigmoid)";
    case FeedForwardActivation::silu:
      return "SiLU";
    case FeedForwardActivation::tanh:
      return "tanh";
    case FeedForwardActivation::swiglu:
      return "SwiGLU";
    case FeedForwardActivation::geglu:
      return "GEGLU";
    case FeedForwardActivation::geglu_tanh:
      return "GEGLU (tanh)";
    case FeedForwardActivation::reglu:
      return "ReGLU";
  }
  return "";
}

StackPart feed_forward(const TransformerConfig& c) {
  std::string detail = summary(c.feed_forward, feed_forward_config(c));
  if (detail.empty()) detail = fmt::format("{} to {} to {}", c.d_model, c.d_ff, c.d_model);
  return {.kind = Kind::box,
          .name = std::holds_alternative<Experts>(c.feed_forward) ? "Mixture of experts" : "Feed-forward",
          .detail = fmt::format("{}, {}{}", title_of(c.activation), detail, c.feed_forward_bias ? "" : ", no biases"),
          .fill = kFeedForward};
}

void add_sublayer(Stack& stack, const TransformerConfig& c, const StackPart& sublayer) {
  stack.push_back({.kind = Kind::branch});
  if (c.norm != NormPlacement::post) stack.push_back(norm_of(c));
  stack.push_back(sublayer);
  if (c.norm == NormPlacement::sandwich) stack.push_back(norm_of(c));
  stack.push_back({.kind = Kind::add});
  if (c.norm == NormPlacement::post) stack.push_back(norm_of(c));
}

void add_embedding(Stack& stack, const TransformerConfig& c, int64_t vocab, const char* input) {
  const int64_t width = c.embedding_width();
  std::string detail = fmt::format("{} to {}", vocab > 0 ? std::to_string(vocab) : "vocabulary", width);
  if (c.scale_embeddings) detail += fmt::format(", times sqrt({})", width);
  if (width != c.d_model) detail += fmt::format(", projected to {}", c.d_model);
  stack.push_back({.kind = Kind::text, .name = input});
  stack.push_back({.kind = Kind::box, .name = "Embedding", .detail = detail, .fill = kEmbedding});
  if (is_added(c.positions)) {
    const int64_t longest = c.longest_sequence();
    stack.push_back({.kind = Kind::box,
                     .name = fmt::format("+ {} positions", variant_name(c.positions)),
                     .detail = longest < std::numeric_limits<int64_t>::max() ? fmt::format("{} of them", longest) : "",
                     .fill = "#ffffff"});
  }
  if (c.embedding_norm) stack.push_back(norm_of(c));
}

void begin_layers(Stack& stack, const TransformerConfig& c) {
  const std::string shared = !c.share_layers            ? ""
                             : c.distinct_layers() == 1 ? " (one)"
                                                        : fmt::format(" ({} differ)", c.distinct_layers());
  stack.push_back({.kind = Kind::frame_begin, .name = fmt::format("{} ×{}", c.layers, shared)});
}

void end_layers(Stack& stack, const TransformerConfig& c) {
  stack.push_back({.kind = Kind::frame_end});
  if (c.norm != NormPlacement::post && c.final_norm) stack.push_back(norm_of(c));
}

void add_prediction(Stack& stack, const TransformerConfig& c, int64_t vocab) {
  stack.push_back({.kind = Kind::box,
                   .name = "Linear",
                   .detail = fmt::format("{} to {}{}", c.d_model, vocab > 0 ? std::to_string(vocab) : "vocabulary",
                                         c.share_projection ? ", the embedding's table" : ""),
                   .fill = kProjection});
  stack.push_back({.kind = Kind::box, .name = "Softmax", .fill = kSoftmax});
}

Stack encoder_of(const TransformerConfig& c) {
  Stack stack;
  add_embedding(stack, c, c.source_vocab, "source");
  begin_layers(stack, c);
  add_sublayer(stack, c, self_attention(c, c.encoder_attention, false));
  add_sublayer(stack, c, feed_forward(c));
  end_layers(stack, c);
  return stack;
}

Stack decoder_of(const TransformerConfig& config) {
  const TransformerConfig c = config.of_decoder();
  Stack stack;
  add_embedding(stack, c, c.target_vocab, "target so far");
  begin_layers(stack, c);
  add_sublayer(stack, c, self_attention(c, c.decoder_attention, true));
  add_sublayer(stack, c, cross_attention(c));
  add_sublayer(stack, c, feed_forward(c));
  end_layers(stack, c);
  add_prediction(stack, c, c.target_vocab);
  stack.push_back({.kind = Kind::text, .name = "next token"});
  return stack;
}

// What makes scores of a classifier's logits; a regression has none.
void add_label_scores(Stack& stack, LabelScores scores) {
  if (scores == LabelScores::none) return;
  stack.push_back(
      {.kind = Kind::box, .name = scores == LabelScores::sigmoid ? "Sigmoid" : "Softmax", .fill = kSoftmax});
}

// What the one stack of these architectures gives.
const char* output_of(const TransformerConfig& c) {
  switch (c.architecture) {
    case Architecture::decoder_lm:
      return "next token";
    case Architecture::encoder_classifier:
      return c.is_regression() ? "number" : c.label_scores == LabelScores::sigmoid ? "labels" : "label";
    case Architecture::encoder:
      return "states";
    default:
      return "hidden tokens";
  }
}

// The one stack of the other architectures.
Stack stack_of(const TransformerConfig& c) {
  const bool causal = c.architecture == Architecture::decoder_lm;
  Stack stack;
  add_embedding(stack, c, c.vocab, causal ? "text so far" : "text");
  begin_layers(stack, c);
  add_sublayer(stack, c, self_attention(c, c.attention, causal));
  add_sublayer(stack, c, feed_forward(c));
  end_layers(stack, c);
  if (c.architecture == Architecture::encoder_classifier) {
    stack.push_back({.kind = Kind::box,
                     .name = c.pooling == Pooling::first ? "First token" : "Mean of the tokens",
                     .fill = "#ffffff"});
    if (c.pooler) stack.push_back({.kind = Kind::box, .name = "Linear, tanh", .fill = kProjection});
    stack.push_back({.kind = Kind::box,
                     .name = "Linear",
                     .detail = fmt::format("{} to {}", c.d_model,
                                           c.labels.empty() ? "labels" : fmt::format("{} labels", c.labels.size())),
                     .fill = kProjection});
    add_label_scores(stack, c.label_scores);
  } else if (c.architecture != Architecture::encoder) {
    add_prediction(stack, c, c.vocab);
  }
  stack.push_back({.kind = Kind::text, .name = output_of(c)});
  return stack;
}

// The preset with changed keys. It has the vocabulary and the labels of the publication, which a run takes from its
// text.
TransformerConfig changed_preset(const Preset& preset, const std::vector<std::string>& set) {
  TransformerConfig model = read_run_config("", set, preset.name).model;
  const TransformerConfig published = preset_model(preset);
  for (const auto size :
       {&TransformerConfig::source_vocab, &TransformerConfig::target_vocab, &TransformerConfig::vocab})
    if (model.*size == 0) model.*size = published.*size;
  if (model.labels.empty() && !model.is_regression()) model.labels = published.labels;
  return model;
}

Described described(const BlockCommand& c) {
  if (!c.preset.empty()) {
    if (!c.what.empty()) fail<ConfigError>("give a configuration or --preset, not both");
    return {c.preset, changed_preset(find_preset(c.preset), c.set)};
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(c.what, ignored)) {
    if (!c.set.empty()) fail<ConfigError>("--set changes a configuration, {} is the folder of a model", c.what);
    return {c.what, open_config(c.what).model};
  }
  return {c.what.empty() ? "The default model" : c.what, read_run_config(c.what, c.set).model};
}

const char* formula_of(NormPlacement norm) {
  switch (norm) {
    case NormPlacement::pre:
      return "pre-norm: x + sublayer(norm(x))";
    case NormPlacement::post:
      return "post-norm: norm(x + sublayer(x))";
    case NormPlacement::sandwich:
      return "sandwich-norm: x + norm(sublayer(norm(x)))";
  }
  return "";
}

std::string draw_block(const BlockCommand& command) {
  const auto [name, c] = described(command);
  StackPicture picture{.title = name, .stacks = {}};
  picture.notes.emplace_back(formula_of(c.norm));
  if (c.parallel_residual)
    picture.notes.emplace_back("attention and feed-forward, drawn one after the other, both read the layer's input x");
  picture.notes.push_back(fmt::format("dropout {} on sublayers, {} on attention weights, {} inside the feed-forward",
                                      c.dropout, c.attention_dropout, c.activation_dropout));
  if (c.architecture == Architecture::encoder_decoder) {
    picture.stacks = {encoder_of(c), decoder_of(c)};
  } else {
    picture.stacks = {stack_of(c)};
  }
  return draw_stacks(picture);
}

}  // namespace

void add_draw_block(CLI::App& draw) {
  const auto c = std::make_shared<BlockCommand>();
  CLI::App* command = add_picture(draw, "block", "The layers of a model: norms, attention, residual paths",
                                  "  attune draw block --preset transformer-base --out paper.svg\n"
                                  "  attune draw block --preset gpt2-124m --out gpt2.svg\n"
                                  "  attune draw block examples/demo.toml --set model.norm=post --out demo.svg\n"
                                  "  attune draw block runs/demo/model",
                                  [c] { return draw_block(*c); });
  add_model(*command, c->what, "Configuration (TOML) of a run, or folder of a model [the defaults]");
  command->add_option("--preset", c->preset, "A model that the literature knows by name");
  command->add_option("--set", c->set, "Overrides one key: model.norm=post")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
}

}  // namespace attune::cli

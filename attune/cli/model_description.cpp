#include "attune/cli/model_description.h"

#include <fmt/format.h>
#include <algorithm>

#include "attune/base/json_fields.h"
#include "attune/cli/options/pattern_options.h"
#include "attune/cli/text_output.h"
#include "attune/models/kinds/layers_text.h"
#include "attune/models/settings.h"

namespace attune::cli {
namespace {

std::string text_of_json(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

template <class Alternative>
std::string changed_fields(const Alternative& value) {
  const Json fields = write_fields(value), defaults = write_fields(Alternative{});
  std::string text;
  for (const auto& entry : fields.items()) {
    const std::string& name = entry.key();
    const Json& field = entry.value();
    if (field == defaults.at(name)) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, text_of_json(field));
  }
  return text;
}

/// The name of the alternative, and in brackets its fields that are not the default.
template <NamedVariant V>
std::string variant_text(const V& value) {
  const std::string fields = std::visit([](const auto& alternative) { return changed_fields(alternative); }, value);
  return fields.empty() ? variant_name(value) : fmt::format("{} ({})", variant_name(value), fields);
}

std::string attention_text(const AttentionKind& kind, const TransformerConfig& c) {
  const AttentionPattern& pattern = pattern_of(kind);
  return std::visit([&](const auto& attention) { return attention.summary(c.d_model, c.heads); }, kind) +
         (std::holds_alternative<FullAttention>(pattern) ? "" : ", " + pattern_text(pattern));
}

std::string positions_text(const TransformerConfig& c) {
  const std::string text = summary(c.positions, position_setting(c));
  return text.empty() ? variant_text(c.positions) : text;
}

std::string norm_text(const TransformerConfig& c) {
  std::string text = fmt::format("{}, {}", enum_name(c.norm), enum_name(c.norm_form));
  if (c.norm != NormPlacement::post && c.final_norm) text += ", final";
  if (c.embedding_norm) text += ", of embeddings";
  return text;
}

std::string sharing_text(const TransformerConfig& c) {
  std::string text;
  const auto add = [&](bool shared, const char* what) {
    if (shared) text += (text.empty() ? "" : ", ") + std::string(what);
  };
  const bool two_stacks = c.architecture == Architecture::encoder_decoder;
  const std::string layers =
      c.distinct_layers() == 1 ? "all layers" : fmt::format("layers ({} differ)", c.distinct_layers());
  add(c.share_layers, layers.c_str());
  add(two_stacks && c.share_embeddings, "source and target embedding");
  add(c.architecture != Architecture::encoder_classifier && c.share_projection,
      two_stacks ? "target embedding and projection" : "embedding and projection");
  return text.empty() ? "nothing" : text;
}

std::string labels_text(const std::vector<std::string>& labels) {
  constexpr size_t shown = 8;
  std::string text = fmt::format("{}: ", labels.size());
  for (size_t i = 0; i < std::min(shown, labels.size()); ++i) text += (i > 0 ? ", " : "") + one_line(labels[i]);
  return labels.size() > shown ? text + ", ..." : text;
}

}  // namespace

std::string local_attention_text(const TransformerConfig& c) {
  std::vector<int64_t> local;
  for (size_t i = 0; i < c.layer_attention.size(); ++i)
    if (c.layer_attention[i] == LayerAttention::local) local.push_back(static_cast<int64_t>(i));
  if (local.empty()) return "";
  return fmt::format("{}: {}, positions {}", layers_text(local), pattern_text(SlidingWindow{.size = c.local_window}),
                     variant_text(c.local_positions));
}

Description describe_architecture(const TransformerConfig& c) {
  const bool two_stacks = c.architecture == Architecture::encoder_decoder;
  const TransformerConfig decoder = c.of_decoder();
  Description rows = {
      {"architecture", enum_name(c.architecture)},
      {"layers",
       two_stacks ? fmt::format("{} encoder, {} decoder", c.layers, decoder.layers) : std::to_string(c.layers)},
      {"d_model", std::to_string(c.d_model)},
      {"heads", fmt::format("{} of {}", c.heads, c.head_dim())},
      {"d_ff", fmt::format("{}, {}{}", c.d_ff, enum_name(c.activation), c.feed_forward_bias ? "" : " without biases")}};
  const std::string experts = summary(c.feed_forward, feed_forward_config(c));
  if (!experts.empty()) rows.emplace_back("feed-forward", experts);
  if (two_stacks) {
    rows.emplace_back("encoder attention", attention_text(c.encoder_attention, c));
    rows.emplace_back("decoder attention", attention_text(c.decoder_attention, decoder));
    rows.emplace_back("cross attention", attention_text(c.cross_attention, decoder));
  } else {
    rows.emplace_back("attention", attention_text(c.attention, c));
    if (const std::string local = local_attention_text(c); !local.empty()) rows.emplace_back("local attention", local);
  }
  rows.emplace_back("positions", positions_text(c));
  rows.emplace_back("norm", norm_text(c));
  if (two_stacks) {
    rows.emplace_back("vocabularies", fmt::format("{} source, {} target", c.source_vocab, c.target_vocab));
  } else {
    rows.emplace_back("vocabulary", std::to_string(c.vocab));
  }
  if (c.architecture == Architecture::decoder_lm)
    rows.emplace_back("context", fmt::format("{} tokens", c.context_length));
  if (c.architecture == Architecture::encoder_classifier) {
    rows.emplace_back("labels", labels_text(c.labels));
    rows.emplace_back("pooling", enum_name(c.pooling) + (c.pooler ? ", pooler" : ""));
  }
  rows.emplace_back("shared", sharing_text(c));
  return rows;
}

std::vector<std::pair<std::string, int64_t>> parts_of(const TransformerConfig& c, const ParameterCounts& n) {
  switch (c.architecture) {
    case Architecture::encoder_decoder:
      return {{"source_embedding", n.source_embedding},
              {"target_embedding", n.target_embedding},
              {"encoder", n.encoder() + n.final_norms / 2},
              {"decoder", n.decoder() + n.final_norms / 2},
              {"projection", n.projection}};
    case Architecture::decoder_lm:
      return {
          {"embedding", n.source_embedding}, {"decoder", n.decoder() + n.final_norms}, {"projection", n.projection}};
    case Architecture::encoder_classifier:
      return {{"embedding", n.source_embedding}, {"encoder", n.encoder() + n.final_norms}, {"head", n.projection}};
    case Architecture::encoder:
      return {{"embedding", n.source_embedding}, {"encoder", n.encoder() + n.final_norms}};
    default:
      return {
          {"embedding", n.source_embedding}, {"encoder", n.encoder() + n.final_norms}, {"projection", n.projection}};
  }
}

CacheCost cache_cost(const TransformerConfig& config) {
  const TransformerConfig c = config.of_decoder();
  const auto bytes = [&](const AttentionKind& kind) {
    return c.layers * static_cast<int64_t>(sizeof(float)) * cache_width(kind, c.d_model, c.heads);
  };
  if (c.architecture == Architecture::encoder_decoder)
    return {bytes(c.decoder_attention), bytes(c.cross_attention), bytes(MultiHead{})};
  if (c.architecture == Architecture::decoder_lm) return {bytes(c.attention), 0, bytes(MultiHead{})};
  return {};
}

}  // namespace attune::cli

// attune draw attention: the heads of a layer, side by side.

#include "attune/cli/draw/attention.h"

#include <fmt/format.h>
#include "attune/base/fail.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/cli/options/model_argument.h"
#include "attune/tensor/host_view.h"

namespace attune::cli {
namespace {

constexpr const char* kKinds[] = {"encoder", "decoder", "cross"};  // in the order of view_attention()

struct AttentionPicture {
  AttentionRequest request;
  std::string kind;
  std::optional<int64_t> layer;
};

const AttentionMaps& chosen(const AttentionPage& page, const std::string& given) {
  if (page.maps.size() == 1) {
    if (!given.empty()) fail<ConfigError>("--kind {}: the model has self-attention alone", given);
    return page.maps.front();
  }
  const std::string kind = given.empty() ? "cross" : given;
  for (size_t i = 0; i < std::size(kKinds) && i < page.maps.size(); ++i)
    if (kind == kKinds[i]) return page.maps[i];
  fail<ConfigError>("--kind {}: needs one of {}", kind, fmt::join(kKinds, ", "));
}

// The layer to draw, from 1.
int64_t chosen_layer(std::optional<int64_t> given, int64_t layers) {
  if (!given) return layers;
  check_within("--layer", *given, 1, layers);
  return *given;
}

}  // namespace

std::string draw_attention(const AttentionPage& page, const std::string& kind, std::optional<int64_t> given_layer) {
  const AttentionMaps& maps = chosen(page, kind);
  const auto layers = static_cast<int64_t>(maps.weights.size());
  const int64_t layer = chosen_layer(given_layer, layers);
  const Tensor& weights = maps.weights[static_cast<size_t>(layer - 1)];  // [1, heads, queries, keys]
  const int64_t heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
  HeatMaps picture{.title = fmt::format("{}, layer {} of {}", maps.name, layer, layers),
                   .note = maps.note,
                   .row_name = maps.query_name,
                   .column_name = maps.key_name,
                   .value_name = "weight"};
  const HostView view(weights);
  const auto values = view.as<float>();
  for (int64_t h = 0; h < heads; ++h) {
    const auto head = values.subspan(static_cast<size_t>(h * queries * keys), static_cast<size_t>(queries * keys));
    picture.maps.push_back({.title = fmt::format("head {}", h + 1),
                            .rows = queries,
                            .columns = keys,
                            .values = {head.begin(), head.end()},
                            .row_labels = maps.queries,
                            .column_labels = maps.keys});
  }
  return draw_heat_maps(picture);
}

void add_draw_attention(CLI::App& draw) {
  const auto c = std::make_shared<AttentionPicture>();
  CLI::App* command = add_picture(
      draw, "attention", "The attention weights of every head of one layer",
      "  attune draw attention runs/demo/model \"The old dog sleeps.\" --out attention.svg\n"
      "  attune draw attention runs/demo/model \"The old dog sleeps.\" --kind encoder --layer 1 --out encoder.svg",
      [c] {
        check_model(c->request.folder, "attune draw attention MODEL TEXT");
        c->request.most_tokens = kMostCells;
        return draw_attention(view_attention(c->request), c->kind, c->layer);
      });
  add_model(*command, c->request.folder)->required();
  command->add_option("text", c->request.text, "What the model reads: the source of a translation")->required();
  command->add_option("--target", c->request.target, "Its translation [the model's own, greedy]");
  command->add_option("--kind", c->kind, "encoder, decoder or cross, of a model that translates [cross]");
  command->add_option("--layer", c->layer, "From 1 [the last]");
}

}  // namespace attune::cli

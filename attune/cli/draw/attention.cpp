// attune draw attention: the heads of a layer, side by side.

#include <fmt/format.h>
#include "attune/base/fail.h"
#include "attune/cli/draw/attention_view.h"
#include "attune/cli/draw/draw.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/hub/open_folder.h"
#include "attune/tensor/host_view.h"

namespace attune::cli {
namespace {

struct AttentionCommand {
  AttentionRequest request;
  std::string kind;
  int64_t layer = -1;
};

constexpr const char* kKinds[] = {"encoder", "decoder", "cross"};  // in the order of view_attention()

const AttentionMaps& chosen(const AttentionCommand& c, const AttentionPage& page) {
  if (page.maps.size() == 1) {
    if (!c.kind.empty()) fail<ConfigError>("--kind {}: the model has self-attention alone", c.kind);
    return page.maps.front();
  }
  const std::string kind = c.kind.empty() ? "cross" : c.kind;
  for (size_t i = 0; i < std::size(kKinds) && i < page.maps.size(); ++i)
    if (kind == kKinds[i]) return page.maps[i];
  fail<ConfigError>("--kind {}: needs one of {}", kind, fmt::join(kKinds, ", "));
}

const Tensor& weights_of(const AttentionCommand& c, const AttentionMaps& maps, int64_t layers) {
  if (c.layer != -1) check_within("--layer", c.layer, 0, layers - 1);
  return maps.weights[static_cast<size_t>(c.layer < 0 ? layers - 1 : c.layer)];
}

std::string draw_attention(const AttentionCommand& c) {
  const AttentionPage page = view_attention(c.request, open_config(c.request.folder).model.architecture);
  const AttentionMaps& maps = chosen(c, page);
  const auto layers = static_cast<int64_t>(maps.weights.size());
  const Tensor& weights = weights_of(c, maps, layers);  // [1, heads, queries, keys]
  const int64_t heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
  HeatMaps picture{.title = fmt::format("{}, layer {} of {}", maps.name, c.layer < 0 ? layers - 1 : c.layer, layers),
                   .note = maps.note,
                   .row_name = maps.query_name,
                   .column_name = maps.key_name,
                   .value_name = "weight"};
  const HostView view(weights);
  const auto values = view.as<float>();
  for (int64_t h = 0; h < heads; ++h) {
    const auto head = values.subspan(static_cast<size_t>(h * queries * keys), static_cast<size_t>(queries * keys));
    picture.maps.push_back({.title = fmt::format("head {}", h),
                            .rows = queries,
                            .columns = keys,
                            .values = {head.begin(), head.end()},
                            .row_labels = maps.queries,
                            .column_labels = maps.keys});
  }
  return draw_heat_maps(picture);
}

}  // namespace

void add_draw_attention(CLI::App& draw) {
  const auto c = std::make_shared<AttentionCommand>();
  CLI::App* command =
      add_picture(draw, "attention", "The attention weights of every head of one layer",
                  "  attune draw attention runs/demo/model \"The old dog sleeps.\" --out attention.svg\n"
                  "  attune draw attention runs/demo/model \"The old dog sleeps.\" --kind encoder --layer 0",
                  [c] { return draw_attention(*c); });
  command->add_option("model", c->request.folder, "Folder of a model")->required();
  command->add_option("text", c->request.text, "What the model reads: the source of a translation")->required();
  command->add_option("--target", c->request.target, "Its translation [the model's own, greedy]");
  command->add_option("--kind", c->kind, "encoder, decoder or cross, of a model that translates [cross]");
  command->add_option("--layer", c->layer, "From 0 [the last]");
}

}  // namespace attune::cli

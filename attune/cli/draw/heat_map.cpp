#include "attune/cli/draw/heat_map.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/cli/draw/svg.h"
#include "attune/tensor/host_view.h"

namespace attune::cli {

/// The page around the heat maps, heat_map.html; {{title}}, {{texts}} and {{data}} are filled in below.
std::string_view heat_map_html();

namespace {

/// JSON that may stand inside a script element: nothing in it can end the element or begin a comment.
std::string script_json(const Json& json) {
  std::string escaped;
  for (const char c : show(json)) {
    if (c == '<') {
      escaped += "\\u003c";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// Two characters for each weight, its value in 1 / 4095 to base 64.
std::string packed_weights(std::span<const float> weights) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string packed;
  packed.reserve(2 * weights.size());
  for (const float weight : weights) {
    const float inside = weight >= 0 ? std::min(weight, 1.0f) : 0.0f;  // NaN is 0
    const auto value = static_cast<size_t>(std::lround(inside * 4095));
    packed += digits[value / 64];
    packed += digits[value % 64];
  }
  return packed;
}

Json maps_json(const AttentionMaps& maps) {
  const auto queries = static_cast<int64_t>(maps.queries.size());
  const auto keys = static_cast<int64_t>(maps.keys.size());
  Json layers = Json::array();
  for (const Tensor& weights : maps.weights) {
    if (weights.rank() != 4 || weights.size(0) != 1 || weights.size(2) != queries || weights.size(3) != keys)
      fail<ShapeError>("{}: weights {}, needs [1, heads, {}, {}]", maps.name, weights.shape().text(), queries, keys);
    Json heads = Json::array();
    const HostView view(weights);
    for (int64_t head = 0; head < weights.size(1); ++head)
      heads.push_back(packed_weights(
          view.as<float>().subspan(static_cast<size_t>(head * queries * keys), static_cast<size_t>(queries * keys))));
    layers.push_back(std::move(heads));
  }
  return {{"name", maps.name},        {"queryName", maps.query_name},
          {"keyName", maps.key_name}, {"queries", maps.queries},
          {"note", maps.note},        {"keys", maps.keys},
          {"causal", maps.causal},    {"layers", std::move(layers)}};
}

/// The template with each {{name}} replaced, in one pass, so that a replacement is never looked at again.
std::string fill_template(std::string_view text, const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    const auto value =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return text.substr(at).starts_with(v.first); });
    if (value == values.end()) {
      filled += text[at++];
    } else {
      filled += value->second;
      at += value->first.size();
    }
  }
  return filled;
}

}  // namespace

std::string attention_page(const AttentionPage& page) {
  Json maps = Json::array();
  for (const AttentionMaps& m : page.maps) maps.push_back(maps_json(m));
  std::string texts;
  for (const auto& [name, text] : page.texts)
    texts += fmt::format("<dt>{}</dt><dd>{}</dd>", escape_xml(name), escape_xml(text));
  return fill_template(heat_map_html(),
                       {{"{{title}}", escape_xml(page.title)}, {"{{texts}}", texts}, {"{{data}}", script_json(maps)}});
}

}  // namespace attune::cli

#include "attune/inference/forced_alignment.h"

#include <fmt/format.h>
#include <algorithm>
#include <span>

#include "attune/inference/translation_attention.h"
#include "attune/inference/translation_requests.h"
#include "attune/inference/translator.h"
#include "attune/models/transformer.h"
#include "attune/tensor/host_view.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

// The weights of one layer on the host.
class LayerWeights {
 public:
  explicit LayerWeights(const Tensor& weights)  // [1, heads, queries, keys]
      : view_(weights),
        heads_(static_cast<size_t>(weights.size(1))),
        queries_(static_cast<size_t>(weights.size(2))),
        keys_(static_cast<size_t>(weights.size(3))) {}

  size_t heads() const { return heads_; }
  std::span<const float> head(size_t head) const {
    return view_.as<float>().subspan(head * queries_ * keys_, queries_ * keys_);
  }
  std::vector<float> mean() const {
    std::vector<float> sum(queries_ * keys_);
    for (size_t h = 0; h < heads_; ++h) std::ranges::transform(sum, head(h), sum.begin(), std::plus());
    return sum;  // whose largest elements are those of the mean
  }
  // The key with the most weight of each query.
  std::vector<int32_t> likeliest(std::span<const float> weights) const {
    std::vector<int32_t> keys;
    for (size_t q = 0; q < queries_; ++q) {
      const auto row = weights.subspan(q * keys_, keys_);
      keys.push_back(static_cast<int32_t>(std::ranges::max_element(row) - row.begin()));
    }
    return keys;
  }

 private:
  HostView view_;
  size_t heads_, queries_, keys_;
};

}  // namespace

ForcedAligner::ForcedAligner(const Translator& translator) : ForcedAligner(translator, TranslateOptions{}) {}

ForcedAligner::ForcedAligner(const Translator& translator, const TranslateOptions& options)
    : translator_(translator), requests_(std::make_unique<const TranslationRequests>(translator, options)) {}

ForcedAligner::~ForcedAligner() = default;

ForcedAlignment ForcedAligner::align(const std::string& source, const std::string& target,
                                     const std::string& name) const {
  const Transformer& model = translator_.model();
  const std::vector<int32_t> source_ids = requests_->encode(source, name);
  const std::vector<int32_t> input = requests_->decoder_input(target, name);
  const auto layers = static_cast<size_t>(model.config().of_decoder().layers);
  const auto heads = static_cast<size_t>(model.config().of_decoder().heads);
  ForcedAlignment result{.words = {}, .heads = {layers, std::vector<WordAlignment>(heads)}};
  if (source_ids.empty() || input.size() < 2) return result;

  const std::vector<int32_t> source_words =
      words_of_tokens(translator_.source_tokenizer(), std::span(source_ids).first(source_ids.size() - 1));
  const std::vector<int32_t> target_words =
      words_of_tokens(translator_.target_tokenizer(), std::span(input).subspan(1));
  const std::vector<Tensor> weights = cross_attention_weights(model, source_ids, input);
  for (size_t l = 0; l < layers; ++l) {
    const LayerWeights layer(weights[l]);
    const auto words = [&](std::span<const float> of) {
      return align_words(source_words, target_words, layer.likeliest(of));
    };
    for (size_t h = 0; h < heads; ++h) result.heads[l][h] = words(layer.head(h));
    if (l + 1 == layers) result.words = words(layer.mean());
  }
  if (const auto guided = model.alignment_head())
    result.words = result.heads[static_cast<size_t>(guided->layer)][static_cast<size_t>(guided->head)];
  return result;
}

std::string ForcedAligner::origin() const {
  const TransformerConfig& config = translator_.model().config();
  if (config.alignment_layer == 0) return fmt::format("mean of layer {}", config.of_decoder().layers);
  return fmt::format("layer {}, head {}", config.alignment_layer, config.alignment_head);
}

}  // namespace attune

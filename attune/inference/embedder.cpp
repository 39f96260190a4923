#include "attune/inference/embedder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/autograd/graph.h"
#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/batches.h"
#include "attune/inference/call_progress.h"
#include "attune/inference/place_model.h"
#include "attune/inference/text_limits.h"
#include "attune/io/config_file.h"
#include "attune/io/model_folder.h"
#include "attune/ops/linear/precision.h"
#include "attune/tensor/host_view.h"
#include "attune/text/encoder_text.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr const char* kNotFinite = "its vector is not finite";

using Encode = std::function<Tensor(const PackedTokens&)>;

// The encoder of any model that has one, without its head. The function keeps the model alive.
Encode encoder_of(const std::shared_ptr<Module>& model, const std::filesystem::path& folder) {
  const auto from = [&]<class Model>(std::shared_ptr<Model> found) -> Encode {
    if (found == nullptr) return {};
    return [found](const PackedTokens& tokens) { return found->encode(tokens); };
  };
  if (Encode encode = from(std::dynamic_pointer_cast<EncoderModel>(model))) return encode;
  if (Encode encode = from(std::dynamic_pointer_cast<EncoderMaskedLm>(model))) return encode;
  if (Encode encode = from(std::dynamic_pointer_cast<EncoderClassifier>(model))) return encode;
  fail<ConfigError>("{}: has no encoder alone, which embeddings need", folder.string());
}

// One vector of the states [tokens, width] of a text.
void add_pooled(std::span<const float> states, size_t width, TextPooling pooling, std::vector<float>& vector) {
  const size_t tokens = states.size() / width;
  const auto add_row = [&](size_t row) {
    const auto values = states.subspan(row * width, width);
    vector.insert(vector.end(), values.begin(), values.end());
  };
  if (pooling == TextPooling::cls) return add_row(0);
  if (pooling == TextPooling::last_token) return add_row(tokens - 1);
  const bool max = pooling == TextPooling::max;
  std::vector<double> sums(width, max ? -std::numeric_limits<double>::infinity() : 0.0);
  for (size_t i = 0; i < states.size(); ++i) {
    double& sum = sums[i % width];
    if (!max)
      sum += states[i];
    else if (std::isnan(states[i]) || states[i] > sum)
      sum = states[i];  // a NaN stays: nothing is larger
  }
  const double scale = max                            ? 1.0
                       : pooling == TextPooling::mean ? 1.0 / static_cast<double>(tokens)
                                                      : 1.0 / std::sqrt(static_cast<double>(tokens));
  for (const double sum : sums) vector.push_back(static_cast<float>(sum * scale));
}

}  // namespace

void normalize(std::vector<float>& vector) {
  constexpr double kLeast = 1e-12;
  double squares = 0;
  for (const float v : vector) squares += static_cast<double>(v) * v;
  const double length = std::max(std::sqrt(squares), kLeast);
  for (float& v : vector) v = static_cast<float>(v / length);
}

struct Embedder::Impl {
  Encode encode;
  TransformerConfig config;
  std::shared_ptr<const Tokenizer> tokenizer;
  EmbeddingSettings settings;
  ProductPrecision precision = ProductPrecision::float32;
  bool tokenizer_frames_texts = false;  // it knows the special tokens around a text; else these are bos and eos

  std::vector<TextPooling> pooling(const EmbedOptions& options) const {
    return options.pooling ? std::vector{*options.pooling} : settings.pooling;
  }
  std::string prompt(const EmbedOptions& options) const {
    const std::string& name = options.prompt_name.value_or(settings.prompt_name);
    if (name.empty()) return "";
    const auto found = settings.prompts.find(name);
    if (found == settings.prompts.end())
      fail<ConfigError>("prompt_name = \"{}\": the folder has {}", name, prompt_names());
    if (!found->second.empty() && !settings.pools_prompt)
      fail<ConfigError>(
          "1_Pooling/config.json: include_prompt = false is not supported together with a prompt, and prompt_name = "
          "\"{}\" has one; pass prompt_name = \"\"",
          name);
    return found->second;
  }
  std::string prompt_names() const {
    std::string names;
    for (const auto& [name, text] : settings.prompts) names += (names.empty() ? "the prompts " : ", ") + name;
    return names.empty() ? "no prompts" : names;
  }
  /// The most tokens of a text.
  int64_t longest() const { return std::min(settings.max_tokens, config.longest_sequence()); }
  /// Throws DataError for what the model cannot read.
  void check(size_t text, const std::vector<int32_t>& ids) const {
    const int64_t most = config.longest_sequence();
    if (ids.empty() || static_cast<int64_t>(ids.size()) > most)
      fail<DataError>("text {} has {} tokens, the model reads from 1 to {}", text + 1, ids.size(), most);
    for (const int32_t id : ids)
      if (id < 0 || id >= config.vocab)
        fail<DataError>("text {} has token {}, the model has {}", text + 1, id, config.vocab);
  }
};

Embedder Embedder::load(const std::filesystem::path& folder, ProductPrecision precision,
                        const std::optional<Device>& device) {
  return load(OpenedFolder(folder), precision, device);
}

Embedder Embedder::load(const OpenedFolder& opened, ProductPrecision precision, const std::optional<Device>& device) {
  const LoadedWeights weights = weights_for(precision, device.value_or(Cpu{}));
  const std::filesystem::path& folder = opened.path();
  auto impl = std::make_shared<Impl>();
  impl->precision = precision;
  impl->settings = read_embedding_settings(folder);
  std::shared_ptr<Module> model;
  const auto take = [&](auto files) {  // with the adapter, where there is one
    impl->config = files.model->config();
    impl->tokenizer = std::move(files.tokenizer);
    impl->tokenizer_frames_texts = files.tokenizer_frames_texts;
    if (opened.hub() == nullptr) impl->settings.max_tokens = std::min(impl->settings.max_tokens, files.max_tokens);
    model = std::move(files.model);
  };
  const Architecture architecture = opened.config().model.architecture;
  if (architecture == Architecture::encoder_classifier) {
    take(opened.load_classifier(weights));
  } else if (architecture == Architecture::encoder_masked_lm) {
    take(opened.load_masked_lm(weights));
  } else {
    take(opened.load_encoder(weights));  // refuses what is no encoder
  }
  place_model(*model, device, precision);
  impl->encode = encoder_of(model, folder);
  impl->prompt({});  // throws where it cannot be used
  return Embedder(std::move(impl));
}

std::vector<std::vector<float>> Embedder::embed(std::span<const std::string> texts, const EmbedOptions& options) const {
  return embed_encoded(encode(texts, options), options);
}

std::vector<Encoding> Embedder::encode(std::span<const std::string> texts, const EmbedOptions& options) const {
  std::vector<Encoding> encoded;
  for (size_t i = 0; i < texts.size(); ++i) {
    check_text(texts[i], "text " + std::to_string(i + 1));
    encoded.push_back(encode(texts[i], options));
  }
  return encoded;
}

Encoding Embedder::encode(std::string_view text, const EmbedOptions& options) const {
  check_text(text, "text");
  std::string whole = impl_->prompt(options).append(text);
  constexpr std::string_view kSpaces =
      " \t\n\v\f\r";  // around a text they are no part of it, as in sentence-transformers
  whole.erase(0, std::min(whole.find_first_not_of(kSpaces), whole.size()));
  whole.erase(whole.find_last_not_of(kSpaces) + 1);
  const std::string read = impl_->settings.lowercase ? lowercase(whole) : whole;
  return encode_for_encoder(*impl_->tokenizer, impl_->tokenizer_frames_texts, read, impl_->longest());
}

std::vector<std::vector<float>> Embedder::embed(std::initializer_list<std::string> texts,
                                                const EmbedOptions& options) const {
  return embed(std::span(texts.begin(), texts.size()), options);
}

std::vector<float> Embedder::embed(std::string_view text, const EmbedOptions& options) const {
  const std::string copy(text);
  return std::move(embed(std::span(&copy, 1), options).front());
}

std::vector<std::vector<float>> Embedder::embed_encoded(std::span<const Encoding> texts,
                                                        const EmbedOptions& options) const {
  check_least("batch_texts", options.batch_texts, 1);
  check_least("batch_tokens", options.batch_tokens, 1);
  int64_t done = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].ids.empty() && options.skip) {
      options.skip(i, "has no tokens");
      ++done;
    } else {
      impl_->check(i, texts[i].ids);
    }
  }
  CallProgress progress(options.progress);
  const auto total = static_cast<int64_t>(texts.size());
  progress.show(done, total);
  const NoGrad no_grad;
  const ProductPrecisionScope precision(impl_->precision);
  const std::vector<TextPooling> poolings = impl_->pooling(options);
  const auto width = static_cast<size_t>(impl_->config.d_model);
  std::vector<std::vector<float>> vectors(texts.size());
  for (const std::vector<size_t>& batch : batches_by_length(texts, options.batch_texts, options.batch_tokens)) {
    const HostView states(impl_->encode(pack_batch(texts, batch, impl_->config.token_types)));
    size_t row = 0;
    for (const size_t text : batch) {
      const auto of_text = states.as<float>().subspan(row * width, texts[text].ids.size() * width);
      for (const TextPooling pooling : poolings) add_pooled(of_text, width, pooling, vectors[text]);
      if (options.normalize.value_or(impl_->settings.normalize)) normalize(vectors[text]);
      if (!std::ranges::all_of(vectors[text], [](float v) { return std::isfinite(v); })) {
        if (!options.skip) fail<NumericError>("text {}: {}", text + 1, kNotFinite);
        options.skip(text, kNotFinite);
        vectors[text].clear();
      }
      row += texts[text].ids.size();
    }
    done += static_cast<int64_t>(batch.size());
    progress.show(done, total);
  }
  return vectors;
}

int64_t Embedder::dimension(const EmbedOptions& options) const {
  return impl_->config.d_model * static_cast<int64_t>(impl_->pooling(options).size());
}
int64_t Embedder::max_tokens() const {
  return impl_->longest();
}
const EmbeddingSettings& Embedder::settings() const {
  return impl_->settings;
}
const Tokenizer& Embedder::tokenizer() const {
  return *impl_->tokenizer;
}

}  // namespace attune

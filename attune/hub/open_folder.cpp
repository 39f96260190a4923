#include "attune/hub/open_folder.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

// A hub model of this architecture. Throws ConfigError for another one.
template <class Model>
std::unique_ptr<Model> load_as(const HubFolder& hub, const std::filesystem::path& folder, const char* task,
                               LoadedWeights weights) {
  std::unique_ptr<Module> model = hub.load(weights);
  auto* wanted = dynamic_cast<Model*>(model.get());
  if (wanted == nullptr)
    fail<ConfigError>("{}: its architecture, in our terms, is \"{}\", which is not for {}", folder.string(),
                      enum_name(hub.config().architecture), task);
  static_cast<void>(model.release());
  return std::unique_ptr<Model>(wanted);
}

// A model's vocabulary may be padded, so that it has more tokens than the tokenizer.
void check_size(const Tokenizer& tokenizer, const char* field, int64_t vocab, const std::filesystem::path& folder) {
  if (tokenizer.vocab_size() > vocab)
    fail<ConfigError>("{}: the tokenizer has {} tokens, but the model has {} = {}", folder.string(),
                      tokenizer.vocab_size(), field, vocab);
}

std::shared_ptr<const Tokenizer> load_hub_tokenizer(const std::filesystem::path& folder, int64_t vocab) {
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizers(folder).source;
  check_size(*tokenizer, "vocab_size", vocab, folder);
  return tokenizer;
}

template <class Model>
void fill_encoder(const HubFolder& hub, const std::filesystem::path& folder, const char* task, LoadedWeights weights,
                  EncoderFolderOf<Model>& files) {
  files.tokenizer = load_hub_tokenizer(folder, hub.config().vocab);
  files.tokenizer_frames_texts = true;
  files.model = load_as<Model>(hub, folder, task, weights);
}

}  // namespace

ConfigFile open_config(const std::filesystem::path& folder) {
  const auto opened = HubFolder::open(folder);
  if (const auto* hub = std::get_if<HubFolder>(&opened))
    return {.model = hub->config(), .bfloat16_numbers = hub->bfloat16_count(), .weight_format = {}};
  const ConfigFile& file = std::get<ConfigFile>(opened);
  check_parameter_file(folder, file.model, file.weight_format);
  return file;
}

ModelFolder open_model_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  const auto opened = HubFolder::open(folder);
  const auto* const hub = std::get_if<HubFolder>(&opened);
  if (hub == nullptr) return load_model_folder(folder, std::get<ConfigFile>(opened), weights);
  ModelFolder files;
  TokenizerPair tokenizers = load_tokenizers(folder);
  check_size(*tokenizers.source, "source_vocab", hub->config().source_vocab, folder);
  check_size(*tokenizers.target, "target_vocab", hub->config().target_vocab, folder);
  files.source_tokenizer = std::move(tokenizers.source);
  files.target_tokenizer = std::move(tokenizers.target);
  files.generation = read_hub_generation(folder, hub->hub_config());
  files.model = load_as<Transformer>(*hub, folder, "translation", weights);
  return files;
}

LanguageModelFolder open_language_model_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  const auto opened = HubFolder::open(folder);
  const auto* const hub = std::get_if<HubFolder>(&opened);
  if (hub == nullptr) return load_language_model_folder(folder, std::get<ConfigFile>(opened), weights);
  LanguageModelFolder files;
  files.tokenizer = load_hub_tokenizer(folder, hub->config().vocab);
  files.sampling = read_hub_sampling(folder, hub->hub_config());
  files.tokenizer_frames_texts = true;
  files.model = load_as<DecoderLm>(*hub, folder, "generation", weights);
  return files;
}

ClassifierFolder open_classifier_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  const auto opened = HubFolder::open(folder);
  const auto* const hub = std::get_if<HubFolder>(&opened);
  if (hub == nullptr) return load_classifier_folder(folder, std::get<ConfigFile>(opened), weights);
  ClassifierFolder files;
  files.max_tokens = std::min(files.max_tokens, hub->config().longest_sequence());
  fill_encoder<EncoderClassifier>(*hub, folder, "classification", weights, files);
  return files;
}

EncoderFolder open_encoder_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  const auto opened = HubFolder::open(folder);
  const auto* const hub = std::get_if<HubFolder>(&opened);
  if (hub == nullptr) return load_encoder_folder(folder, std::get<ConfigFile>(opened), weights);
  EncoderFolder files;
  files.max_tokens = std::min(kMostTextTokens, hub->config().longest_sequence());
  fill_encoder<EncoderModel>(*hub, folder, "embedding", weights, files);
  return files;
}

}  // namespace attune

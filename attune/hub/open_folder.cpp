#include "attune/hub/open_folder.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/hub/adapter_folder.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/io/gguf.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/nn/make_panels.h"
#include "attune/text/limited_tokenizer.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

// A hub model, whose architecture has been checked.
template <class Model>
std::unique_ptr<Model> load_as(const HubFolder& hub, LoadedWeights weights) {
  std::unique_ptr<Module> model = hub.load(weights);
  return std::unique_ptr<Model>(&dynamic_cast<Model&>(*model.release()));
}

// Tokens that the model does not have are in no output anyway, as in transformers.
template <class Config>
void forget_tokens_beyond(int64_t vocab, Config& settings) {
  for (std::vector<int64_t>* const tokens : {&settings.suppressed_tokens, &settings.suppressed_at_begin})
    std::erase_if(*tokens, [&](int64_t token) { return token >= vocab; });
  std::erase_if(settings.suppressed_phrases, [&](const auto& phrase) { return std::ranges::max(phrase) >= vocab; });
}

template <class Model>
void fill_encoder(const OpenedFolder& folder, LoadedWeights weights, EncoderFolderOf<Model>& files) {
  const TransformerConfig& config = folder.config().model;
  files.max_tokens = std::min(kMostTextTokens, config.longest_sequence());
  files.tokenizer = limited_tokenizer(load_tokenizers(folder.path()).source, config.vocab);
  files.tokenizer_frames_texts = true;
  files.model = load_as<Model>(*folder.hub(), weights);
}

}  // namespace

struct OpenedFolder::Contents {
  std::filesystem::path folder;
  std::optional<std::filesystem::path> adapter;
  std::variant<HubFolder, ConfigFile> opened;
  ConfigFile config;
};

namespace {

// The model that an adapter's folder is for, or, of any other folder, none.
std::optional<std::filesystem::path> base_of(const std::filesystem::path& folder) {
  if (!is_adapter_folder(folder)) return std::nullopt;
  return adapter_base(folder);
}

struct Target {
  LoadedWeights weights;
  const Device& device;
};

// Calls load(weights). Where there is an adapter, adds it to the weights as they are stored, before panels are made of
// them or they are rounded. A folder with bfloat16 is loaded as bfloat16 tensors at once where these are wanted: what
// it has in bfloat16 stays as it is, and float32 matrices beside that are rounded before and after.
template <class Load>
auto load_with(const std::optional<std::filesystem::path>& adapter, const OpenedFolder& base, const Target& target,
               Load&& load) {
  const bool rounds = target.weights == LoadedWeights::bfloat16_tensors;
  const bool as_wanted = !adapter || (rounds && base.config().bfloat16_numbers > 0);
  auto files = load(as_wanted ? target.weights : LoadedWeights::mapped);
  if (adapter) {
    read_adapter(*adapter, base, *files.model);
    merge_adapters(*files.model);
    if (rounds) round_matrices(*files.model);
    if (are_panels(target.weights))
      make_panels(*files.model, panel_format(target.weights).value_or(WeightFormat::float32));
  }
  if (!target.device.is_host()) move_parameters(*files.model, target.device);
  return files;
}

}  // namespace

OpenedFolder::OpenedFolder(const std::filesystem::path& given) {
  refuse_gguf(given);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(given, ignored))
    fail<FileError>("{}: is a file, a model is a folder", given.string());
  const std::optional<std::filesystem::path> base = base_of(given);
  const std::filesystem::path folder = base.value_or(given);
  std::variant<HubFolder, ConfigFile> opened = HubFolder::open(folder, base ? head_of_adapter(given) : std::nullopt);
  const auto* const hub = std::get_if<HubFolder>(&opened);
  ConfigFile config =
      hub == nullptr
          ? std::get<ConfigFile>(opened)
          : ConfigFile{.model = hub->config(), .bfloat16_numbers = hub->bfloat16_count(), .weight_format = {}};
  contents_ = std::make_shared<const Contents>(
      Contents{folder, base ? std::optional(given) : std::nullopt, std::move(opened), std::move(config)});
}

const std::filesystem::path& OpenedFolder::path() const {
  return contents_->folder;
}

const ConfigFile& OpenedFolder::config() const {
  return contents_->config;
}

const HubFolder* OpenedFolder::hub() const {
  return std::get_if<HubFolder>(&contents_->opened);
}

ModelFolder OpenedFolder::load_model(LoadedWeights weights, const AdapterFolders& adapters,
                                     const Device& device) const {
  auto loaded = load_with(contents_->adapter, *this, {weights, device}, [&](LoadedWeights w) {
    if (hub() == nullptr) return load_model_folder(path(), config(), w);
    check_architecture(path(), config().model.architecture, Architecture::encoder_decoder, "translation");
    ModelFolder files;
    const TransformerConfig& model = config().model;
    TokenizerPair tokenizers = limited_tokenizers(load_tokenizers(path()), model.source_vocab, model.target_vocab);
    files.source_tokenizer = std::move(tokenizers.source);
    files.target_tokenizer = std::move(tokenizers.target);
    files.generation = read_hub_generation(path(), hub()->hub_config());
    forget_tokens_beyond(model.target_vocab, files.generation);
    files.model = load_as<Transformer>(*hub(), w);
    return files;
  });
  loaded.adapters = read_adapter_choices(adapters, *this, *loaded.model);
  return loaded;
}

LanguageModelFolder OpenedFolder::load_language_model(LoadedWeights weights, const AdapterFolders& adapters,
                                                      const Device& device) const {
  auto loaded = load_with(contents_->adapter, *this, {weights, device}, [&](LoadedWeights w) {
    if (hub() == nullptr) return load_language_model_folder(path(), config(), w);
    check_architecture(path(), config().model.architecture, Architecture::decoder_lm, "generation");
    LanguageModelFolder files;
    const int64_t vocab = config().model.vocab;
    files.tokenizer = limited_tokenizer(load_tokenizers(path()).source, vocab);
    files.sampling = read_hub_sampling(path(), hub()->hub_config());
    forget_tokens_beyond(vocab, files.sampling);
    files.tokenizer_frames_texts = true;
    files.model = load_as<DecoderLm>(*hub(), w);
    return files;
  });
  loaded.adapters = read_adapter_choices(adapters, *this, *loaded.model);
  return loaded;
}

ClassifierFolder OpenedFolder::load_classifier(LoadedWeights weights, const Device& device) const {
  return load_with(contents_->adapter, *this, {weights, device}, [&](LoadedWeights w) {
    if (hub() == nullptr) return load_classifier_folder(path(), config(), w);
    check_architecture(path(), config().model.architecture, Architecture::encoder_classifier, "classification");
    ClassifierFolder files;
    fill_encoder(*this, w, files);
    files.max_tokens = std::min(files.max_tokens, ClassifierFolder{}.max_tokens);
    return files;
  });
}

EncoderFolder OpenedFolder::load_encoder(LoadedWeights weights, const Device& device) const {
  return load_with(contents_->adapter, *this, {weights, device}, [&](LoadedWeights w) {
    if (hub() == nullptr) return load_encoder_folder(path(), config(), w);
    check_architecture(path(), config().model.architecture, Architecture::encoder, "embedding");
    EncoderFolder files;
    fill_encoder(*this, w, files);
    return files;
  });
}

MaskedLmFolder OpenedFolder::load_masked_lm(LoadedWeights weights, const Device& device) const {
  return load_with(contents_->adapter, *this, {weights, device}, [&](LoadedWeights w) {
    if (hub() == nullptr) return load_masked_lm_folder(path(), config(), w);
    check_architecture(path(), config().model.architecture, Architecture::encoder_masked_lm, "masked tokens");
    MaskedLmFolder files;
    fill_encoder(*this, w, files);
    return files;
  });
}

ConfigFile open_config(const std::filesystem::path& folder) {
  const OpenedFolder opened(folder);
  if (opened.hub() == nullptr)
    check_parameter_file(opened.path(), opened.config().model, opened.config().weight_format);
  return opened.config();
}

ModelFolder open_model_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  return OpenedFolder(folder).load_model(weights);
}

LanguageModelFolder open_language_model_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  return OpenedFolder(folder).load_language_model(weights);
}

ClassifierFolder open_classifier_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  return OpenedFolder(folder).load_classifier(weights);
}

EncoderFolder open_encoder_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  return OpenedFolder(folder).load_encoder(weights);
}

MaskedLmFolder open_masked_lm_folder(const std::filesystem::path& folder, LoadedWeights weights) {
  return OpenedFolder(folder).load_masked_lm(weights);
}

}  // namespace attune

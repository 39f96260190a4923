#include "attune/train/initial_model.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/sha256.h"
#include "attune/hub/adapter_folder.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "attune/io/parameter_file.h"
#include "attune/models/build.h"
#include "attune/nn/make_panels.h"
#include "attune/nn/parameter_places.h"

namespace attune {
namespace {

// Fields of [model] that decide how a model is trained, or that a new head decides.
constexpr std::array<std::string_view, 10> kFree = {"dropout",
                                                    "attention_dropout",
                                                    "activation_dropout",
                                                    "initialization",
                                                    "embedding_initialization",
                                                    "context_length",
                                                    "labels",
                                                    "label_scores",
                                                    "alignment_layer",
                                                    "alignment_head"};
// Of model.feed_forward: how training keeps the load of experts even.
constexpr std::array<std::string_view, 2> kFreeOfExperts = {"balance_loss", "bias_rate"};
// Of [model]: fields that heads of two kinds share.
constexpr std::array<std::string_view, 3> kSharedHeadFields = {"transform_activation", "transform_bias",
                                                               "transform_norm"};

template <class Names>
bool has(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_encoder(Architecture architecture) {
  return architecture == Architecture::encoder_classifier || architecture == Architecture::encoder_masked_lm ||
         architecture == Architecture::encoder;
}

// Not set: to be taken from tokenizers.
bool is_open(const std::string& key, const Json& value) {
  return (key == "vocab" || key == "source_vocab" || key == "target_vocab") && value == 0;
}

// Whether both values of a field of [model] are the same to the model.
bool is_same(const std::string& key, Json a, Json b) {
  if (key == "feed_forward" && a.is_object() && b.is_object())
    for (const std::string_view name : kFreeOfExperts) {
      a.erase(std::string(name));
      b.erase(std::string(name));
    }
  return a == b;
}

// Loads the model of a folder for training. In int8, matrices that only products and lookups read are kept as panels
// alone, which are made of one matrix after the other.
std::unique_ptr<Module> load(const OpenedFolder& folder, BasePrecision precision) {
  const bool quantised = precision == BasePrecision::int8;
  if (folder.hub() != nullptr)
    return folder.hub()->load(quantised ? LoadedWeights::int8_panels : LoadedWeights::mapped);
  check_parameter_file(folder.path(), folder.config().model);
  std::unique_ptr<Module> model = build_without_values(folder.config().model);
  const SafetensorsReader reader = open_parameters(folder.path() / kParameterFile);
  map_parameters(reader, *model, named_parameters(*model), {});
  if (quantised) {
    make_panels(*model, WeightFormat::int8, {.done = [&](const Tensor& weight) { reader.release_pages(weight); }});
    keep_panels_alone(*model);
  }
  return model;
}

// The matrix of the initial model takes the place of the tensor. Lookups read the panels, products the numbers in them.
void take_matrix(const Parameter& from, Parameter& to) {
  (to.use == ParameterUse::lookup ? to.panels : to.quantised) = from.panels;
  to.tensor = {};
}

}  // namespace

std::filesystem::path initial_model_folder(const std::string& initialize_from) {
  const std::filesystem::path folder = initialize_from, of_run = folder / "model";
  return !is_there(folder / kConfigFile) && is_there(of_run / kConfigFile) ? of_run : folder;
}

InitialModel::InitialModel(const std::string& initialize_from)
    : name_(initialize_from), folder_(initial_model_folder(initialize_from)) {
  if (is_adapter_folder(initialize_from))
    fail<ConfigError>("train.initialize_from = \"{}\": is an adapter; attune merge-adapter makes a model of it", name_);
}

TransformerConfig InitialModel::config_for(Architecture wanted) const {
  const TransformerConfig& own = folder_.config().model;
  if (own.architecture == wanted) return own;
  if (!is_encoder(own.architecture) || !is_encoder(wanted))
    fail<ConfigError>("model.architecture = \"{}\": train.initialize_from = \"{}\" is an \"{}\"", enum_name(wanted),
                      name_, enum_name(own.architecture));
  // Takes the fields that both have, except those of heads: a new head has its defaults.
  TransformerConfig config = default_config(wanted).model, of_own = own;
  const Json stored = write_fields(of_own), known = write_fields(config);
  Json common = Json::object();
  for (const auto& [key, value] : stored.items())
    if (known.contains(key) && key != "architecture" && !has(kSharedHeadFields, key)) common[key] = value;
  read_fields(common, config, "model");
  return config;
}

Json InitialModel::sections(Architecture wanted) const {
  const TransformerConfig model = config_for(wanted);
  const std::filesystem::path& path = folder_.path();
  const HubFolder* const hub = folder_.hub();
  Json sections = {{"model", write_fields(model)}};
  bool frames = hub != nullptr;
  if (wanted == Architecture::encoder_decoder) {
    sections["generation"] =
        write_fields(hub != nullptr ? read_hub_generation(path, hub->hub_config()) : read_translation_settings(path));
    sections["data"] = {
        {"max_tokens_per_sentence", std::min(DataConfig{}.max_tokens_per_sentence, model.longest_sequence())}};
    return sections;
  }
  Json data = Json::object();
  if (wanted == Architecture::decoder_lm) {
    LanguageModelFolder settings;
    if (hub != nullptr) {
      settings.sampling = read_hub_sampling(path, hub->hub_config());
    } else {
      settings = read_language_model_settings(path);
      data["text_unit"] = enum_name(settings.text_unit);
      frames = settings.tokenizer_frames_texts;
    }
    sections["sampling"] = write_fields(settings.sampling);
  } else {
    int64_t max_tokens = std::min(DataConfig{}.max_tokens, model.longest_sequence());
    if (hub == nullptr) {
      const ClassifierFolder settings = read_encoder_settings(path);
      frames = settings.tokenizer_frames_texts;
      if (architecture() == Architecture::encoder_classifier) max_tokens = settings.max_tokens;
    }
    data["max_tokens"] = max_tokens;
  }
  data["tokenizer_frames_texts"] = frames;
  sections["data"] = std::move(data);
  return sections;
}

void InitialModel::check(const RunConfig& config) const {
  if (folder_.config().weight_format) refuse_panels(folder_.path(), "training");
  const Architecture wanted = config.model.architecture;
  const Json here = write_fields(config.model), there = write_fields(config_for(wanted));
  const Json own = write_fields(folder_.config().model);
  for (const auto& [key, value] : here.items()) {
    const bool of_new_head = wanted != architecture() && (!own.contains(key) || has(kSharedHeadFields, key));
    if (is_same(key, value, there.at(key)) || of_new_head || has(kFree, key) || is_open(key, value)) continue;
    if (key == "architecture") continue;  // config_for() has accepted it
    fail<ConfigError>("model.{} = {}: train.initialize_from = \"{}\" has {}", key, show(value), name_,
                      show(there.at(key)));
  }
}

bool InitialModel::has_all_parameters(const RunConfig& config) const {
  return config.model.architecture == architecture() && config.model.labels == folder_.config().model.labels;
}

FilledModel InitialModel::fill(const RunConfig& config, Module& model) const {
  const std::unique_ptr<Module> initial =
      load(folder_, config.lora.on() ? config.lora.base_precision : BasePrecision{});
  std::map<std::string, const Parameter*> values;
  for (const auto& [name, parameter] : places_of(*initial)) values.emplace(name, parameter);
  const bool new_head = config.model.labels != folder_.config().model.labels;
  const ParameterPlaces places = places_of(model);
  std::set<const void*> seen;
  std::vector<std::string> missing;
  for (const auto& [name, parameter] : places) {
    if (!parameter->defined()) continue;
    const bool is_first = seen.insert(address_of(*parameter)).second;
    const auto found = values.find(name);
    if (found == values.end() || !found->second->defined() || (new_head && name.starts_with("head."))) {
      if (is_first) missing.push_back(name);
      continue;
    }
    const Parameter& value = *found->second;
    if (shape_of(value) != shape_of(*parameter))
      fail<ConfigError>("train.initialize_from = \"{}\": {} is {} there and {} here", name_, name,
                        shape_of(value).text(), shape_of(*parameter).text());
    if (!value.tensor.defined())
      take_matrix(value, *parameter);
    else if (is_first)
      parameter->tensor.copy_from(value.tensor.to(parameter->tensor.dtype()));
  }
  constexpr size_t kShown = 8;
  std::string message =
      fmt::format("{} of {} parameters from {}", seen.size() - missing.size(), seen.size(), folder_.path().string());
  if (!missing.empty())
    message += fmt::format("; new: {}{}", fmt::join(std::span(missing).first(std::min(missing.size(), kShown)), ", "),
                           missing.size() > kShown ? ", ..." : "");
  return {.new_names = std::move(missing), .message = std::move(message)};
}

std::string InitialModel::sha256_of_samples() const {
  constexpr size_t kSample = 4096, kSamples = 256;
  std::vector<std::filesystem::path> files = {folder_.path() / kParameterFile};
  if (!is_there(files[0])) {  // shards, or PyTorch's files
    files.clear();
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (const std::string name = entry.path().filename().string();
          is_there(entry.path()) && (name.starts_with("model-") || name.starts_with("pytorch_model")))
        files.push_back(entry.path());
  }
  std::ranges::sort(files);
  Sha256 hash;
  for (const std::filesystem::path& file : files) {
    const MappedFile content(file);
    const std::span<const std::byte> bytes = content.bytes();
    hash.update(fmt::format("{} {}", file.filename().string(), bytes.size()));
    const size_t apart = std::max(kSample, bytes.size() / kSamples);
    for (size_t at = 0; at < bytes.size(); at += apart)
      hash.update(bytes.data() + at, std::min(kSample, bytes.size() - at));
  }
  return hash.hex();
}

}  // namespace attune

#include "attune/hub/hub_folder.h"

#include <algorithm>
#include <iterator>

#include "attune/base/json_fields.h"
#include "attune/hub/families.h"
#include "attune/hub/parameter_reader.h"
#include "attune/io/config_json.h"
#include "attune/io/json_file.h"
#include "attune/models/build.h"
#include "attune/nn/make_panels.h"

namespace attune {
namespace {

HubConfig read_hub_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kConfigFile;
  return {read_json_file(path), path.string()};
}

// Throws when the files have fewer numbers than the model.
void check_size(const TransformerConfig& config, const HubTensors& tensors) {
  const int64_t needed = count_parameters(config).total();
  if (tensors.element_count() < needed)
    fail<FileError>("{}: holds {} numbers, but config.json (d_model = {}, layers = {}, d_ff = {}) needs {}",
                    tensors.folder(), tensors.element_count(), config.d_model, config.layers, config.d_ff, needed);
}

}  // namespace

std::variant<HubFolder, ConfigFile> HubFolder::open(const std::filesystem::path& folder,
                                                    const std::optional<StoredHead>& head) {
  HubConfig config = read_hub_config(folder);
  if (config.text("model_type") == kModelType) return config_of(config.json(), config.where());
  return HubFolder(folder, std::move(config), head);
}

HubFolder::HubFolder(const std::filesystem::path& folder) : HubFolder(folder, read_hub_config(folder), {}) {}

HubFolder::HubFolder(const std::filesystem::path& folder, HubConfig config, const std::optional<StoredHead>& head)
    : hub_(std::move(config)),
      family_(family_of(hub_)),
      class_(class_of(hub_, family_)),
      tensors_(folder, family_.prefix) {
  if (head) add_head(*head);
  config_ = translate(head);
  if (take_tied_embedding()) config_ = translate(head);
  check_size(config_, tensors_);
}

TransformerConfig HubFolder::translate(const std::optional<StoredHead>& head) const {
  const std::vector<std::string> labels = head ? head->labels : std::vector<std::string>{};
  try {
    TransformerConfig config = family_.translate(files());
    if (!labels.empty() && labels.size() != config.labels.size())
      fail<ConfigError>("the head has {} outputs, and names for {} labels", config.labels.size(), labels.size());
    if (!labels.empty()) config.labels = labels;
    if (head && head->is_regression) config.label_scores = LabelScores::none;
    if (head) read_fields(head->form, config, head->file.path().string() + ": metadata");
    config.validate();
    return config;
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    if (text.starts_with(hub_.where())) throw;
    fail<ConfigError>("{}: {}", hub_.where(), text);
  }
}

// safetensors writes a matrix of two names under one of them, not always the embedding's; transformers reads either
// (tie_weights() of modeling_utils.py).
bool HubFolder::take_tied_embedding() {
  if (!is_tied(hub_, family_)) return false;
  const NameTable table = family_.names(config_, files());
  const auto name_of = [&](const char* parameter) {
    const std::optional<Place> place = attune::place_of(parameter, table);
    return place && place->theirs.size() == 1 ? place->theirs.front() : "";
  };
  const bool pairs = config_.architecture == Architecture::encoder_decoder;
  const std::string embedding = name_of(pairs ? "source_embedding.weight" : "embedding.weight");
  const std::string projection = name_of("projection.weight");
  if (embedding.empty() || projection.empty() || tensors_.contains(embedding) || !tensors_.contains(projection))
    return false;
  tensors_.move(projection, embedding);
  return true;
}

// There are as many labels as the head has outputs; a classifier's own names of as many stay.
void HubFolder::add_head(const StoredHead& head) {
  Json json = hub_.json();
  if (class_.architecture != Architecture::encoder_classifier) {
    const auto found = std::ranges::find_if(family_.classes, [](const HubClass& c) {
      return c.architecture == Architecture::encoder_classifier && !c.model_type.empty();
    });
    if (found == family_.classes.end()) hub_.refuse("model_type", "has no class with a head for labels");
    class_ = *found;
    json["architectures"] = {class_.name};
    json["num_labels"] = 2;
    json.erase("id2label");
    hub_ = HubConfig(json, hub_.where());
  }
  tensors_.add(head.file, head.tensors);
  const std::optional<Place> place = attune::place_of("head.weight", family_.names(translate(), files()));
  const std::string name = place && !place->theirs.empty() ? place->theirs.front() : "";
  const std::string stored = tensors_.stored_name(name);
  if (stored.empty()) fail<FileError>("{}: has no tensor {}", head.file.path().string(), in_quotes(name));
  const Shape shape = tensors_.shape(stored);
  const int64_t labels = shape.rank() == 2 ? shape[0] : 0;
  json["num_labels"] = labels;
  if (json.contains("id2label") && static_cast<int64_t>(json["id2label"].size()) != labels) json.erase("id2label");
  hub_ = HubConfig(json, hub_.where());
}

HubFiles HubFolder::files() const {
  return {.config = hub_, .tensors = tensors_, .architecture = class_.architecture, .class_name = class_.name};
}

std::vector<FoundParameter> HubFolder::found_in(Module& model) const {
  std::vector<std::string> ignored = family_.ignored;
  if (family_.ignored_too) std::ranges::copy(family_.ignored_too(files()), std::back_inserter(ignored));
  return find_parameters(model, family_.names(config_, files()), tensors_, ignored);
}

void HubFolder::fill(Module& model, LoadedWeights weights) const {
  ParameterReader reader(model, found_in(model), tensors_, weights);
  reader.fill();
  if (!are_panels(weights)) return;
  make_panels(model, panel_format(weights),
              {.read = [&](const Tensor& weight) { return reader.read(weight); },
               .done = [&](const Tensor& weight) { tensors_.release_pages(weight); }});
  keep_panels_alone(model);
}

std::optional<Place> HubFolder::place_of(const std::string& parameter) const {
  return attune::place_of(parameter, family_.names(config_, files()));
}

void HubFolder::check() const {
  found_in(*build_without_values(config_));
}

std::unique_ptr<Module> HubFolder::load(LoadedWeights weights) const {
  std::unique_ptr<Module> model = build_without_values(config_);
  fill(*model, weights);
  return model;
}

}  // namespace attune

#include "attune/hub/adapter_folder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/hub/adapter_file.h"
#include "attune/hub/hub_config.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/parameter_writer.h"
#include "attune/io/config_file.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/encoder_classifier.h"
#include "attune/nn/adapters/adapters.h"
#include "attune/tensor/host_view.h"

namespace attune {
namespace {

constexpr std::string_view kWeight = ".weight";
constexpr uint64_t kMaxConfigBytes = uint64_t{16} << 20;  // a mixture has 100,000 names of projections
// In the metadata of the tensors: a JSON list of texts; transformers' name of what a head is for.
constexpr const char* kLabels = "labels";
constexpr const char* kProblem = "problem_type";
constexpr const char* kRegression = "regression";
// A JSON object of these fields of [model]: what a head reads of a text's states.
constexpr const char* kHead = "head";
constexpr std::array kHeadFields = {"pooling", "pooler", "transform_activation", "transform_bias", "transform_norm"};

// Where the base model's family has a projection.
struct ModulePlace {
  std::vector<std::string> modules;  // whose outputs, one after the other, are the projection's
  Transform transform;
};

std::string without_weight(const std::string& name) {
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : name;
}

// None for Attune's own models and where the family has no such parameter.
std::optional<Place> hub_place(const OpenedFolder& base, const std::string& parameter) {
  return base.hub() == nullptr ? std::nullopt : base.hub()->place_of(parameter);
}

ModulePlace modules_of(const OpenedFolder& base, const std::string& projection) {
  const auto found = hub_place(base, projection + std::string(kWeight));
  if (!found) return {.modules = {projection}, .transform = {}};
  ModulePlace place{.modules = {}, .transform = found->transform};
  for (const std::string& name : found->theirs) place.modules.push_back(without_weight(name));
  return place;
}

// The name that a parameter of a new head has in the file.
std::string stored_name(const OpenedFolder& base, const std::string& parameter) {
  const auto found = hub_place(base, parameter);
  const bool same = found && found->theirs.size() == 1 && !found->transform.transposed && !found->transform.part;
  return std::string(kAdapterPrefix) + (same ? found->theirs.front() : parameter);
}

std::vector<float> values_of(const Tensor& x) {
  const HostView view(x);
  const auto values = view.as<float>();
  return {values.begin(), values.end()};
}

Tensor matrix(int64_t rows, int64_t columns, const std::vector<float>& values) {
  const Tensor x = Tensor::empty({rows, columns});
  x.assign(std::span<const float>(values));
  return x;
}

const char* task_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::decoder_lm:
      return "CAUSAL_LM";
    case Architecture::encoder_decoder:
      return "SEQ_2_SEQ_LM";
    case Architecture::encoder_classifier:
      return kClassificationTask;
    case Architecture::encoder_masked_lm:
    case Architecture::encoder:
      break;
  }
  return "FEATURE_EXTRACTION";
}

// The module that PEFT stores and expects beside every classifier's adapters, of which this is a parameter; "" where it
// is of none. PeftModelForSequenceClassification (peft_model.py) saves whole modules whose names end with these.
std::string classifier_module(const std::string& name) {
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', dot + 1)) {
    const std::string module = name.substr(0, dot);
    if (module.ends_with("classifier") || module.ends_with("score")) return module;
  }
  return "";
}

std::vector<std::string> labels_of(const std::string& list, const std::string& file) {
  const std::string where = file + ": metadata";
  return HubConfig(Json{{kLabels, parse_json(list, where)}}, where).texts(kLabels);
}

// The fields of a head among others.
Json head_of(const Json& fields) {
  Json head = Json::object();
  for (const char* name : kHeadFields)
    if (fields.contains(name)) head[name] = fields.at(name);
  return head;
}

// Projections whose rows are stored in the same modules of the base model: queries, keys and values of GPT-2, say.
struct ProjectionGroup {
  struct Part {
    AdapterSlot slot;
    Transform transform;
  };
  std::vector<std::string> modules;  // whose outputs, one after the other, are the rows
  std::vector<Part> parts;
  int64_t rows = 0;

  int64_t rows_of_module() const { return rows / static_cast<int64_t>(modules.size()); }
};

std::vector<ProjectionGroup> groups_of(Module& module, const OpenedFolder& base) {
  std::vector<ProjectionGroup> groups;
  std::map<std::vector<std::string>, size_t> numbers;
  for (const AdapterSlot& slot : adapter_slots(module)) {
    const ModulePlace place = modules_of(base, slot.name);
    const auto [number, is_new] = numbers.emplace(place.modules, groups.size());
    if (is_new) groups.push_back({.modules = place.modules, .parts = {}});
    ProjectionGroup& group = groups[number->second];
    group.parts.push_back({slot, place.transform});
    group.rows = std::max(group.rows, stored_row_count(slot.out(), place.transform));
  }
  return groups;
}

// An adapter of some rows of a product: stored_row(r, rows) for row r of B.
struct AdapterPart {
  StoredAdapter adapter;
  Transform rows;
};

// One adapter that adds to the rows what the parts add to theirs: A of all parts one below the other, and B with zeros
// elsewhere. Its scale is the largest of the parts' scales, any of which may be 0.
StoredAdapter joined(const std::vector<AdapterPart>& parts, int64_t out) {
  StoredAdapter all{.a = {}, .b = {}, .scale = 0, .name = parts.front().adapter.name};
  int64_t rank = 0;
  std::vector<float> a;
  for (const auto& [part, rows] : parts) {
    const std::vector<float> values = values_of(part.a);
    a.insert(a.end(), values.begin(), values.end());
    rank += part.a.size(0);
    if (std::abs(part.scale) > std::abs(all.scale)) all.scale = part.scale;
  }
  std::vector<float> b(static_cast<size_t>(out * rank));
  int64_t column = 0;
  for (const auto& [part, rows] : parts) {
    const std::vector<float> values = values_of(part.b);
    const auto factor = all.scale == 0 ? 1.0f : static_cast<float>(part.scale / all.scale);
    const int64_t own = part.b.size(1);
    for (int64_t row = 0; row < part.b.size(0); ++row)
      for (int64_t c = 0; c < own; ++c) {
        const int64_t at = stored_row(row, rows) * rank + column + c;
        b[static_cast<size_t>(at)] = factor * values[static_cast<size_t>(row * own + c)];
      }
    column += own;
  }
  all.a = matrix(rank, parts.front().adapter.a.size(1), a);
  all.b = matrix(out, rank, b);
  return all;
}

// The rows of B that are a projection's own, where it is a part of the family's.
Tensor own_rows(const Tensor& b, const Transform& t, int64_t out) {
  if (!t.part) return b;
  std::vector<float> taken;
  const std::vector<float> all = values_of(b);
  const int64_t columns = b.size(1);
  for (int64_t row = 0; row < out; ++row) {
    const auto begin = all.begin() + stored_row(row, t) * columns;
    taken.insert(taken.end(), begin, begin + columns);
  }
  return matrix(out, columns, taken);
}

// The adapter of a module with so many outputs; undefined where there is none.
StoredAdapter read_module(AdapterFile& file, const std::string& module, int64_t in, int64_t out) {
  StoredAdapter stored = file.stored(module, in);
  if (stored.a.defined() && stored.b.size(0) != out)
    fail<FileError>("{}: the adapter of {} has {} outputs, the module has {}", file.path(), module, stored.b.size(0),
                    out);
  return stored;
}

// The adapter of a projection of the group; undefined where there is none.
StoredAdapter read_part(AdapterFile& file, const ProjectionGroup& group, const ProjectionGroup::Part& projection) {
  const auto& [slot, transform] = projection;
  const int64_t out = slot.out(), in = slot.in(), step = group.rows_of_module();
  if (StoredAdapter own = read_module(file, slot.name, in, out); own.a.defined()) return own;
  std::vector<AdapterPart> parts;
  for (size_t i = 0; i < group.modules.size(); ++i) {
    StoredAdapter part = read_module(file, group.modules[i], in, step);
    if (!part.a.defined()) continue;
    part.b = own_rows(part.b, transform, out);
    parts.push_back({std::move(part), {.part = true, .first = static_cast<int64_t>(i) * step}});
  }
  return parts.empty() ? StoredAdapter{} : joined(parts, out);
}

// Calls use(slot, adapter) for each projection that has one in the file.
template <class Use>
void for_each_adapter(AdapterFile& file, const OpenedFolder& base, Module& module, Use&& use) {
  for (const ProjectionGroup& group : groups_of(module, base))
    for (const ProjectionGroup::Part& part : group.parts)
      if (const StoredAdapter found = read_part(file, group, part); found.a.defined()) use(part.slot, found);
}

// Inputs of experts are not the rows of a batch, and those of a head are not all of them.
void check_choice(const AdapterSlot& slot, const StoredAdapter& found, const std::string& path) {
  if (slot.weight->use != ParameterUse::product)
    fail<ConfigError>(
        "{}: tensor {} adapts {}, whose weight is read by more than this product; requests cannot choose "
        "such an adapter, it has to be merged",
        path, in_quotes(found.name), slot.name);
  if (slot.name.find(".layers.") == std::string::npos || slot.name.find(".experts.") != std::string::npos)
    fail<ConfigError>(
        "{}: adapts {}; requests can only choose adapters of projections in the layers, except experts; merge this "
        "adapter into the model instead",
        path, slot.name);
}

}  // namespace

void write_adapter(const std::filesystem::path& folder, Module& module, const AdapterDescription& d) {
  make_directories(folder);
  const LoraConfig& lora = d.lora;
  std::vector<NamedTensor> tensors;
  std::set<std::string> targets, heads;
  Json ranks = Json::object(), alphas = Json::object();
  bool transposed = false;
  for (const ProjectionGroup& group : groups_of(module, d.base)) {
    std::vector<AdapterPart> parts;
    for (const auto& [slot, transform] : group.parts)
      if (const Adapter& own = *slot.adapter; own.there())
        parts.push_back({{.a = own.a(), .b = own.b(), .scale = own.scale()}, transform});
    if (parts.empty()) continue;
    const StoredAdapter adapter = joined(parts, group.rows);
    const int64_t rank = adapter.a.size(0), step = group.rows_of_module();
    const double r = static_cast<double>(rank);
    const double alpha = adapter.scale * (lora.rank_stabilized ? std::sqrt(r) : r);
    transposed = transposed || group.parts.front().transform.transposed;
    int64_t first = 0;
    for (const std::string& name : group.modules) {
      tensors.push_back({std::string(kAdapterPrefix) + name + ".lora_A.weight", adapter.a});
      tensors.push_back({std::string(kAdapterPrefix) + name + ".lora_B.weight", adapter.b.rows(first, first + step)});
      targets.insert(name);
      if (rank != lora.rank) ranks[name] = rank;
      if (std::abs(alpha - lora.alpha_in_use()) > 1e-9 * alpha) alphas[name] = alpha;
      first += step;
    }
  }
  const auto* const classifier = dynamic_cast<const EncoderClassifier*>(&module);
  for (const NamedParameter& p : named_parameters(module)) {
    if (is_of_adapter(p.name)) continue;
    const std::string name = stored_name(d.base, p.name), own = name.substr(kAdapterPrefix.size());
    const std::string module_of_head = classifier == nullptr ? "" : classifier_module(own);
    if (module_of_head.empty() && std::ranges::find(d.saved, p.name) == d.saved.end()) continue;
    tensors.push_back({name, p.tensor->detach().to(Device{})});
    heads.insert(module_of_head.empty() ? own.substr(0, own.rfind('.')) : module_of_head);
  }
  Json config = {{"peft_type", "LORA"},
                 {"task_type", task_of(d.base.config().model.architecture)},
                 {"base_model_name_or_path", std::filesystem::absolute(d.base.path()).lexically_normal().string()},
                 {"r", lora.rank},
                 {"lora_alpha", lora.alpha_in_use()},
                 {"rank_pattern", ranks},
                 {"alpha_pattern", alphas},
                 {"use_rslora", lora.rank_stabilized},
                 {"lora_dropout", lora.dropout},
                 {"bias", "none"},
                 {"fan_in_fan_out", transposed},
                 {"target_modules", targets},
                 {"inference_mode", true}};
  if (!heads.empty()) {
    config["modules_to_save"] = heads;
    config["task_type"] = task_of(Architecture::encoder_classifier);
  }
  write_json_file(folder / kAdapterConfigFile, config);
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  if (!heads.empty() && !d.labels.empty()) metadata[kLabels] = show(Json(d.labels));
  if (!heads.empty() && d.is_regression) metadata[kProblem] = kRegression;
  if (!heads.empty() && classifier != nullptr) metadata[kHead] = show(head_of(write_fields(classifier->config())));
  write_safetensors(folder / kAdapterFile, tensors, metadata);
}

bool is_adapter_folder(const std::filesystem::path& folder) {
  return is_there(folder / kAdapterConfigFile) && !is_there(folder / kConfigFile);
}

HubConfig read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAdapterConfigFile;
  return {read_json_file(path, kMaxConfigBytes), path.string()};
}

std::filesystem::path adapter_base(const std::filesystem::path& folder) {
  const HubConfig config = read_adapter_config(folder);
  const std::filesystem::path named = config.text("base_model_name_or_path");
  for (const std::filesystem::path& base : {folder / named, named})  // PEFT writes what its user said
    if (!named.empty() && is_there(base / kConfigFile)) return base.lexically_normal();
  config.refuse("base_model_name_or_path", "is no folder of a model here");
}

std::optional<ChatTemplate> open_chat_template(const std::filesystem::path& folder) {
  if (!is_adapter_folder(folder)) return ChatTemplate::load(folder);
  const std::filesystem::path base = adapter_base(folder);
  std::optional<ChatTemplate> own = ChatTemplate::load(folder, base);
  return own ? std::move(own) : ChatTemplate::load(base);
}

std::optional<StoredHead> head_of_adapter(const std::filesystem::path& folder) {
  if (read_adapter_config(folder).text("task_type", "") != kClassificationTask) return std::nullopt;
  StoredHead head{.file = SafetensorsReader(folder / kAdapterFile), .tensors = {}, .labels = {}};
  for (const std::string& name : head.file.names()) {
    if (!name.starts_with(kAdapterPrefix) || name.find(".lora_") != std::string::npos) continue;
    head.tensors.push_back(name.substr(kAdapterPrefix.size()));
    head.file.rename(name, head.tensors.back());
  }
  if (head.tensors.empty()) return std::nullopt;
  const std::map<std::string, std::string>& metadata = head.file.metadata();
  const std::string file = head.file.path().string();
  if (const auto labels = metadata.find(kLabels); labels != metadata.end())
    head.labels = labels_of(labels->second, file);
  const auto problem = metadata.find(kProblem);
  head.is_regression = problem != metadata.end() && problem->second == kRegression;
  if (const auto form = metadata.find(kHead); form != metadata.end())
    head.form = head_of(HubConfig(parse_json(form->second, file + ": metadata"), file + ": metadata").json());
  return head;
}

void read_adapter(const std::filesystem::path& folder, const OpenedFolder& base, Module& module) {
  // A run that trains a new head has a classifier of a base model that is none.
  AdapterFile file(folder, dynamic_cast<EncoderClassifier*>(&module) != nullptr);
  for_each_adapter(file, base, module, [&](const AdapterSlot& slot, const StoredAdapter& found) {
    if (slot.weight->panels && !slot.weight->tensor.defined())
      fail<ConfigError>("{}: the model's weights are panels; an adapter needs the model that they were made from",
                        slot.name);
    slot.adapter->set(found.a, found.b, found.scale, file.dropout());
  });
  for (const NamedParameter& p : named_parameters(module))
    if (!is_of_adapter(p.name)) file.fill(stored_name(base, p.name), *p.tensor);
  file.refuse_unknown();
}

std::vector<std::string> read_adapter_choices(const AdapterFolders& folders, const OpenedFolder& base, Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, folder] : folders) {
    AdapterFile file(folder, false);
    for_each_adapter(file, base, module, [&](const AdapterSlot& slot, const StoredAdapter& found) {
      check_choice(slot, found, file.path());
      const Parameter& weight = *slot.weight;
      const Device device = weight.tensor.defined() ? weight.tensor.device() : weight.panels->storage().device();
      slot.adapter->add_choice(static_cast<int32_t>(names.size()), found.a.to(device), found.b.to(device), found.scale);
    });
    file.refuse_unknown();
    names.push_back(name);
  }
  return names;
}

}  // namespace attune

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

// The rows of B that are a projection's own, where it is a part of the family's.
Tensor own_rows(const Tensor& b, const Transform& t, int64_t out, const std::string& module) {
  if (!t.part) return b;
  const bool fits =
      t.period == 0 ? t.first + out <= b.size(0) : t.run > 0 && out % t.run == 0 && b.size(0) == out / t.run * t.period;
  if (!fits)
    fail<FileError>("the adapter of {} has {} outputs, which do not hold {} of its part", module, b.size(0), out);
  if (t.period == 0) return b.rows(t.first, t.first + out);
  std::vector<float> taken;
  const std::vector<float> all = values_of(b);
  const int64_t columns = b.size(1);
  for (int64_t begin = t.first; static_cast<int64_t>(taken.size()) < out * columns; begin += t.period)
    taken.insert(taken.end(), all.begin() + begin * columns, all.begin() + (begin + t.run) * columns);
  return matrix(out, columns, taken);
}

// One adapter that adds to each range of outputs what the parts add there: A of all parts one below the other, and B
// with zeros elsewhere.
StoredAdapter joined(const std::vector<StoredAdapter>& parts, int64_t out) {
  int64_t rank = 0;
  const int64_t in = parts.front().a.size(1);
  std::vector<float> a;
  for (const StoredAdapter& part : parts) {
    const std::vector<float> values = values_of(part.a);
    a.insert(a.end(), values.begin(), values.end());
    rank += part.a.size(0);
  }
  std::vector<float> b(static_cast<size_t>(out * rank));
  int64_t column = 0;
  for (const StoredAdapter& part : parts) {
    const std::vector<float> values = values_of(part.b);
    const auto factor = static_cast<float>(part.scale / parts.front().scale);
    for (int64_t r = 0; r < part.b.size(0); ++r)
      for (int64_t c = 0; c < part.b.size(1); ++c)
        b[static_cast<size_t>((part.first + r) * rank + column + c)] =
            factor * values[static_cast<size_t>(r * part.b.size(1) + c)];
    column += part.a.size(0);
  }
  return {
      .a = matrix(rank, in, a), .b = matrix(out, rank, b), .scale = parts.front().scale, .name = parts.front().name};
}

// The adapter of a projection; undefined where there is none.
StoredAdapter read_slot(AdapterFile& file, const OpenedFolder& base, const AdapterSlot& slot) {
  const int64_t out = slot.out(), in = slot.in();
  ModulePlace place = modules_of(base, slot.name);
  std::vector<StoredAdapter> parts;
  if (StoredAdapter own = file.stored(slot.name, in); own.a.defined()) {
    place = {.modules = {slot.name}, .transform = {}};
    parts.push_back(std::move(own));
  } else {
    const int64_t step = out / static_cast<int64_t>(place.modules.size());
    for (size_t i = 0; i < place.modules.size(); ++i) {
      StoredAdapter part = file.stored(place.modules[i], in);
      if (!part.a.defined()) continue;
      part.b = own_rows(part.b, place.transform, out, slot.name);
      part.first = static_cast<int64_t>(i) * step;
      parts.push_back(std::move(part));
    }
  }
  for (const StoredAdapter& part : parts)
    if (part.first + part.b.size(0) > out || (place.modules.size() == 1 && part.b.size(0) != out))
      fail<FileError>("{}: the adapter of {} has {} outputs, the projection {}", file.path(), slot.name, part.b.size(0),
                      out);
  return parts.empty() ? StoredAdapter{} : joined(parts, out);
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
        "{}: adapts {}; requests can choose adapters of the layers' projections but experts, others have to be merged",
        path, slot.name);
}

// Projections whose rows are stored in the same modules of the base model: queries, keys and values of GPT-2, say.
struct ProjectionGroup {
  struct Part {
    const Adapter* adapter;  // null: a parameter without one
    Transform transform;
  };
  std::vector<std::string> modules;  // whose outputs, one after the other, are the rows
  std::vector<Part> parts;
  int64_t rows = 0;
};

std::vector<ProjectionGroup> groups_of(Module& module, const OpenedFolder& base) {
  std::vector<ProjectionGroup> groups;
  std::map<std::vector<std::string>, size_t> numbers;
  for (const AdapterSlot& slot : adapter_slots(module)) {
    const ModulePlace place = modules_of(base, slot.name);
    const auto [number, is_new] = numbers.emplace(place.modules, groups.size());
    if (is_new) groups.push_back({.modules = place.modules, .parts = {}});
    ProjectionGroup& group = groups[number->second];
    group.parts.push_back({slot.adapter->there() ? slot.adapter : nullptr, place.transform});
    group.rows = std::max(group.rows, stored_row_count(slot.out(), place.transform));
  }
  std::erase_if(groups, [](const ProjectionGroup& group) {
    return std::ranges::none_of(group.parts, [](const auto& part) { return part.adapter != nullptr; });
  });
  return groups;
}

// The adapters of a group as one: A of all parts one below the other, and B with zeros elsewhere.
StoredAdapter joined(const ProjectionGroup& group) {
  StoredAdapter all;
  int64_t rank = 0, in = 0;
  std::vector<float> a;
  for (const auto& [adapter, transform] : group.parts) {
    if (adapter == nullptr) continue;
    if (rank == 0) all.scale = adapter->scale();
    const std::vector<float> values = values_of(adapter->a());
    a.insert(a.end(), values.begin(), values.end());
    rank += adapter->rank();
    in = adapter->a().size(1);
  }
  std::vector<float> b(static_cast<size_t>(group.rows * rank));
  int64_t column = 0;
  for (const auto& [adapter, transform] : group.parts) {
    if (adapter == nullptr) continue;
    const std::vector<float> values = values_of(adapter->b());
    const auto factor = static_cast<float>(adapter->scale() / all.scale);
    const int64_t count = adapter->b().size(0), own = adapter->rank();
    for (int64_t row = 0; row < count; ++row)
      for (int64_t c = 0; c < own; ++c) {
        const int64_t at = stored_row(row, transform) * rank + column + c;
        b[static_cast<size_t>(at)] = factor * values[static_cast<size_t>(row * own + c)];
      }
    column += own;
  }
  all.a = matrix(rank, in, a);
  all.b = matrix(group.rows, rank, b);
  return all;
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
    const StoredAdapter adapter = joined(group);
    const int64_t rank = adapter.a.size(0), step = group.rows / static_cast<int64_t>(group.modules.size());
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

std::filesystem::path adapter_base(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAdapterConfigFile;
  const HubConfig config(read_json_file(path), path.string());
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
  const std::filesystem::path path = folder / kAdapterConfigFile;
  if (HubConfig(read_json_file(path), path.string()).text("task_type", "") != kClassificationTask) return std::nullopt;
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
  for (const AdapterSlot& slot : adapter_slots(module)) {
    if (slot.weight->panels && !slot.weight->tensor.defined())
      fail<ConfigError>("{}: the model's weights are panels; an adapter needs the model that they were made from",
                        slot.name);
    const StoredAdapter found = read_slot(file, base, slot);
    if (found.a.defined()) slot.adapter->set(found.a, found.b, found.scale, file.dropout());
  }
  for (const NamedParameter& p : named_parameters(module))
    if (!is_of_adapter(p.name)) file.fill(stored_name(base, p.name), *p.tensor);
  file.refuse_unknown();
}

std::vector<std::string> read_adapter_choices(const AdapterFolders& folders, const OpenedFolder& base, Module& module) {
  std::vector<std::string> names;
  for (const auto& [name, folder] : folders) {
    AdapterFile file(folder, false);
    for (const AdapterSlot& slot : adapter_slots(module)) {
      const StoredAdapter found = read_slot(file, base, slot);
      if (!found.a.defined()) continue;
      check_choice(slot, found, file.path());
      const Parameter& weight = *slot.weight;
      const Device device = weight.tensor.defined() ? weight.tensor.device() : weight.panels->storage().device();
      slot.adapter->add_choice(static_cast<int32_t>(names.size()), found.a.to(device), found.b.to(device), found.scale);
    }
    file.refuse_unknown();
    names.push_back(name);
  }
  return names;
}

}  // namespace attune

#include "attune/hub/adapter_file.h"

#include <cmath>

#include "attune/base/fail.h"
#include "attune/hub/adapter_folder.h"
#include "attune/ops/linear/precision.h"

namespace attune {

AdapterFile::AdapterFile(const std::filesystem::path& folder, bool is_classifier)
    : config_(read_adapter_config(folder)), reader_(folder / kAdapterFile) {
  if (config_.text("peft_type") != "LORA") config_.refuse("peft_type", "is not supported, needs \"LORA\"");
  if (config_.text("task_type", "") == kClassificationTask && !is_classifier)
    config_.refuse("task_type", "needs a base model that has a head for labels; a run's model folder has its own");
  config_.require("bias", "none");
  for (const char* field : {"use_dora", "use_qalora", "lora_bias"}) config_.require(field, false);
  refuse_changed_base();
  const HubConfig patterns = config_.table("alpha_pattern");
  for (const auto& [key, value] : patterns.json().items())
    alphas_.push_back({.modules = huggingface::make_regex("^(.*\\.)?(" + key + ")$", patterns.where()),
                       .alpha = patterns.number(key)});
  for (const char* field : {"alora_invocation_tokens", "layer_replication", "kasa_config", "velora_config"})
    if (config_.has(field)) config_.refuse(field, "is not supported");
}

// With these, PEFT changes the weights of the base model when it loads an adapter.
void AdapterFile::refuse_changed_base() const {
  const std::string field = "init_lora_weights";
  if (!config_.has_text(field)) return;
  for (const char* method : {"pissa", "olora", "OLoRA", "corda", "loftq"})
    if (config_.text(field).starts_with(method))
      config_.refuse(field, "changes the base model, which is not supported; PEFT can save most of them as LoRA");
}

StoredAdapter AdapterFile::stored(const std::string& module, int64_t in) {
  const std::string a_name = std::string(kAdapterPrefix) + module + ".lora_A.weight";
  const std::string b_name = std::string(kAdapterPrefix) + module + ".lora_B.weight";
  if (!reader_.contains(a_name) && !reader_.contains(b_name)) return {};
  StoredAdapter stored{.a = load(a_name), .b = load(b_name), .name = a_name};
  if (stored.a.rank() != 2 || stored.b.rank() != 2 || stored.a.size(1) != in || stored.a.size(0) < 1 ||
      stored.a.size(0) != stored.b.size(1))
    fail<FileError>("{}: tensors {} and {} have shapes {} and {}, expected [rank, {}] and [outputs, rank]",
                    reader_.path().string(), in_quotes(a_name), in_quotes(b_name), stored.a.shape().text(),
                    stored.b.shape().text(), in);
  const auto rank = static_cast<double>(stored.a.size(0));
  const double alpha = alpha_of(module);
  stored.scale = alpha / (config_.flag("use_rslora", false) ? std::sqrt(rank) : rank);
  return stored;
}

void AdapterFile::fill(const std::string& name, const Tensor& parameter) {
  if (!reader_.contains(name)) return;
  const Tensor values = load(name);
  if (values.shape() != parameter.shape())
    fail<FileError>("{}: tensor {} has shape {}, the model has {}", reader_.path().string(), in_quotes(name),
                    values.shape().text(), parameter.shape().text());
  parameter.copy_from(parameter.dtype() == DType::bf16 ? to_bfloat16(values) : values);
}

double AdapterFile::dropout() const {
  const double probability = config_.number("lora_dropout", 0);
  if (!(probability >= 0 && probability < 1)) config_.refuse("lora_dropout", "needs a number from 0 to below 1");
  return probability;
}

void AdapterFile::refuse_unknown() const {
  for (const std::string& name : reader_.names())
    if (!used_.contains(name))
      fail<FileError>("{}: tensor {} is for no projection of the model", reader_.path().string(), in_quotes(name));
}

Tensor AdapterFile::load(const std::string& name) {
  if (!reader_.contains(name)) fail<FileError>("{}: has no tensor {}", reader_.path().string(), in_quotes(name));
  used_.insert(name);
  return reader_.load(name).to(DType::f32);
}

// The value of the first expression that matches, as get_pattern_key() of PEFT finds it.
double AdapterFile::alpha_of(const std::string& module) const {
  bool found = false;
  for (const AlphaPattern& pattern : alphas_) {
    pattern.modules->for_each_match(module, [&](huggingface::Match) { found = true; });
    if (found) return pattern.alpha;
  }
  return config_.number("lora_alpha");
}

}  // namespace attune

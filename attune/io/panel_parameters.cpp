#include "attune/io/panel_parameters.h"

#include <set>
#include <unordered_map>
#include <unordered_set>

#include "attune/base/fail.h"
#include "attune/io/json_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/safetensors.h"

namespace attune {
namespace {

std::string panels_name(const std::string& name) {
  return name + ".panels";
}

// The tensor that has the panels; files of earlier versions call it "NAME.packed".
std::string stored_panels_name(const SafetensorsReader& reader, const std::string& name) {
  const std::string old_name = name + ".packed";
  return reader.contains(old_name) && !reader.contains(panels_name(name)) ? old_name : panels_name(name);
}

std::string scales_name(const std::string& name) {
  return name + ".scales";
}

// The parameters that get panels, each with all modules that share it, and the other parameters.
class Collector final : public Visitor {
 public:
  struct Matrix {
    std::string name;
    Tensor weight;
    std::vector<Parameter*> places;
  };
  std::vector<Matrix> matrices;
  std::vector<NamedParameter> others;

 protected:
  void on_parameter(const std::string& path, Parameter& parameter) override {
    Tensor& tensor = parameter.tensor;
    if (parameter.use != ParameterUse::product && parameter.use != ParameterUse::lookup) {
      if (seen_.insert(tensor.address()).second) others.push_back({path, &tensor});
      return;
    }
    const auto [place, is_new] = matrix_of_.try_emplace(tensor.address(), matrices.size());
    if (is_new) matrices.push_back({path, tensor.detach(), {}});
    matrices[place->second].places.push_back(&parameter);
  }

 private:
  std::unordered_set<const void*> seen_;
  std::unordered_map<const void*, size_t> matrix_of_;
};

Collector collect(Module& module) {
  Collector collector;
  module.visit(collector);
  return collector;
}

void check_part(const SafetensorsReader& reader, const std::string& name, const Shape& shape, WeightFormat format) {
  const std::string path = reader.path().string();
  if (!reader.contains(name))
    fail<FileError>("{}: has no tensor {}, config.json (weights {}) asks for it", path, in_quotes(name),
                    enum_name(format));
  if (reader.shape(name) != shape)
    fail<FileError>("{}: tensor {} has shape {}, config.json (weights {}) says {}", path, in_quotes(name),
                    reader.shape(name).text(), enum_name(format), shape.text());
}

std::shared_ptr<const PanelWeight> map_panels(const SafetensorsReader& reader, const Collector::Matrix& matrix,
                                              WeightFormat format) {
  const int64_t out = matrix.weight.size(0), in = matrix.weight.size(1);
  const std::string name = stored_panels_name(reader, matrix.name);
  check_part(reader, name, {PanelWeight::storage_bytes(format, out, in)}, format);
  const Tensor storage = reader.map_or_copy(name, DType::u8, alignof(float));
  Tensor scales;
  if (is_quantised(format)) {
    check_part(reader, scales_name(matrix.name), PanelWeight::scales_shape(format, out, in), format);
    scales = reader.map_or_copy(scales_name(matrix.name), PanelWeight::scales_dtype(format));
  }
  return std::make_shared<const PanelWeight>(format, out, in, storage, scales);
}

}  // namespace

void save_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format,
                           const std::function<void()>& before_each) {
  const Collector found = collect(module);
  std::vector<NamedTensor> tensors;
  for (const Collector::Matrix& matrix : found.matrices) {
    if (before_each) before_each();
    const PanelWeight panels = [&] {
      try {
        return PanelWeight::lay_out(matrix.weight, format);
      } catch (const NumericError& error) {
        fail<NumericError>("parameter {}: {}", matrix.name, error.what());
      }
    }();
    tensors.push_back({panels_name(matrix.name), panels.storage()});
    if (panels.scales().defined()) tensors.push_back({scales_name(matrix.name), panels.scales()});
  }
  for (const NamedParameter& p : found.others) tensors.push_back({p.name, p.tensor->detach()});
  write_safetensors(path, tensors);
}

void map_panel_parameters(const std::filesystem::path& path, Module& module, WeightFormat format) {
  const SafetensorsReader reader = open_parameters(path);
  const Collector found = collect(module);
  std::vector<std::shared_ptr<const PanelWeight>> panels;
  std::set<std::string> known;
  for (const Collector::Matrix& matrix : found.matrices) {
    panels.push_back(map_panels(reader, matrix, format));
    known.insert(stored_panels_name(reader, matrix.name));
    if (is_quantised(format)) known.insert(scales_name(matrix.name));
  }
  map_parameters(reader, module, found.others, known);
  for (size_t i = 0; i < panels.size(); ++i)
    for (Parameter* parameter : found.matrices[i].places) {
      parameter->tensor = {};
      parameter->panels = panels[i];
    }
}

}  // namespace attune

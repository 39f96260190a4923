#include "attune/inference/quantize.h"

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/stored_model.h"
#include "attune/io/config_file.h"
#include "attune/io/panel_parameters.h"
#include "attune/io/parameter_file.h"
#include "attune/io/text_style_file.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// Of the files that hold the weights.
int64_t weight_bytes(const fs::path& folder) {
  int64_t safetensors = 0, pickled = 0;  // where there are both, the first are read
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model") && name.ends_with(".safetensors")) safetensors += file_bytes(entry.path());
    if (name.starts_with("pytorch_model") && name.ends_with(".bin")) pickled += file_bytes(entry.path());
  }
  return safetensors > 0 ? safetensors : pickled;
}

}  // namespace

QuantizedModel quantize_model_folder(const fs::path& model, const fs::path& out, WeightFormat weights,
                                     const std::function<void()>& before_each) {
  const OpenedFolder source(model);
  const ConfigFile& config = source.config();
  if (config.weight_format) refuse_panels(source.path(), "quantize");
  AtomicFolder folder(out);
  const StoredModel files = open_stored_model(source, LoadedWeights::stored);
  QuantizedModel done{.parameters = parameter_count(*files.model)};
  write_model_config(folder.temporary(), stored_config(source, *files.model), weights);
  save_panel_parameters(folder.temporary() / kParameterFile, *files.model, weights, before_each);
  save_tokenizers(folder.temporary(), *files.tokenizers.source, *files.tokenizers.target);
  files.write_settings(folder.temporary());
  if (const auto style = read_source_text(source.path())) write_source_text(folder.temporary(), *style);
  done.bytes_before = weight_bytes(source.path());
  done.bytes_after = file_bytes(folder.temporary() / kParameterFile);
  if (before_each) before_each();
  folder.commit();
  return done;
}

}  // namespace attune

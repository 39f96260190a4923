#include "attune/inference/quantize.h"

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/io/config_file.h"
#include "attune/io/model_folder.h"
#include "attune/io/panel_parameters.h"
#include "attune/io/parameter_file.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// As those who use the folder load it, so that all of it is known to be good.
std::unique_ptr<Module> load_model(const fs::path& folder, Architecture architecture) {
  switch (architecture) {
    case Architecture::encoder_decoder:
      return load_model_folder(folder).model;
    case Architecture::decoder_lm:
      return load_language_model_folder(folder).model;
    case Architecture::encoder_classifier:
      return load_classifier_folder(folder).model;
    case Architecture::encoder_masked_lm:
    case Architecture::encoder:
      break;
  }
  fail<ConfigError>("{}: architecture is \"{}\", which is for training alone; its weights stay as they are",
                    folder.string(), enum_name(architecture));
}

void copy_into(const fs::path& from, const fs::path& folder) {
  write_file(folder / from.filename(), read_file(from));
}

}  // namespace

QuantizedModel quantize_model_folder(const fs::path& model, const fs::path& out, WeightFormat weights,
                                     const std::function<void()>& before_each) {
  const TransformerConfig config = read_model_config(model);
  refuse_panels(model, "quantize");
  AtomicFolder folder(out);
  const std::unique_ptr<Module> module = load_model(model, config.architecture);
  QuantizedModel done{.parameters = parameter_count(*module)};
  write_model_config(folder.temporary(), config, weights);
  save_panel_parameters(folder.temporary() / kParameterFile, *module, weights, before_each);
  const TokenizerFiles tokenizers = find_tokenizers(model);
  copy_into(tokenizers.source, folder.temporary());
  if (tokenizers.target != tokenizers.source) copy_into(tokenizers.target, folder.temporary());
  std::error_code ignored;
  if (const fs::path generation = model / kGenerationConfigFile; fs::exists(generation, ignored))
    copy_into(generation, folder.temporary());
  done.bytes_before = file_bytes(model / kParameterFile);
  done.bytes_after = file_bytes(folder.temporary() / kParameterFile);
  if (before_each) before_each();
  folder.commit();
  return done;
}

}  // namespace attune

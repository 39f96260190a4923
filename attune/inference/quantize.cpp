#include "attune/inference/quantize.h"

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/hub/open_folder.h"
#include "attune/inference/embedder.h"
#include "attune/io/config_file.h"
#include "attune/io/panel_parameters.h"
#include "attune/io/parameter_file.h"
#include "attune/io/text_style_file.h"
#include "attune/text/tokenizer_files.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// A folder as those who use it load it, so that all of it is known to be good.
struct Opened {
  std::unique_ptr<Module> model;
  TokenizerPair tokenizers;
  std::function<void(const fs::path& folder)> write_settings;
};

template <class Folder>
Opened opened(std::shared_ptr<Folder> files) {
  return {.model = std::move(files->model),
          .tokenizers = {files->tokenizer, files->tokenizer},
          .write_settings = [files](const fs::path& folder) { write_generation_config(folder, *files); }};
}

// With how vectors are pooled and normalised.
Opened with_embedding_settings(Opened files, const fs::path& from) {
  files.write_settings = [first = files.write_settings, settings = read_embedding_settings(from)](const auto& to) {
    first(to);
    write_embedding_settings(to, settings);
  };
  return files;
}

Opened open(const OpenedFolder& folder) {
  constexpr auto kStored = LoadedWeights::stored;
  switch (folder.config().model.architecture) {
    case Architecture::encoder_decoder: {
      ModelFolder files = folder.load_model(kStored);
      return {.model = std::move(files.model),
              .tokenizers = {files.source_tokenizer, files.target_tokenizer},
              .write_settings = [generation = files.generation](const fs::path& to) {
                write_generation_config(to, generation);
              }};
    }
    case Architecture::decoder_lm:
      return opened(std::make_shared<LanguageModelFolder>(folder.load_language_model(kStored)));
    case Architecture::encoder_classifier:
      return opened(std::make_shared<ClassifierFolder>(folder.load_classifier(kStored)));
    case Architecture::encoder:
      return with_embedding_settings(opened(std::make_shared<EncoderFolder>(folder.load_encoder(kStored))),
                                     folder.path());
    case Architecture::encoder_masked_lm:
      break;
  }
  return with_embedding_settings(opened(std::make_shared<MaskedLmFolder>(folder.load_masked_lm(kStored))),
                                 folder.path());
}

// Of the files that hold the weights.
int64_t weight_bytes(const fs::path& folder) {
  int64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool is_weights = (name.starts_with("model") && name.ends_with(".safetensors")) ||
                            (name.starts_with("pytorch_model") && name.ends_with(".bin"));
    if (is_weights) bytes += file_bytes(entry.path());
  }
  return bytes;
}

}  // namespace

QuantizedModel quantize_model_folder(const fs::path& model, const fs::path& out, WeightFormat weights,
                                     const std::function<void()>& before_each) {
  const OpenedFolder source(model);
  const ConfigFile& config = source.config();
  if (config.weight_format) refuse_panels(model, "quantize");
  AtomicFolder folder(out);
  const Opened files = open(source);
  QuantizedModel done{.parameters = parameter_count(*files.model)};
  write_model_config(folder.temporary(), config.model, weights);
  save_panel_parameters(folder.temporary() / kParameterFile, *files.model, weights, before_each);
  save_tokenizers(folder.temporary(), *files.tokenizers.source, *files.tokenizers.target);
  files.write_settings(folder.temporary());
  if (const auto style = read_source_text(model)) write_source_text(folder.temporary(), *style);
  done.bytes_before = weight_bytes(model);
  done.bytes_after = file_bytes(folder.temporary() / kParameterFile);
  if (before_each) before_each();
  folder.commit();
  return done;
}

}  // namespace attune

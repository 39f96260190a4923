#include "attune/inference/stored_model.h"

#include "attune/inference/embedder.h"
#include "attune/io/config_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/text_style_file.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

template <class Folder>
StoredModel opened(std::shared_ptr<Folder> files) {
  return {.model = std::move(files->model),
          .tokenizers = {files->tokenizer, files->tokenizer},
          .write_settings = [files](const fs::path& folder) { write_generation_config(folder, *files); }};
}

// With how vectors are pooled and normalised.
StoredModel with_embedding_settings(StoredModel files, const fs::path& from) {
  files.write_settings = [first = files.write_settings, settings = read_embedding_settings(from)](const auto& to) {
    first(to);
    write_embedding_settings(to, settings);
  };
  return files;
}

}  // namespace

StoredModel open_stored_model(const OpenedFolder& folder, LoadedWeights weights) {
  switch (folder.config().model.architecture) {
    case Architecture::encoder_decoder: {
      ModelFolder files = folder.load_model(weights);
      return {.model = std::move(files.model),
              .tokenizers = {files.source_tokenizer, files.target_tokenizer},
              .write_settings = [generation = files.generation](const fs::path& to) {
                write_generation_config(to, generation);
              }};
    }
    case Architecture::decoder_lm:
      return opened(std::make_shared<LanguageModelFolder>(folder.load_language_model(weights)));
    case Architecture::encoder_classifier:
      return opened(std::make_shared<ClassifierFolder>(folder.load_classifier(weights)));
    case Architecture::encoder:
      return with_embedding_settings(opened(std::make_shared<EncoderFolder>(folder.load_encoder(weights))),
                                     folder.path());
    case Architecture::encoder_masked_lm:
      break;
  }
  return with_embedding_settings(opened(std::make_shared<MaskedLmFolder>(folder.load_masked_lm(weights))),
                                 folder.path());
}

void save_stored_model(const std::filesystem::path& folder, const OpenedFolder& from, const StoredModel& files) {
  write_model_config(folder, from.config().model);
  save_parameters(folder / kParameterFile, *files.model);
  save_tokenizers(folder, *files.tokenizers.source, *files.tokenizers.target);
  files.write_settings(folder);
  if (const auto style = read_source_text(from.path())) write_source_text(folder, *style);
}

}  // namespace attune

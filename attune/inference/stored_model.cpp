#include "attune/inference/stored_model.h"

#include "attune/inference/embedder.h"
#include "attune/io/config_file.h"
#include "attune/io/parameter_file.h"
#include "attune/io/text_style_file.h"
#include "attune/text/chat_template.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

StoredModel opened(ModelFolder files) {
  return {.model = std::move(files.model),
          .tokenizers = {files.source_tokenizer, files.target_tokenizer},
          .write_settings = [generation = files.generation](const fs::path& to) {
            write_generation_config(to, generation);
          }};
}

template <class Folder>
StoredModel opened(Folder loaded) {
  const auto files = std::make_shared<Folder>(std::move(loaded));
  return {.model = std::move(files->model),
          .tokenizers = {files->tokenizer, files->tokenizer},
          .write_settings = [files](const fs::path& to) { write_generation_config(to, *files); }};
}

}  // namespace

StoredModel open_stored_model(const OpenedFolder& folder, LoadedWeights weights) {
  StoredModel files = load_by_architecture(folder, weights, [](auto loaded) { return opened(std::move(loaded)); });
  const Architecture architecture = folder.config().model.architecture;
  if (architecture == Architecture::decoder_lm && folder.hub() == nullptr) {
    files.write_settings = [first = files.write_settings, from = folder.path()](const fs::path& to) {
      first(to);
      copy_chat_template(from, to);
    };
  }
  if (architecture != Architecture::encoder && architecture != Architecture::encoder_masked_lm) return files;
  // Also writes how vectors are pooled and normalised.
  files.write_settings = [first = files.write_settings, settings = read_embedding_settings(folder.path()),
                          dimension = folder.config().model.d_model](const fs::path& to) {
    first(to);
    write_embedding_settings(to, settings, dimension);
  };
  return files;
}

TransformerConfig stored_config(const OpenedFolder& from, Module& model) {
  TransformerConfig config = from.config().model;
  for (const NamedParameter& p : named_parameters(model))
    if (p.name == "projection.weight") config.share_projection = false;
  return config;
}

void save_stored_model(const std::filesystem::path& folder, const OpenedFolder& from, const StoredModel& files,
                       const std::function<void()>& before_each) {
  write_model_config(folder, stored_config(from, *files.model));
  save_parameters(folder / kParameterFile, *files.model, {}, before_each);
  save_tokenizers(folder, *files.tokenizers.source, *files.tokenizers.target);
  files.write_settings(folder);
  if (const auto style = read_source_text(from.path())) write_source_text(folder, *style);
}

}  // namespace attune

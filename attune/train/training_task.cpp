#include "attune/train/training_task.h"

#include "attune/io/model_folder.h"
#include "attune/io/safetensors.h"
#include "attune/train/task_parts.h"

namespace attune {

namespace fs = std::filesystem;

std::unique_ptr<TrainingTask> make_training_task(const RunConfig& config, const fs::path& run_folder, bool resumes) {
  const TaskInput input{config, run_folder, resumes};
  switch (config.model.architecture) {
    case Architecture::encoder_decoder:
      return make_translation_task(input);
    case Architecture::encoder_classifier:
      return make_classification_task(input);
    case Architecture::encoder_masked_lm:
      return make_masked_language_model_task(input);
    case Architecture::decoder_lm:
      break;
  }
  return make_language_model_task(input);
}

std::string initialize_from(const fs::path& model_folder, Module& model) {
  const SafetensorsReader reader(model_folder / kParameterFile);
  const std::vector<NamedParameter> parameters = named_parameters(model);
  int64_t copied = 0, matrices = 0;
  std::string different;  // the first parameter that is there with another shape
  for (const auto& [name, parameter] : parameters) {
    if (!reader.contains(name)) continue;
    if (reader.shape(name) == parameter->shape() && reader.dtype(name) == parameter->dtype()) {
      reader.load_into(name, *parameter);
      ++copied;
      if (parameter->rank() > 1) ++matrices;
    } else if (different.empty()) {
      different =
          fmt::format(": {} is {} there and {} here", name, reader.shape(name).text(), parameter->shape().text());
    }
  }
  if (matrices == 0)  // a bias may fit by accident
    fail<ConfigError>("train.initialize_from = \"{}\": no matrix has the name and shape of one of the model's{}",
                      model_folder.string(), different);
  return fmt::format("{} of {} parameters from {}", copied, parameters.size(), model_folder.string());
}

void complete_vocab(const char* field, int64_t& size, const Tokenizer& tokenizer) {
  if (size != 0 && size != tokenizer.vocab_size())
    fail<ConfigError>("model.{} = {}: the tokenizer has {} tokens (0 takes its size)", field, size,
                      tokenizer.vocab_size());
  size = tokenizer.vocab_size();
}

RunText load_run_text(const DataConfig& data, const Tokenizer& tokenizer) {
  const TextStreamOptions options{.unit = data.text_unit};
  RunText text{.train = load_text(paths(data.train_files), tokenizer, options), .valid = {}};
  if (!data.valid_files.empty()) {
    text.valid = load_text(paths(data.valid_files), tokenizer, options);
  } else if (data.valid_fraction > 0) {
    std::tie(text.train, text.valid) =
        naming(data.train_files, [&] { return hold_out_last(text.train, data.valid_fraction); });
  }
  return text;
}

std::vector<std::pair<int32_t, int32_t>> lengths_of(const TokenDocuments& documents) {
  std::vector<std::pair<int32_t, int32_t>> lengths;
  for (int64_t i = 0; i < documents.documents(); ++i)
    lengths.emplace_back(static_cast<int32_t>(documents.document(i).size()), 0);
  return lengths;
}

}  // namespace attune

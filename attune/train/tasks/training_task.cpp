#include "attune/train/tasks/training_task.h"

#include <fmt/format.h>
#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/io/config_file.h"
#include "attune/text/limited_tokenizer.h"
#include "attune/train/tasks/task_parts.h"

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
    case Architecture::encoder:  // which RunConfig::validate() refuses
      break;
  }
  return make_language_model_task(input);
}

std::optional<Resegmentation> resegmentation_of(const RunConfig& config, const Tokenizer& source,
                                                const Tokenizer& target) {
  if (config.train.subword_sampling == 0) return {};
  const ResegmentationOptions options{
      .alpha = config.train.subword_sampling, .seed = config.train.seed, .longest = config.model.longest_sequence()};
  return Resegmentation(source, target, options);
}

void complete_vocab(const char* field, int64_t& size, const Tokenizer& tokenizer, VocabularySize allowed) {
  if (allowed == VocabularySize::padded && size > tokenizer.vocab_size()) return;
  if (size != 0 && size != tokenizer.vocab_size())
    fail<ConfigError>("model.{} = {}: the tokenizer has {} tokens (0 takes its size)", field, size,
                      tokenizer.vocab_size());
  size = tokenizer.vocab_size();
}

RunText load_run_text(const DataConfig& data, const Tokenizer& tokenizer, bool tokenizer_frames_texts) {
  const TextStreamOptions options{.unit = data.text_unit, .tokenizer_frames_texts = tokenizer_frames_texts};
  RunText text;
  if (data.prepared.empty()) text.train = load_text(paths(data.train_files), tokenizer, options);
  if (!data.valid_files.empty()) {
    text.valid = load_text(paths(data.valid_files), tokenizer, options);
  } else if (data.valid_fraction > 0) {
    std::tie(text.train, text.valid) =
        naming(data.train_files, [&] { return hold_out_last(text.train, data.valid_fraction); });
  }
  return text;
}

CorpusReport Prepared::report() const {
  return {.size = {.examples = index.texts, .tokens = index.tokens(), .target_tokens = index.target_tokens()},
          .skipped_long = index.skipped_long,
          .skipped_empty = index.skipped_empty,
          .cut = index.cut};
}

Prepared read_prepared(const RunConfig& config) {
  const std::string& name = config.data.prepared;
  if (name.empty()) return {};
  Prepared prepared{.folder = name, .index = read_prepared_index(name)};
  const PreparedIndex& index = prepared.index;
  if (const PreparedKind needed = prepared_kind(config.model); index.kind != needed)
    fail<ConfigError>("data.prepared = \"{}\": holds {}, architecture = \"{}\"{} reads {}", name, enum_name(index.kind),
                      enum_name(config.model.architecture),
                      config.model.is_regression() ? " with label_scores = \"none\"" : "", enum_name(needed));
  const Json options = shaping_options(config);
  for (const auto& [field, value] : options.items())
    if (index.options.at(field) != value)
      fail<ConfigError>("data.{} = {}: data.prepared = \"{}\" was prepared with {}", field, show(value), name,
                        cut_text(show(index.options.at(field)), 80));
  const std::vector<std::string>& labels = config.model.labels;
  if (!labels.empty() && labels != index.labels)
    fail<ConfigError>("model.labels are {}: data.prepared = \"{}\" was prepared with {}", fmt::join(labels, ", "), name,
                      fmt::join(index.labels, ", "));
  return prepared;
}

namespace {

// The tokenizer of a hub folder may have more tokens than the model that training goes on with.
TokenizerPair as_large_as_the_model(const TokenizerPair& tokenizers, const RunConfig& config) {
  const TransformerConfig& model = config.model;
  const bool translates = model.architecture == Architecture::encoder_decoder;
  const int64_t source = translates ? model.source_vocab : model.vocab;
  const int64_t target = translates ? model.target_vocab : model.vocab;
  const bool of_hub = translates ? config.generation.special_tokens : config.data.tokenizer_frames_texts;
  if (config.train.initialize_from.empty() || !of_hub || source == 0 || target == 0) return tokenizers;
  return limited_tokenizers(tokenizers, source, target);
}

}  // namespace

TokenizerPair tokenizers_of_run(const TaskInput& input, const Prepared& prepared) {
  const RunConfig& config = input.config;
  const fs::path folder = input.resumes ? input.folder : prepared.folder;
  if (prepared.given()) {
    check_prepared_tokenizers(folder, prepared.index);
    TokenizerPair tokenizers = load_tokenizers(folder);
    for (const auto& [vocab, tokenizer] :
         {std::pair{prepared.index.source_vocab, tokenizers.source}, {prepared.index.target_vocab, tokenizers.target}})
      if (vocab != tokenizer->vocab_size())
        fail<FileError>("{}: the index says a vocabulary of {}, the tokenizer has {}", prepared.folder.string(), vocab,
                        tokenizer->vocab_size());
    return tokenizers;
  }
  if (input.resumes) return as_large_as_the_model(load_tokenizers(folder), config);
  if (config.model.architecture == Architecture::encoder_decoder)
    return as_large_as_the_model(make_tokenizers(config), config);
  const std::shared_ptr<const Tokenizer> both = make_tokenizer(config, input.folder);
  return as_large_as_the_model({both, both}, config);
}

ShardedBatches<int32_t>::Sampler batches_by_length(const TrainConfig& train) {
  const BatchSamplerOptions options{.max_tokens = train.batch_tokens, .seed = train.seed};
  options.validate();
  return
      [options](const TokenShard& shard, int64_t epoch) { return BatchSampler(shard.lengths(), options).epoch(epoch); };
}

}  // namespace attune

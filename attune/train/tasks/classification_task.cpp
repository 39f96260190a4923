// Classification and regression: texts with labels or with numbers for an encoder.

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/data/held_out.h"
#include "attune/data/word_dropout.h"
#include "attune/io/model_folder.h"
#include "attune/train/batch_loss.h"
#include "attune/train/tasks/task_parts.h"

namespace attune {
namespace {

using Texts = std::vector<LabelledText>;

constexpr const char* kNewLabels =
    "; model.labels = [] takes the labels of the text, and a new head (docs/fine-tuning.md)";

// Moves a share of the texts out of `texts`, and returns it.
Texts hold_out(Texts& texts, double fraction) {
  Texts kept, held_out;
  for (size_t i = 0; i < texts.size(); ++i) {
    (is_held_out(static_cast<int64_t>(i), fraction) ? held_out : kept).push_back(std::move(texts[i]));
  }
  if (held_out.empty())
    fail<DataError>("data.valid_fraction = {}: {} texts are too few: none of them would be held out", fraction,
                    texts.size());
  texts = std::move(kept);
  return held_out;
}

// The mean of the numbers of a text.
double mean_number(const TokenCorpus& text) {
  double sum = 0, examples = 0;
  for (int64_t i = 0; i < text.shards(); ++i) {
    const std::shared_ptr<const TokenShard> shard = text.open(i);
    for (int64_t e = 0; e < shard->examples(); ++e) sum += shard->value(e);
    examples += static_cast<double>(shard->examples());
  }
  return examples > 0 ? sum / examples : 0;
}

class ClassificationTask final : public TaskOf<EncoderClassifier, int32_t> {
 public:
  explicit ClassificationTask(const TaskInput& input) : TaskOf(input.config) {
    read(input);
    complete_vocab("vocab", config_.model.vocab, *tokenizer_, vocabulary_size(config_.data.tokenizer_frames_texts));
    model_ = build_encoder_classifier(config_.model, config_.train.seed);
    if (is_regression()) begin_at_the_mean();
    resegmentation_ = resegmentation_of(config_, *tokenizer_, *tokenizer_);
  }

  TrainingBatch batch(int64_t index, uint64_t forward, const BatchPart& part) const override;
  ValidationReport validate(const ValidationWork& work) override;
  void save_model(const std::filesystem::path& folder) override {
    save_model_folder(folder, *model_, *tokenizer_, config_.data.max_tokens, config_.data.tokenizer_frames_texts);
  }
  void save_tokenizers(const std::filesystem::path& folder) const override {
    attune::save_tokenizers(folder, *tokenizer_, *tokenizer_);
  }

 private:
  bool is_regression() const { return config_.model.is_regression(); }
  void begin_at_the_mean();
  void take_text(TokenCorpus text);
  void read(const TaskInput& input);
  Texts read_training_text(const TaskInput& input, const LabelledReadOptions& reading);
  LabelledCorpus encode(const TaskInput& input, const std::vector<std::string>& files, const Texts& texts) const;
  LabelledBatch texts_of(const TokenShard& shard, std::span<const int32_t> indices, uint64_t forward) const;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<LabelledExample> validation_;
  std::optional<Resegmentation> resegmentation_;
  double mean_number_ = 0;  // of the training text, for regression
};

// The bias of a new head begins at the mean, which is the best constant prediction: from 0, it would take many updates
// to get there. The targets stay as they are. The head of an initial model or of a checkpoint takes this one's place.
void ClassificationTask::begin_at_the_mean() {
  for (const NamedParameter& p : named_parameters(*model_))
    if (p.name == "head.bias") p.tensor->fill(mean_number_);
}

void ClassificationTask::take_text(TokenCorpus text) {
  if (is_regression()) mean_number_ = mean_number(text);
  set_text(std::move(text), batches_by_length(config_.train));
}

LabelledCorpus ClassificationTask::encode(const TaskInput& input, const std::vector<std::string>& files,
                                          const Texts& texts) const {
  // The labels may be those of the initial model, which the user has not seen. A resumed run keeps its own.
  const bool may_have_others =
      !input.resumes && !config_.train.initialize_from.empty() && files == config_.data.train_files;
  return naming(files, [&] {
    return encode_labelled(texts, config_.model.labels, *tokenizer_,
                           {.max_tokens = config_.data.max_tokens,
                            .tokenizer_frames_texts = config_.data.tokenizer_frames_texts,
                            .pairs = !config_.data.second_text_field.empty(),
                            .numbers = is_regression(),
                            .advice = may_have_others ? kNewLabels : ""});
  });
}

// Reads and encodes the training text. Returns what is held out of it.
Texts ClassificationTask::read_training_text(const TaskInput& input, const LabelledReadOptions& reading) {
  const DataConfig& data = config_.data;
  Texts texts = read_labelled(paths(data.train_files), reading), held_out;
  std::vector<std::string>& labels = config_.model.labels;
  if (labels.empty() && is_regression()) labels = config_.model.default_labels();
  if (labels.empty()) labels = naming(data.train_files, [&] { return labels_of(texts); });
  if (data.valid_fraction > 0) held_out = hold_out(texts, data.valid_fraction);

  tokenizer_ = input.resumes ? load_tokenizers(input.folder).source : given_tokenizer(config_);
  if (!tokenizer_) {
    LearningText learning(input.folder);
    for (const LabelledText& text : texts) learning.add(text.text);
    tokenizer_ = learning.learn(config_);
  }
  const LabelledCorpus text = encode(input, data.train_files, texts);
  TokenShard shard(examples_of(text.examples), {.vocab = {tokenizer_->vocab_size(), 1},
                                                .labels = is_regression() ? 0 : static_cast<int64_t>(labels.size()),
                                                .numbers = is_regression()});
  corpus_ = {.size = {.examples = shard.examples(), .tokens = shard.tokens()},
             .skipped_empty = text.skipped_empty,
             .cut = text.cut};
  take_text(TokenCorpus(std::move(shard)));
  return held_out;
}

void ClassificationTask::read(const TaskInput& input) {
  const DataConfig& data = config_.data;
  const LabelledReadOptions reading{.format = data.format,
                                    .label_field = data.label_field,
                                    .text_field = data.text_field,
                                    .second_text_field = data.second_text_field,
                                    .numbers = is_regression()};
  Texts held_out;
  if (const Prepared prepared = read_prepared(config_); prepared.given()) {
    config_.model.labels = prepared.index.labels;
    tokenizer_ = tokenizers_of_run(input, prepared).source;
    corpus_ = prepared.report();
    take_text(prepared.text());
  } else {
    held_out = read_training_text(input, reading);
  }
  if (!data.valid_files.empty()) held_out = read_labelled(paths(data.valid_files), reading);
  if (!config_.has_validation()) return;
  const auto limit = static_cast<size_t>(config_.train.valid_sentences);
  if (limit > 0 && limit < held_out.size()) held_out.resize(limit);
  validation_ = encode(input, data.valid_files.empty() ? data.train_files : data.valid_files, held_out).examples;
  corpus_.validation_examples = static_cast<int64_t>(validation_.size());
}

TrainingBatch ClassificationTask::batch(int64_t index, uint64_t forward, const BatchPart& part) const {
  const auto [shard, all] = batches_->at(index);
  const auto size = [&, &shard = *shard](int32_t i) {
    const int64_t tokens = resegmentation_ ? std::ssize(texts_of(shard, {&i, 1}, forward).tokens) : shard.length(i);
    return ExampleSize{.labels = 1, .tokens = tokens, .work = tokens};
  };
  return make_part(all, part, size, [&, &shard = *shard](std::span<const int32_t> indices) {
    LabelledBatch batch = texts_of(shard, indices, forward);
    WordDropout(config_.train.word_dropout, config_.train.seed, forward_of(forward, part))
        .hide(batch.tokens, *tokenizer_);
    return training_batch(*model_, std::move(batch));
  });
}

// The examples as the model reads them in a forward pass, before word dropout.
LabelledBatch ClassificationTask::texts_of(const TokenShard& shard, std::span<const int32_t> indices,
                                           uint64_t forward) const {
  LabelledBatch texts = pack_labelled(shard, indices);
  return resegmentation_ ? (*resegmentation_)(texts, indices, forward) : texts;
}

ValidationReport ClassificationTask::validate(const ValidationWork& work) {
  const ClassifierEvaluation found = evaluate(*model_, validation_, evaluate_options(work));
  ValidationReport report{.loss = found.loss, .examples = static_cast<int64_t>(validation_.size())};
  if (is_regression()) {
    std::vector<float> references;
    for (const LabelledExample& example : validation_) references.push_back(example.value);
    report.regression = regression_scores(found.values, references);
    return report;
  }
  std::vector<int32_t> references;
  for (const LabelledExample& example : validation_) references.push_back(example.label);
  report.classification =
      classification_scores(found.predictions, references, static_cast<int64_t>(config_.model.labels.size()));
  return report;
}

}  // namespace

std::unique_ptr<TrainingTask> make_classification_task(const TaskInput& input) {
  return std::make_unique<ClassificationTask>(input);
}

}  // namespace attune

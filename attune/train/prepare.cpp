#include "attune/train/prepare.h"

#include <fmt/format.h>
#include <set>
#include <system_error>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/data/masking.h"
#include "attune/data/sequence_cutter.h"
#include "attune/train/tasks/task_parts.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockTexts = 1 << 14;  // labelled texts that are encoded at a time
constexpr size_t kBlockBytes = size_t{16} << 20;
constexpr size_t kMaxLabels = 1 << 16;  // more are texts in the wrong place

int64_t bytes_of(const std::vector<std::string>& files) {
  int64_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const uintmax_t size = fs::file_size(file, error);
    if (!error) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

class Preparation {
 public:
  Preparation(const RunConfig& config, const fs::path& folder, const PrepareOptions& options)
      : config_(config), options_(options), writer_(folder, options.shard_tokens) {
    for (const auto* files : {&data().train_source, &data().train_target, &data().train_files})
      progress_.total_bytes += bytes_of(*files);
  }

  PreparedIndex run() {
    switch (config_.model.architecture) {
      case Architecture::encoder_decoder:
        pairs();
        break;
      case Architecture::encoder_classifier:
        labelled();
        break;
      case Architecture::encoder_masked_lm:
      case Architecture::encoder:  // which RunConfig::validate() refuses
        sequences();
        break;
      case Architecture::decoder_lm:
        documents();
    }
    return writer_.commit(report_.size.examples, report_.skipped_long, report_.skipped_empty, report_.cut);
  }

 private:
  const DataConfig& data() const { return config_.data; }

  void begin(const TokenizerPair& tokenizers) {
    save_tokenizers(writer_.temporary(), *tokenizers.source, *tokenizers.target);
    writer_.begin({.kind = prepared_kind(config_.model),
                   .source_vocab = tokenizers.source->vocab_size(),
                   .target_vocab = tokenizers.target->vocab_size(),
                   .options = shaping_options(config_),
                   .labels = config_.model.labels});
    tell(0);
  }

  void tell(int64_t bytes) {
    progress_.bytes += bytes;
    progress_.tokens = writer_.tokens();
    progress_.shards = writer_.shards();
    if (options_.progress) options_.progress(progress_);
  }
  ReadProgress on_read() {
    return [this](int64_t bytes) { tell(bytes); };
  }

  void pairs();
  void documents();
  void sequences();
  void labelled();
  std::shared_ptr<const Tokenizer> learn_from_labelled(const LabelledReadOptions& reading);

  RunConfig config_;  // with all labels
  PrepareOptions options_;
  PreparedWriter writer_;
  PrepareProgress progress_;
  CorpusReport report_;
};

void Preparation::pairs() {
  const TokenizerPair tokenizers = make_tokenizers(config_);
  begin(tokenizers);
  const SkippedPairs skipped = read_parallel_corpus(
      paths(data().train_source), paths(data().train_target), *tokenizers.source, *tokenizers.target,
      {.max_tokens = data().max_tokens_per_sentence, .on_read = on_read()}, [&](ParallelExample&& pair) {
        writer_.append(pair.source);
        writer_.end_sequence();
        writer_.append(pair.target);
        writer_.end_example();
        ++report_.size.examples;
      });
  report_.skipped_long = skipped.skipped_long;
  report_.skipped_empty = skipped.skipped_empty;
}

void Preparation::documents() {
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(config_, writer_.temporary());
  begin({tokenizer, tokenizer});
  const bool stream = data().text_unit == TextUnit::stream;
  read_text(paths(data().train_files), *tokenizer, {.unit = data().text_unit, .on_read = on_read()},
            [&](std::span<const int32_t> ids, bool) {
              if (stream) return writer_.append_stream(ids);
              writer_.append(ids);
              writer_.end_example();
              ++report_.size.examples;
            });
  if (stream) report_.size.examples = 1;
}

void Preparation::sequences() {
  const std::shared_ptr<const Tokenizer> tokenizer = make_tokenizer(config_, writer_.temporary());
  MaskingOptions::for_tokenizer(*tokenizer);  // throws where it cannot be trained with
  begin({tokenizer, tokenizer});
  SequenceCutter cutter(*tokenizer, data().max_tokens, [&](std::span<const int32_t> sequence) {
    writer_.append(sequence);
    writer_.end_example();
  });
  const bool stream = data().text_unit == TextUnit::stream;
  read_text(paths(data().train_files), *tokenizer, {.unit = data().text_unit, .on_read = on_read()},
            [&](std::span<const int32_t> ids, bool) {
              cutter.add(ids);
              if (stream) return;
              cutter.end_document();
              ++report_.size.examples;
            });
  cutter.end_document();
  if (stream) report_.size.examples = 1;
  if (cutter.sequences() == 0)
    fail<DataError>("{}: has no token that could be hidden", fmt::join(data().train_files, ", "));
  report_.skipped_empty = cutter.skipped();
}

// One reading for the labels and for what a tokenizer learns from.
std::shared_ptr<const Tokenizer> Preparation::learn_from_labelled(const LabelledReadOptions& reading) {
  std::vector<std::string>& known = config_.model.labels;
  if (config_.model.is_regression() && known.empty()) known = config_.model.default_labels();
  std::shared_ptr<const Tokenizer> tokenizer = given_tokenizer(config_);
  if (tokenizer && !known.empty()) return tokenizer;
  std::set<std::string> labels;
  LearningText text(writer_.temporary());
  read_labelled(paths(data().train_files), reading, [&](LabelledText&& labelled_text) {
    if (!tokenizer) text.add(labelled_text.text);
    if (known.empty()) labels.insert(labelled_text.label);
    if (labels.size() > kMaxLabels) fail<DataError>("there are more than {} labels", kMaxLabels);
  });
  if (!tokenizer) tokenizer = text.learn(config_);
  if (!known.empty()) return tokenizer;
  known.assign(labels.begin(), labels.end());
  if (known.size() < 2) fail<DataError>("there are {} different labels, expected 2 or more", known.size());
  return tokenizer;
}

void Preparation::labelled() {
  LabelledReadOptions reading{.format = data().format,
                              .label_field = data().label_field,
                              .text_field = data().text_field,
                              .numbers = config_.model.is_regression()};
  naming(data().train_files, [&] {
    const std::shared_ptr<const Tokenizer> tokenizer = learn_from_labelled(reading);
    begin({tokenizer, tokenizer});
    std::vector<LabelledText> block;
    size_t bytes = 0;
    const auto flush = [&] {
      const LabelledCorpus corpus =
          encode_more_labelled(block, config_.model.labels, *tokenizer,
                               {.max_tokens = data().max_tokens, .numbers = config_.model.is_regression()});
      for (const LabelledExample& text : corpus.examples) {
        writer_.append(text.tokens);
        writer_.end_example(text.label, text.value);
      }
      report_.size.examples += static_cast<int64_t>(corpus.examples.size());
      report_.skipped_empty += corpus.skipped_empty;
      report_.cut += corpus.cut;
      block.clear();
      bytes = 0;
    };
    reading.on_read = on_read();
    read_labelled(paths(data().train_files), reading, [&](LabelledText&& text) {
      bytes += text.text.size();
      block.push_back(std::move(text));
      if (block.size() >= kBlockTexts || bytes >= kBlockBytes) flush();
    });
    flush();
    if (report_.size.examples == 0) fail<DataError>("no text is left ({} without tokens)", report_.skipped_empty);
  });
}

// Throws ConfigError for what a folder of prepared text has no place for.
void check_preparable(const RunConfig& config) {
  const DataConfig& data = config.data;
  if (!data.prepared.empty())
    fail<ConfigError>("data.prepared = \"{}\": a text is prepared from its files", data.prepared);
  if (!data.train_alignments.empty())
    fail<ConfigError>("data.train_alignments names {}: what is prepared has no alignments; train on the text itself",
                      data.train_alignments.front());
  std::string field;
  if (data.tokenizer_frames_texts) field = "data.tokenizer_frames_texts = true";
  if (!data.second_text_field.empty()) field = fmt::format("data.second_text_field = \"{}\"", data.second_text_field);
  if (config.generation.special_tokens) field = "generation.special_tokens = true";
  // The initial model brings these fields along.
  if (const std::string& initial = config.train.initialize_from; !field.empty() && !initial.empty())
    field = fmt::format("train.initialize_from = \"{}\"", initial);
  if (!field.empty())
    fail<ConfigError>("{}: what is prepared has single texts with bos and eos; train on the text itself", field);
  if (data.valid_fraction > 0)
    fail<ConfigError>("data.valid_fraction = {}: what is prepared is for training; validation needs files of its own",
                      data.valid_fraction);
  config.validate_for_training();
  if (data.text_unit == TextUnit::answer)
    fail<ConfigError>(
        "data.text_unit = \"answer\": prompts and answers cannot be prepared; train on the text itself "
        "(data.train_files)");
}

}  // namespace

void PrepareOptions::validate() const {
  check_range<int64_t>("shard_tokens", shard_tokens, 1, int64_t{1} << 32);
}

PreparedIndex prepare_corpus(const RunConfig& config, const fs::path& folder, const PrepareOptions& options) {
  options.validate();
  check_preparable(config);
  return Preparation(config, folder, options).run();
}

}  // namespace attune

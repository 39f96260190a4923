#include "attune/cli/bench/batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/text_output.h"
#include "attune/train/batch_loss.h"

namespace attune::cli {
namespace {

constexpr int kRandomBatches = 8;
constexpr size_t kCorpusBatches = 200;

int32_t random_word(Random& random, int64_t vocab) {
  return kFirstWord + static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab - kFirstWord)));
}

std::vector<std::vector<int32_t>> read_ids(const Json& json) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  std::vector<std::vector<int32_t>> sentences;
  for (const auto& sentence : json.get<std::vector<std::vector<int64_t>>>()) {
    for (const int64_t id : sentence)
      if (id < 0 || id > kMost) fail<DataError>("token id {} is not between 0 and {}", id, kMost);
    if (sentence.empty()) fail<DataError>("a sentence has no tokens");
    sentences.emplace_back(sentence.begin(), sentence.end());
  }
  return sentences;
}

std::vector<Pairs> read_batches(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<Pairs> batches;
  for (std::string line; std::getline(lines, line);) {
    const std::string where = fmt::format("{}:{}", path, batches.size() + 1);
    const Json json = parse_json<DataError>(line, where);
    try {
      const auto source = read_ids(json.at("source")), target = read_ids(json.at("target"));
      if (source.size() != target.size() || source.empty())
        fail<DataError>("{} source and {} target sentences", source.size(), target.size());
      Pairs batch;
      for (size_t i = 0; i < source.size(); ++i) batch.push_back({source[i], target[i]});
      batches.push_back(std::move(batch));
    } catch (const std::exception& error) {
      fail<DataError>("{}: {}", where, error.what());
    }
  }
  if (batches.empty()) fail<DataError>("{}: has no batches", path);
  return batches;
}

std::vector<Pairs> pairs_of_corpus(const BatchOptions& o, RunConfig& config) {
  const DataConfig& data = config.data;
  const std::string& source = data.source_tokenizer.empty() ? data.tokenizer : data.source_tokenizer;
  const std::string& target = data.target_tokenizer.empty() ? data.tokenizer : data.target_tokenizer;
  if (source.empty() || target.empty()) fail<ConfigError>("data.tokenizer: a corpus needs a tokenizer file");
  const auto source_tokenizer = load_tokenizer(source), target_tokenizer = load_tokenizer(target);
  const ParallelCorpus corpus =
      load_parallel_corpus({data.train_source.begin(), data.train_source.end()},
                           {data.train_target.begin(), data.train_target.end()}, *source_tokenizer, *target_tokenizer);
  config.model.source_vocab = source_tokenizer->vocab_size();
  config.model.target_vocab = target_tokenizer->vocab_size();
  const BatchSampler sampler(lengths_of(corpus.examples), {.max_tokens = o.tokens});
  std::vector<Pairs> batches;
  for (const auto& indices : sampler.epoch(0)) {
    Pairs& batch = batches.emplace_back();
    for (const int32_t i : indices) batch.push_back(corpus.examples[static_cast<size_t>(i)]);
    if (batches.size() == kCorpusBatches) break;
  }
  return batches;
}

// How many sequences of `length` a batch takes.
int64_t sequences(const BatchOptions& o, int64_t length) {
  return std::max<int64_t>(1, o.tokens / length);
}

LanguageModelBatch random_windows(Random& random, const BatchOptions& o, const TransformerConfig& model) {
  TokenDocuments text;
  std::vector<Window> windows;
  for (int64_t i = 0; i < sequences(o, model.context_length); ++i)
    windows.push_back({i * model.context_length, static_cast<int32_t>(model.context_length)});
  const int64_t ids = windows.back().begin + model.context_length + 1;
  for (int64_t i = 0; i < ids; ++i) text.ids.push_back(random_word(random, model.vocab));
  text.offsets.push_back(ids);
  return pack(text, windows);
}

// The encoders read bos, the text, eos.
LabelledBatch random_texts(Random& random, const BatchOptions& o, const TransformerConfig& model) {
  LabelledBatch batch{.tokens = {}, .offsets = {0}, .labels = {}, .types = {}};
  const uint64_t labels = std::max<size_t>(1, model.labels.size());
  for (int64_t i = 0; i < sequences(o, o.source_length); ++i) {
    const std::vector<int32_t> text = random_sentence(random, o.source_length - 1, model.vocab);
    batch.tokens.push_back(kBos);
    batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    batch.offsets.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.labels.push_back(static_cast<int32_t>(random.below(labels)));
    batch.values.push_back(static_cast<float>(random.uniform()));
  }
  return batch;
}

MaskedBatch random_masked_texts(Random& random, const BatchOptions& o, const RunConfig& config, int64_t step) {
  const LabelledBatch texts = random_texts(random, o, config.model);
  return mask_tokens(texts.tokens, texts.offsets,
                     {.probability = config.train.mask_probability,
                      .mask_id = kPad,
                      .vocab_size = static_cast<int32_t>(config.model.vocab),
                      .special_ids = {kPad, kUnk, kBos, kEos},
                      .seed = config.train.seed,
                      .step = step});
}

// `make(random, b)` is batch b.
template <class Model, class Make>
TrainingWork random_work(std::unique_ptr<Model> model, const Make& make) {
  TrainingWork work;
  Random random(1);
  for (int b = 0; b < kRandomBatches; ++b) work.batches.push_back(training_batch(*model, make(random, b)));
  work.model = std::move(model);
  return work;
}

TrainingWork translation_work(const BatchOptions& o, RunConfig& config) {
  TrainingWork work;
  const std::vector<Pairs> batches = make_pairs(o, config);
  auto model = build_transformer(config.model, config.train.seed);
  for (const Pairs& pairs : batches) {
    PackedBatch batch = pack_all(pairs);
    work.source_tokens.push_back(batch.source_tokens());
    work.batches.push_back(training_batch(*model, std::move(batch)));
  }
  work.model = std::move(model);
  return work;
}

}  // namespace

void complete_model(const BatchOptions& o, TransformerConfig& model) {
  constexpr int64_t kDefaultVocab = 8000;
  if (o.source_length < 1 || o.target_length < 1 || o.tokens < 1)
    fail<ConfigError>("--tokens, --source-length and --target-length need at least 1");
  if (model.architecture == Architecture::encoder_decoder) {
    if (model.source_vocab == 0) model.source_vocab = kDefaultVocab;
    if (model.target_vocab == 0) model.target_vocab = model.source_vocab;
    if (model.source_vocab <= kFirstWord || model.target_vocab <= kFirstWord)
      fail<ConfigError>("model.source_vocab, model.target_vocab: need more than {} tokens", kFirstWord);
    return;
  }
  if (model.vocab == 0) model.vocab = kDefaultVocab;
  if (model.vocab <= kFirstWord)
    fail<ConfigError>("model.vocab = {}: needs more than {} tokens", model.vocab, kFirstWord);
  if (model.architecture == Architecture::decoder_lm) return;
  if (o.source_length < 3)
    fail<ConfigError>("--source-length {}: the texts of an encoder begin with bos and end with eos, at least 3 tokens",
                      o.source_length);
  if (model.architecture == Architecture::encoder_classifier && model.labels.empty())
    model.labels = model.default_labels();
}

std::vector<int32_t> random_sentence(Random& random, int64_t length, int64_t vocab) {
  std::vector<int32_t> ids;
  for (int64_t i = 1; i < length; ++i) ids.push_back(random_word(random, vocab));
  ids.push_back(kEos);
  return ids;
}

std::vector<Pairs> make_pairs(const BatchOptions& o, RunConfig& config) {
  if (!o.file.empty()) return read_batches(o.file);
  if (!config.data.train_source.empty()) return pairs_of_corpus(o, config);
  Random random(1);
  std::vector<Pairs> batches;
  for (int b = 0; b < kRandomBatches; ++b) {
    Pairs& batch = batches.emplace_back();
    for (int64_t i = 0; i < sequences(o, o.target_length); ++i)
      batch.push_back({random_sentence(random, o.source_length, config.model.source_vocab),
                       random_sentence(random, o.target_length, config.model.target_vocab)});
  }
  return batches;
}

PackedBatch pack_all(const Pairs& pairs) {
  std::vector<int32_t> indices(pairs.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  return pack(pairs, indices, kBos);
}

void write_batches(const std::string& path, const std::vector<Pairs>& batches) {
  std::string text;
  for (const Pairs& batch : batches) {
    Json json{{"source", Json::array()}, {"target", Json::array()}};
    for (const ParallelExample& example : batch) {
      json["source"].push_back(example.source);
      json["target"].push_back(example.target);
    }
    text += json.dump() + "\n";
  }
  write_file(path, text);
}

namespace {

TrainingWork work_of(const BatchOptions& o, RunConfig& config) {
  const TransformerConfig& model = config.model;
  const uint64_t seed = config.train.seed;
  switch (model.architecture) {
    case Architecture::decoder_lm:
      return random_work(build_decoder_lm(model, seed),
                         [&](Random& random, int64_t) { return random_windows(random, o, model); });
    case Architecture::encoder_classifier:
      return random_work(build_encoder_classifier(model, seed),
                         [&](Random& random, int64_t) { return random_texts(random, o, model); });
    case Architecture::encoder:
      fail<ConfigError>("bench: a model of architecture \"encoder\" has no loss");
    case Architecture::encoder_masked_lm:
      return random_work(build_encoder_masked_lm(model, seed),
                         [&](Random& random, int64_t b) { return random_masked_texts(random, o, config, b); });
    case Architecture::encoder_decoder:
      break;
  }
  return translation_work(o, config);
}

}  // namespace

TrainingWork make_training_work(const BatchOptions& o, RunConfig& config) {
  TrainingWork work = work_of(o, config);
  const Device device = device_of(config.train.device);
  const ProductPrecision precision = resolved(config.train.precision, device);
  config.train.precision = choice_of(precision);
  if (const std::string note = precision_note(precision, device); !note.empty()) write_note(note);
  return work;
}

}  // namespace attune::cli

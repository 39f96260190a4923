// attune bench train, attune bench translate: steady-state speed of any configuration.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <sstream>

#include "attune/autograd/graph.h"
#include "attune/base/file.h"
#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "attune/cli/command.h"
#include "attune/cli/generation_options.h"
#include "attune/data/batch_sampler.h"
#include "attune/generate/beam_search.h"
#include "attune/ops/machine_peak.h"
#include "attune/ops/matmul_kernel.h"
#include "attune/train/batch_loss.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

constexpr int32_t kBos = 2, kEos = 3, kFirstWord = 4;

struct Options {
  std::string config;
  std::vector<std::string> set;
  int64_t source_length = 20, target_length = 20;
  int64_t tokens = 2000;
  int64_t sentences = 64;
  std::string batches, write_batches;
  int64_t steps = 10, warmup = 3;
  int64_t threads = 0;
  bool json = false;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peak_memory_mb() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::vector<int32_t> random_sentence(Random& random, int64_t length, int64_t vocab) {
  std::vector<int32_t> ids;
  for (int64_t i = 1; i < length; ++i)
    ids.push_back(kFirstWord + static_cast<int32_t>(random.below(static_cast<uint64_t>(vocab - kFirstWord))));
  ids.push_back(kEos);
  return ids;
}

PackedBatch pack_all(const std::vector<ParallelExample>& examples) {
  std::vector<int32_t> indices(examples.size());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  return pack(examples, indices, kBos);
}

std::vector<std::vector<int32_t>> read_ids(const Json& json) {
  std::vector<std::vector<int32_t>> sentences;
  for (const auto& sentence : json.get<std::vector<std::vector<int64_t>>>()) {
    for (const int64_t id : sentence)
      if (id < 0 || id > std::numeric_limits<int32_t>::max()) fail<DataError>("token id {} is not one", id);
    if (sentence.empty()) fail<DataError>("a sentence has no tokens");
    sentences.emplace_back(sentence.begin(), sentence.end());
  }
  return sentences;
}

// One JSON object a line: {"source": [[ids], ...], "target": [[ids], ...]}, every sentence with eos.
std::vector<std::vector<ParallelExample>> read_batches(const std::string& path) {
  std::istringstream lines(read_file(path));
  std::vector<std::vector<ParallelExample>> batches;
  for (std::string line; std::getline(lines, line);) {
    try {
      const Json json = Json::parse(line);
      const auto source = read_ids(json.at("source")), target = read_ids(json.at("target"));
      if (source.size() != target.size() || source.empty())
        fail<DataError>("{} source and {} target sentences", source.size(), target.size());
      std::vector<ParallelExample> batch;
      for (size_t i = 0; i < source.size(); ++i) batch.push_back({source[i], target[i]});
      batches.push_back(std::move(batch));
    } catch (const std::exception& error) {
      fail<DataError>("{}:{}: {}", path, batches.size() + 1, error.what());
    }
  }
  if (batches.empty()) fail<DataError>("{}: has no batches", path);
  return batches;
}

void write_batches(const std::string& path, const std::vector<std::vector<ParallelExample>>& batches) {
  std::string text;
  for (const auto& batch : batches) {
    Json json{{"source", Json::array()}, {"target", Json::array()}};
    for (const ParallelExample& example : batch) {
      json["source"].push_back(example.source);
      json["target"].push_back(example.target);
    }
    text += json.dump() + "\n";
  }
  write_file(path, text);
}

// A real corpus where the configuration names one, else random sentences of the given lengths.
std::vector<std::vector<ParallelExample>> make_batches(const Options& o, RunConfig& config) {
  std::vector<std::vector<ParallelExample>> batches;
  if (!o.batches.empty()) return read_batches(o.batches);
  TransformerConfig& model = config.model;
  if (!config.data.train_source.empty()) {
    const std::string source =
        config.data.source_tokenizer.empty() ? config.data.tokenizer : config.data.source_tokenizer;
    const std::string target =
        config.data.target_tokenizer.empty() ? config.data.tokenizer : config.data.target_tokenizer;
    if (source.empty() || target.empty()) fail<ConfigError>("data.tokenizer: a corpus needs a tokenizer file");
    const auto source_tokenizer = load_tokenizer(source), target_tokenizer = load_tokenizer(target);
    const ParallelCorpus corpus = load_parallel_corpus(
        {config.data.train_source.begin(), config.data.train_source.end()},
        {config.data.train_target.begin(), config.data.train_target.end()}, *source_tokenizer, *target_tokenizer);
    model.source_vocab = source_tokenizer->vocab_size();
    model.target_vocab = target_tokenizer->vocab_size();
    const BatchSampler sampler(lengths_of(corpus.examples), {.max_tokens = o.tokens});
    for (const auto& indices : sampler.epoch(0)) {
      std::vector<ParallelExample> batch;
      for (const int32_t i : indices) batch.push_back(corpus.examples[static_cast<size_t>(i)]);
      batches.push_back(std::move(batch));
      if (batches.size() == 200) break;
    }
    return batches;
  }
  Random random(1);
  for (int b = 0; b < 8; ++b) {
    std::vector<ParallelExample> batch;
    for (int64_t i = 0; i < std::max<int64_t>(1, o.tokens / o.target_length); ++i)
      batch.push_back({random_sentence(random, o.source_length, model.source_vocab),
                       random_sentence(random, o.target_length, model.target_vocab)});
    batches.push_back(std::move(batch));
  }
  return batches;
}

RunConfig configuration(const Options& o) {
  std::vector<std::string> set = o.set;
  RunConfig config = read_run_config(o.config, set);
  if (config.model.source_vocab == 0) config.model.source_vocab = 8000;
  if (config.model.target_vocab == 0) config.model.target_vocab = config.model.source_vocab;
  if (config.model.source_vocab <= kFirstWord || config.model.target_vocab <= kFirstWord)
    fail<ConfigError>("model.source_vocab, model.target_vocab: need more than {} tokens", kFirstWord);
  if (o.steps < 1 || o.warmup < 0) fail<ConfigError>("--steps needs at least 1, --warmup at least 0");
  if (o.sentences < 1 || o.source_length < 1 || o.target_length < 1 || o.tokens < 1)
    fail<ConfigError>("--sentences, --tokens, --source-length and --target-length need at least 1");
  use_threads(o.threads);
  return config;
}

struct Step {
  double milliseconds, loss;
  int64_t target_tokens, source_tokens, flops;
};

Step train_step(Transformer& model, Adam& adam, const PackedBatch& batch, const RunConfig& config, int64_t step) {
  const double begin = seconds_now();
  const int64_t flops = matmul_flops();
  const TrainingBatch training = training_batch(model, batch);
  const UpdateResult result = update(model, adam,
                                     {.batches = {&training, 1},
                                      .step = step + 1,
                                      .learning_rate = 1e-4,
                                      .label_smoothing = config.train.label_smoothing,
                                      .seed = config.train.seed,
                                      .first_forward = static_cast<uint64_t>(step)});
  return {(seconds_now() - begin) * 1e3, result.loss / static_cast<double>(result.labels), batch.target_tokens(),
          batch.source_tokens(), matmul_flops() - flops};
}

void print(const Options& o, const Json& result) {
  if (o.json) {
    std::cout << result.dump() << "\n";
    return;
  }
  for (const auto& [key, value] : result.items()) {
    std::string text = value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                       : value.is_string()     ? value.get<std::string>()
                                               : value.dump();
    if (value.is_number_float() && std::abs(value.get<double>()) >= 1000)
      text = fmt::format("{:.0f}", value.get<double>());
    std::cout << fmt::format("{:<30}{}\n", key, text);
  }
}

int bench_train(const Options& o) {
  RunConfig config = configuration(o);
  const auto examples = make_batches(o, config);
  if (!o.write_batches.empty()) {
    write_batches(o.write_batches, examples);
    return 0;
  }
  const double peak_flops = measured_peak_flops();
  const auto model = build_transformer(config.model, config.train.seed);
  require_gradients(*model);
  Adam adam(named_parameters(*model), {});
  std::vector<double> milliseconds, target_rate, source_rate, flop_rate;
  double first = 0, last = 0;
  for (int64_t i = 0; i < o.warmup + o.steps; ++i) {
    const PackedBatch batch = pack_all(examples[static_cast<size_t>(i) % examples.size()]);
    const Step step = train_step(*model, adam, batch, config, i);
    if (i == 0) first = step.loss;
    last = step.loss;
    if (i < o.warmup) continue;
    milliseconds.push_back(step.milliseconds);
    target_rate.push_back(static_cast<double>(step.target_tokens) / step.milliseconds * 1e3);
    source_rate.push_back(static_cast<double>(step.source_tokens) / step.milliseconds * 1e3);
    flop_rate.push_back(static_cast<double>(step.flops) / step.milliseconds / 1e6);
  }
  print(o, {{"program", "attune"},
            {"parameters", parameter_count(*model)},
            {"threads", thread_count()},
            {"steps", o.steps},
            {"median_ms_per_step", median(milliseconds)},
            {"target_tokens_per_s", median(target_rate)},
            {"source_tokens_per_s", median(source_rate)},
            {"gflops_per_s", median(flop_rate)},
            {"machine_peak_gflops_per_s", peak_flops / 1e9},
            {"share_of_peak", median(flop_rate) / (peak_flops / 1e9)},
            {"peak_memory_mb", peak_memory_mb()},
            {"loss_first", first},
            {"loss_last", last}});
  return 0;
}

// The first --sentences of the corpus that the configuration names, else random ones.
std::vector<ParallelExample> sentences_to_translate(const Options& o, RunConfig& config) {
  std::vector<ParallelExample> examples;
  const auto wanted = static_cast<size_t>(o.sentences);
  if (!config.data.train_source.empty()) {
    for (const auto& batch : make_batches(o, config)) examples.insert(examples.end(), batch.begin(), batch.end());
    if (examples.size() > wanted) examples.resize(wanted);
    return examples;
  }
  Random random(2);
  while (examples.size() < wanted)
    examples.push_back({random_sentence(random, o.source_length, config.model.source_vocab), {kEos}});
  return examples;
}

// Bytes that a token of the source, and one of the target, add to the cache; counted, not computed.
std::pair<double, double> cache_bytes_per_token(const Transformer& model, const PackedTokens& source) {
  const NoGrad no_grad;
  KvCache cache = model.start(model.encode(source), source.sequences);
  const int64_t of_source = cache.bytes();
  model.step(std::vector<int32_t>(static_cast<size_t>(cache.rows()), kBos), cache);
  return {static_cast<double>(of_source) / static_cast<double>(source.sequences.total()),
          static_cast<double>(cache.bytes() - of_source) / static_cast<double>(cache.rows())};
}

int bench_translate(const Options& o, const GenerationConfig& generation) {
  RunConfig config = configuration(o);
  std::vector<ParallelExample> examples = sentences_to_translate(o, config);
  const auto model = build_transformer(config.model, config.train.seed);
  set_evaluation(*model);
  const PackedBatch batch = pack_all(examples);
  const PackedTokens source = pack_tokens(batch.source, batch.source_offsets);
  BeamSearchOptions search{.generation = generation, .n_best = 1, .special = {}};
  search.generation.max_length = o.target_length;
  search.generation.max_length_ratio = 0;
  std::vector<double> milliseconds, rate;
  for (int64_t i = 0; i < o.warmup + o.steps; ++i) {
    const double begin = seconds_now();
    const auto found = beam_search(*model, source, search);
    const double elapsed = seconds_now() - begin;
    int64_t tokens = 0;
    for (const auto& hypotheses : found) tokens += static_cast<int64_t>(hypotheses.front().tokens.size());
    if (i < o.warmup) continue;
    milliseconds.push_back(elapsed * 1e3);
    rate.push_back(static_cast<double>(tokens) / elapsed);
  }
  const auto [source_bytes, target_bytes] = cache_bytes_per_token(*model, source);
  print(o, {{"program", "attune"},
            {"parameters", parameter_count(*model)},
            {"threads", thread_count()},
            {"cache_bytes_per_source_token", source_bytes},
            {"cache_bytes_per_target_token", target_bytes},
            {"sentences", batch.sentences()},
            {"beam_size", search.generation.beam_size},
            {"median_ms_per_batch", median(milliseconds)},
            {"target_tokens_per_s", median(rate)},
            {"peak_memory_mb", peak_memory_mb()}});
  return 0;
}

void add_common(CLI::App* command, Options& o) {
  command->add_option("--config", o.config, "Run configuration (TOML); default: the base model")
      ->check(CLI::ExistingFile);
  command->add_option("--set", o.set, "Overrides one key: model.d_model=256")->expected(1)->take_all();
  command->add_option("--source-length", o.source_length, "Tokens of a random source sentence")->capture_default_str();
  command->add_option("--target-length", o.target_length, "Tokens of a random target sentence")->capture_default_str();
  command->add_option("--steps", o.steps, "Measured repetitions")->capture_default_str();
  command->add_option("--warmup", o.warmup, "Repetitions before those")->capture_default_str();
  command->add_option("--threads", o.threads, "0: all")->capture_default_str();
  command->add_flag("--json", o.json, "One JSON object on standard output");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = add_command(app, "bench", "Measure steady-state speed with random weights",
                                "  attune bench train --set model.d_model=256 --json\n"
                                "  attune bench translate --set model.layers=3 --sentences 64\n"
                                "  attune bench attention --causal",
                                nullptr);
  bench->require_subcommand(1);
  add_bench_attention(*bench);

  auto train = std::make_shared<Options>();
  CLI::App* command = add_command(
      *bench, "train", "Milliseconds, tokens and floating-point operations of a training step",
      "  attune bench train                                        # the base model, random batches\n"
      "  attune bench train --tokens 4000 --target-length 30\n"
      "  attune bench train --config run.toml --set data.tokenizer=tokenizer.model --write-batches b.jsonl\n"
      "  attune bench train --batches b.jsonl --steps 20 --json",
      [train] { return bench_train(*train); });
  add_common(command, *train);
  command->add_option("--tokens", train->tokens, "Target tokens of a batch")->capture_default_str();
  command->add_option("--batches", train->batches, "Train on these batches (JSON lines)")->check(CLI::ExistingFile);
  command->add_option("--write-batches", train->write_batches, "Only write the batches, for other programs");

  auto translate = std::make_shared<Options>();
  auto generation = std::make_shared<GenerationConfig>();
  command =
      add_command(*bench, "translate", "Tokens per second of decoding; every sentence runs to --target-length at most",
                  "  attune bench translate --sentences 1 --beam-size 1\n"
                  "  attune bench translate --config run.toml --source-length 30 --json",
                  [translate, generation] { return bench_translate(*translate, *generation); });
  add_common(command, *translate);
  command->add_option("--sentences", translate->sentences, "Sentences of a batch")->capture_default_str();
  command->add_option("--beam-size", generation->beam_size, "1: greedy")->capture_default_str();
}

}  // namespace attune::cli

// attune bench train, attune bench translate: steady-state speed of any configuration.

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/base/process_memory.h"
#include "attune/base/random.h"
#include "attune/cli/bench/batches.h"
#include "attune/cli/bench/median.h"
#include "attune/cli/bench/print_result.h"
#include "attune/cli/bench/profile.h"
#include "attune/cli/bench/serve.h"
#include "attune/cli/bench/tokenizer.h"
#include "attune/cli/command.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_output.h"
#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/place_model.h"
#include "attune/kernels/gemm/matmul.h"
#include "attune/kernels/machine_peak.h"
#include "attune/models/presets.h"
#include "attune/models/transformer.h"
#include "attune/nn/layer_stack.h"
#include "attune/tensor/cuda_memory.h"
#include "attune/train/config.h"

namespace attune::cli {
namespace {

struct Options {
  std::string config, preset, device;
  std::vector<std::string> set;
  BatchOptions batches;
  int64_t sentences = 64;
  std::string write_batches;
  int64_t steps = 10, warmup = 3;
  int64_t threads = 0;
  bool json = false;
  bool profile = false;
  std::string trace;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double megabytes(int64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

void require_encoder_decoder(const char* what, const RunConfig& config) {
  if (config.model.architecture == Architecture::encoder_decoder) return;
  fail<ConfigError>("{}: needs model.architecture = \"encoder_decoder\", found \"{}\"", what,
                    enum_name(config.model.architecture));
}

RunConfig configuration(const Options& o) {
  RunConfig config = read_run_config(o.config, o.set, o.preset);
  if (!o.device.empty()) config.train.device = o.device;
  if (!o.preset.empty()) {
    for (int64_t* size : {&config.model.source_vocab, &config.model.vocab})
      if (*size == 0) *size = find_preset(o.preset).vocab;
  }
  if (!o.batches.file.empty()) require_encoder_decoder("--batches", config);
  complete_model(o.batches, config.model);
  if (o.steps < 1 || o.warmup < 0) fail<ConfigError>("--steps needs at least 1, --warmup at least 0");
  if (o.sentences < 1) fail<ConfigError>("--sentences needs at least 1");
  return config;
}

// What was measured, one element for each step.
struct Measured {
  std::vector<double> milliseconds, tokens_per_s, source_tokens_per_s, gflops_per_s;
  double loss_first = 0, loss_last = 0;
  std::vector<ProfileEntry> operations;  // with --profile
  std::vector<ProfileEvent> last_step;   // with --trace
};

UpdateResult measured_update(Module& model, Adam& adam, const UpdateInput& input) {
  const ProfileScope scope(kStepScope);
  return update(model, adam, input);
}

Measured train(const Options& o, const TrainingWork& work, const RunConfig& config, const Device& device) {
  Adam adam(trained_parameters(*work.model), config.optimizer);
  Measured measured;
  std::optional<Profile> profile;
  for (int64_t i = 0; i < o.warmup + o.steps; ++i) {
    const bool last = i + 1 == o.warmup + o.steps;
    if (i == o.warmup && (o.profile || !o.trace.empty())) profile.emplace(matmul_flops);
    if (last && !o.trace.empty()) profile->keep_events();
    const auto at = static_cast<size_t>(i) % work.batches.size();
    const double begin = seconds_now();
    const int64_t flops = matmul_flops();
    const UpdateResult result = measured_update(*work.model, adam,
                                                {.batches = {&work.batches[at], 1},
                                                 .step = i + 1,
                                                 .learning_rate = 1e-4,
                                                 .precision = resolved(config.train.precision, device),
                                                 .label_smoothing = config.train.label_smoothing,
                                                 .r_drop = config.train.r_drop,
                                                 .seed = config.train.seed,
                                                 .first_forward = static_cast<uint64_t>(i),
                                                 .device = device});
    const double seconds = seconds_now() - begin;
    measured.loss_last = result.loss / static_cast<double>(result.labels);
    if (i == 0) measured.loss_first = measured.loss_last;
    if (i < o.warmup) continue;
    measured.milliseconds.push_back(seconds * 1e3);
    measured.tokens_per_s.push_back(static_cast<double>(result.tokens) / seconds);
    measured.gflops_per_s.push_back(static_cast<double>(matmul_flops() - flops) / seconds / 1e9);
    if (!work.source_tokens.empty())
      measured.source_tokens_per_s.push_back(static_cast<double>(work.source_tokens[at]) / seconds);
  }
  if (profile) {
    measured.operations = profile->entries();
    measured.last_step = profile->take_events();
  }
  return measured;
}

int bench_train(const Options& o) {
  for (const std::string& output : {o.write_batches, o.trace}) {
    check_output(output, {o.config, o.batches.file});
    check_writable(output);
  }
  const ThreadScope threads = use_threads(o.threads);
  RunConfig config = configuration(o);
  const bool two_sides = config.model.architecture == Architecture::encoder_decoder;
  if (!o.write_batches.empty()) {
    require_encoder_decoder("--write-batches", config);
    write_batches(o.write_batches, make_pairs(o.batches, config));
    return 0;
  }
  const Device device = device_of(config.train.device);
  const TrainingWork work = make_training_work(o.batches, config);
  move_parameters(*work.model, device);
  const double peak_gflops = device.is_host() ? measured_peak_flops() / 1e9 : 0;  // a GPU's products are not counted
  require_gradients(*work.model);
  set_activation_checkpointing(*work.model, config.train.checkpoint_activations);
  set_layer_dropout(*work.model, config.train.layer_dropout);
  const Measured measured = train(o, work, config, device);
  const double gflops = median(measured.gflops_per_s), rate = median(measured.tokens_per_s);
  Json result = {{"program", "attune"},
                 {"architecture", enum_name(config.model.architecture)},
                 {"parameters", parameter_count(*work.model)},
                 {"device", device.text()},
                 {"threads", thread_count()},
                 {"steps", o.steps},
                 {"median_ms_per_step", median(measured.milliseconds)},
                 {"tokens", two_sides ? "target" : "input"},
                 {"tokens_per_s", rate}};
  if (two_sides) {
    result["target_tokens_per_s"] = rate;
    result["source_tokens_per_s"] = median(measured.source_tokens_per_s);
  }
  if (device.is_host())
    result.update({{"gflops_per_s", gflops},
                   {"machine_peak_gflops_per_s", peak_gflops},
                   {"share_of_peak", gflops / peak_gflops}});
  result.update({{"peak_memory_mb", megabytes(peak_process_bytes())},
                 {"peak_tensor_memory_mb", megabytes(allocator_statistics().peak_bytes_in_use)},
                 {"reserved_tensor_memory_mb", megabytes(allocator_statistics().bytes_reserved)},
                 {"loss_first", measured.loss_first},
                 {"loss_last", measured.loss_last}});
  if (device.kind() == Device::Kind::cuda)
    result["peak_device_memory_mb"] = megabytes(peak_bytes_of(Cuda{device.index()}));
  const Json profile = o.profile ? profile_json(measured.operations, o.steps, peak_gflops) : Json();
  if (o.profile && o.json) result["profile"] = profile;
  print_result(result, o.json);
  if (o.profile && !o.json) std::cout << "\n" << profile_table(profile);
  if (!o.trace.empty()) write_file(o.trace, trace_json(measured.last_step).dump() + "\n");
  return 0;
}

// The first --sentences of the corpus that the configuration names, else random ones.
Pairs sentences_to_translate(const Options& o, RunConfig& config) {
  Pairs examples;
  const auto wanted = static_cast<size_t>(o.sentences);
  if (!config.data.train_source.empty()) {
    for (const auto& batch : make_pairs(o.batches, config)) examples.insert(examples.end(), batch.begin(), batch.end());
    if (examples.size() > wanted) examples.resize(wanted);
    return examples;
  }
  Random random(2);
  while (examples.size() < wanted)
    examples.push_back({random_sentence(random, o.batches.source_length, config.model.source_vocab), {kEos}});
  return examples;
}

// Bytes that a token of the source and a token of the target add to the cache, measured on a cache.
std::pair<double, double> cache_bytes_per_token(const Transformer& model, const PackedTokens& source) {
  const NoGrad no_grad;
  KvCache cache = model.start(model.encode(source), source.sequences);
  const int64_t of_source = cache.bytes();
  model.step(std::vector<int32_t>(static_cast<size_t>(cache.rows()), kBos), cache);
  return {static_cast<double>(of_source) / static_cast<double>(source.sequences.total()),
          static_cast<double>(cache.bytes() - of_source) / static_cast<double>(cache.rows())};
}

int bench_translate(const Options& o, const GenerationConfig& generation) {
  const ThreadScope threads = use_threads(o.threads);
  RunConfig config = configuration(o);
  require_encoder_decoder("bench translate", config);
  const Device device = device_of(config.train.device);
  Pairs examples = sentences_to_translate(o, config);
  const auto model = build_transformer(config.model, config.train.seed);
  place_model(*model, device, ProductPrecision::float32);
  const PackedBatch batch = pack_all(examples);
  const PackedTokens source = pack_tokens(batch.source, batch.source_offsets);
  BeamSearchOptions search{.generation = generation, .n_best = 1, .special = {}};
  search.generation.max_length = o.batches.target_length;
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
  print_result({{"program", "attune"},
                {"parameters", parameter_count(*model)},
                {"device", device.text()},
                {"threads", thread_count()},
                {"cache_bytes_per_source_token", source_bytes},
                {"cache_bytes_per_target_token", target_bytes},
                {"sentences", batch.sentences()},
                {"beam_size", search.generation.beam_size},
                {"median_ms_per_batch", median(milliseconds)},
                {"target_tokens_per_s", median(rate)},
                {"peak_memory_mb", megabytes(peak_process_bytes())}},
               o.json);
  return 0;
}

void add_common(CLI::App* command, Options& o, const char* source_length) {
  command->add_option("--config", o.config, "Run configuration (TOML); default: the base model")
      ->check(CLI::ExistingFile);
  command->add_option("--preset", o.preset, "A configuration of the literature, to which the file's keys are added");
  command->add_option("--set", o.set, "Overrides one key: model.d_model=256")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  command->add_option("--source-length", o.batches.source_length, source_length)->capture_default_str();
  command->add_option("--target-length", o.batches.target_length, "Tokens of a random target sentence")
      ->capture_default_str();
  command->add_option("--steps", o.steps, "Measured repetitions")->capture_default_str();
  command->add_option("--warmup", o.warmup, "Repetitions before those")->capture_default_str();
  add_device(*command, o.device);
  add_threads(*command, o.threads);
  command->add_flag("--json", o.json, "One JSON object on standard output");
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* bench = add_command(app, "bench", "Measure steady-state speed with random weights",
                                "  attune bench train --set model.d_model=256 --json\n"
                                "  attune bench translate --set model.layers=3 --sentences 64\n"
                                "  attune bench attention --causal\n"
                                "  attune bench decode --contexts 4096 --batch 16\n"
                                "  attune bench machine",
                                nullptr);
  bench->require_subcommand(1);
  add_bench_attention(*bench);
  add_bench_decode(*bench);
  add_bench_machine(*bench);
  add_bench_linear(*bench);
  add_bench_reduce(*bench);
  add_bench_requests(*bench);
  add_bench_serve(*bench);
  add_bench_tokenizer(*bench);

  auto train = std::make_shared<Options>();
  CLI::App* command = add_command(
      *bench, "train", "Milliseconds, tokens and floating-point operations of a training step",
      "  attune bench train                                        # the base model, random batches\n"
      "  attune bench train --tokens 4000 --target-length 30\n"
      "  attune bench train --preset gpt-char --tokens 768         # a language model, random windows\n"
      "  attune bench train --preset bert-tiny --source-length 128 # a classifier, random texts\n"
      "  attune bench train --config run.toml --set data.tokenizer=tokenizer.model --write-batches b.jsonl\n"
      "  attune bench train --batches b.jsonl --steps 20 --json\n"
      "  attune bench train --profile --trace step.json            # for chrome://tracing or Perfetto",
      [train] { return bench_train(*train); });
  add_common(command, *train, "Tokens of a random source sentence, or of an encoder's text");
  command
      ->add_option("--tokens", train->batches.tokens,
                   "Tokens of a batch: of the target where there are two sides, else of the input")
      ->capture_default_str();
  command->add_option("--batches", train->batches.file, "Train on these batches (JSON lines); encoder_decoder")
      ->check(CLI::ExistingFile);
  command->add_option("--write-batches", train->write_batches,
                      "Only write the batches, for other programs; encoder_decoder");
  command->add_flag("--profile", train->profile, "Also the time of each operation, and its share of the step");
  command->add_option("--trace", train->trace, "File for the last step's operations as a Chrome trace (JSON)");

  auto translate = std::make_shared<Options>();
  auto generation = std::make_shared<GenerationConfig>();
  command =
      add_command(*bench, "translate", "Tokens per second of decoding; every sentence runs to --target-length at most",
                  "  attune bench translate --sentences 1 --beam-size 1\n"
                  "  attune bench translate --config run.toml --source-length 30 --json",
                  [translate, generation] { return bench_translate(*translate, *generation); });
  add_common(command, *translate, "Tokens of a random source sentence");
  command->add_option("--sentences", translate->sentences, "Sentences of a batch")->capture_default_str();
  command->add_option("--beam-size", generation->beam_size, "1: greedy")->capture_default_str();
}

}  // namespace attune::cli

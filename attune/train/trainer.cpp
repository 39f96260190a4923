#include "attune/train/trainer.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/interrupt.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/base/process_memory.h"
#include "attune/hub/adapter_folder.h"
#include "attune/io/parameter_file.h"
#include "attune/nn/layer_stack.h"
#include "attune/optim/schedule.h"
#include "attune/tensor/buffer.h"
#include "attune/tensor/device.h"
#include "attune/train/batch_prefetch.h"
#include "attune/train/best_model.h"
#include "attune/train/data_parallel.h"
#include "attune/train/event_log.h"
#include "attune/train/initial_model.h"
#include "attune/train/rank_device.h"
#include "attune/train/run_folder.h"
#include "attune/train/tokenizers.h"
#include "attune/train/trained_parts.h"
#include "attune/train/training_plan.h"
#include "attune/train/training_state.h"
#include "attune/train/update.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

// The scalars of an entry of the log, and what the run has cost until then.
std::vector<std::pair<std::string, double>> with_cost(std::vector<std::pair<std::string, double>> scalars,
                                                      const TrainingState& state) {
  constexpr double kMiB = 1 << 20;
  scalars.insert(scalars.end(),
                 {{"tokens", static_cast<double>(state.tokens)},
                  {"seconds", state.seconds},
                  {"memory_mib", static_cast<double>(peak_process_bytes()) / kMiB},
                  {"tensor_memory_mib", static_cast<double>(allocator_statistics().peak_bytes_in_use) / kMiB}});
  return scalars;
}

// The layer of the guided head keeps its activations; it may share parameters with those that compute theirs again.
bool guided_outside_of_checkpoints(const RunConfig& config) {
  return config.train.checkpoint_activations && !config.data.train_alignments.empty();
}

class Run {
 public:
  Run(const RunConfig& config, const fs::path& folder, TrainingObserver& observer, const std::atomic<bool>& stop,
      Communicator& communicator);
  void prepare(bool resume);
  TrainingResult train();

 private:
  std::optional<int64_t> newest_checkpoint(bool resume);
  std::optional<int64_t> step_to_resume(bool resume);
  void resolve_precision(const std::optional<int64_t>& resumed);
  bool stop_agreed();
  void share_state();
  void swap_averages();
  void make_task(bool resumes);
  void say_vocabulary();
  void report_start();

  void step();
  void report_step(double learning_rate);
  void log(double learning_rate);
  ValidationReport measure();
  void judge(ValidationReport report);
  bool validate();
  void save();
  std::optional<ValidationReport> write_outcome();
  void load_mean();
  void save_model(const char* name);
  void load_best();

  TrainingResult result(StopReason reason) const;
  BatchPart batch_part() const { return {.rank = communicator_.rank(), .ranks = communicator_.size()}; }
  double rate_of(int64_t step) const {
    return learning_rate(config_.schedule, step, steps_of_run(), config_.model.d_model);
  }
  int64_t steps_of_run() const { return total_steps(config_.train, state_, task_->batches()); }
  bool validates() const { return task_->corpus().validation_examples > 0; }
  TrainingParts parts() { return {task_->model(), *adam_, config_, task_->corpus().size}; }

  RunConfig config_;  // with the model complete
  fs::path folder_;
  TrainingObserver& observer_;
  const std::atomic<bool>& stop_;
  Communicator& communicator_;
  const Device device_;  // of this rank
  const bool is_first_ = communicator_.rank() == 0;
  std::optional<RunFolder> run_folder_;  // of the first rank
  CheckpointFolder checkpoints_;

  std::optional<InitialModel> initial_;
  std::vector<std::string> new_names_;  // of parameters that the initial model does not have
  std::unique_ptr<TrainingTask> task_;
  std::optional<BatchPrefetch> batches_;  // goes away before the task that it reads
  std::optional<Adam> adam_;
  std::optional<DataParallel> ranks_;  // where there are several
  std::optional<EventLog> log_;
  TrainingState state_;
  int64_t saved_step_ = -1;  // of the last checkpoint that was written or read
  int64_t saved_validation_ = -1;
};

Run::Run(const RunConfig& config, const fs::path& folder, TrainingObserver& observer, const std::atomic<bool>& stop,
         Communicator& communicator)
    : config_(config),
      folder_(folder),
      observer_(observer),
      stop_(stop),
      communicator_(communicator),
      device_(device_of_rank(config.train.device, communicator)),
      checkpoints_(folder / "checkpoints", config.train.keep_checkpoints) {}

void Run::prepare(bool resume) {
  if (is_first_) run_folder_.emplace(folder_);
  const std::optional<int64_t> resumed = step_to_resume(resume);
  resolve_precision(resumed);
  const RunConfig given = config_;
  make_task(resumed.has_value());
  if (resumed) {
    RestoredRun restored = restore_checkpoint(checkpoints_.file(*resumed), parts());
    state_ = restored.state;
    if (state_.step != *resumed)
      fail<FileError>("{}: is the checkpoint of step {}; give it back its name", checkpoints_.file(*resumed).string(),
                      state_.step);
    saved_step_ = state_.step;
    saved_validation_ = state_.last_validation;
    for (const std::string& change : restored.changes) observer_.on_message(change);
    if (is_first_)
      if (const std::string lost = forget_lost_best(folder_ / "best", config_, state_); !lost.empty())
        observer_.on_message(lost);
    share_state();
  }
  task_->begin_epoch(state_.epoch);
  check_length(config_, steps_of_run());
  if (is_first_) {
    if (const fs::path aside = run_folder_->write("config.toml", write_toml(with_absolute_paths(given)));
        !aside.empty())
      observer_.on_message(
          fmt::format("config.toml is not as the run wrote it; it is set aside as {}", aside.filename().string()));
    for (const char* name : {"metrics.jsonl", "samples.jsonl"}) run_folder_->own(name);
    const bool begins = !fs::exists(folder_ / "metrics.jsonl");
    log_.emplace(folder_, state_.step);
    if (begins)
      log_->write(
          0, std::array{std::pair{std::string("parameters"), static_cast<double>(parameter_count(task_->model()))}});
  }
  batches_.emplace(*task_, batch_part(), config_.train.accumulate);
  if (state_.batch >= task_->batches())
    fail<FileError>("{}: goes on at batch {} of an epoch of {}", checkpoints_.file(state_.step).string(), state_.batch,
                    task_->batches());
  report_start();
  if (const std::string note = precision_note(resolved(config_.train.precision, device_), device_); !note.empty())
    observer_.on_message(note);
}

// The first rank looks, and tells the others.
std::optional<int64_t> Run::step_to_resume(bool resume) {
  const std::optional<int64_t> found = is_first_ ? newest_checkpoint(resume) : std::nullopt;
  int64_t step = found.value_or(-1);
  communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)));
  return step < 0 ? std::nullopt : std::optional(step);
}

// "auto" becomes one precision for all ranks and for the whole run, also for what is resumed on another machine.
void Run::resolve_precision(const std::optional<int64_t>& resumed) {
  PrecisionChoice& precision = config_.train.precision;
  if (precision != PrecisionChoice::automatic) return;
  const char* why = "as the run began";
  if (resumed) precision = precision_of_checkpoint(checkpoints_.file(*resumed));
  if (precision == PrecisionChoice::automatic) {
    precision = choice_of(resolved(precision, device_));
    communicator_.broadcast(std::as_writable_bytes(std::span(&precision, 1)));
    why = precision == PrecisionChoice::bfloat16 ? "the device multiplies it"
                                                 : "the device has no instructions for bfloat16";
  }
  observer_.on_message(fmt::format("train.precision = \"auto\": {}, {}", enum_name(precision), why));
}

// Clocks and signals are each rank's own: here all come to go by the same.
bool Run::stop_agreed() {
  struct Said {
    double seconds;
    int64_t stop;
  };
  const std::vector<Said> all = communicator_.all_gather_values(Said{state_.seconds, stop_ ? 1 : 0});
  state_.seconds = all[0].seconds;
  return std::ranges::any_of(all, [](const Said& said) { return said.stop != 0; });
}

// What the first rank has decided alone.
void Run::share_state() {
  if (!ranks_) return;
  const std::string text = communicator_.broadcast(write_fields(state_).dump());
  read_fields(Json::parse(text), state_, "the first rank's state");
}

// The model as it is to be used, with its moving averages, and back again.
void Run::swap_averages() {
  adam_->swap_averages();
  if (ranks_ && config_.train.moving_average > 0) ranks_->share_parameters();
}

std::optional<int64_t> Run::newest_checkpoint(bool resume) {
  if (!resume) run_folder_->refuse_checkpoints();
  const std::vector<int64_t> steps = checkpoints_.steps();
  if (steps.empty()) {
    if (resume)
      observer_.on_message(
          fmt::format("{} has no checkpoint: there is nothing to resume, the run begins", folder_.string()));
    return std::nullopt;
  }
  const FoundCheckpoint found = checkpoints_.newest();
  if (!found.step) fail<FileError>("{} (no other checkpoint is intact)", found.damaged.rbegin()->second);
  for (const auto& [step, damage] : found.damaged) {  // they would be taken for good ones by their names
    const fs::path aside = checkpoints_.set_aside(step);
    observer_.on_message(fmt::format("{}; it is set aside as {}", damage, aside.filename().string()));
  }
  return found.step;
}

void Run::make_task(bool resumes) {
  // The checkpoints of a run with adapters have only what it trains.
  if (!config_.train.initialize_from.empty() && (!resumes || config_.lora.on())) {
    initial_.emplace(config_.train.initialize_from);
    initial_->check(config_);
  }
  // A model whose matrices are to be int8 is never in memory in float32 where all of it comes from the initial model.
  const bool int8 = config_.lora.on() && config_.lora.base_precision == BasePrecision::int8;
  const bool empty = int8 && initial_->has_all_parameters(config_);
  const auto make = [&](bool resumed) {
    const ExecutionScope scope([&](Execution& e) { e.initialize_parameters = !empty; });
    task_ = make_training_task(config_, folder_, resumed);
  };
  // The first rank may have to learn the tokenizers that the others read.
  if (is_first_ || resumes) make(resumes);
  if (is_first_ && !resumes)
    run_folder_->save_tokenizers([&](const fs::path& folder) { task_->save_tokenizers(folder); });
  communicator_.barrier();
  if (!task_) make(true);
  config_.model = task_->model_config();
  if (initial_) {
    FilledModel filled = initial_->fill(config_, task_->model());
    if (!resumes) observer_.on_message(filled.message);
    if (empty && !filled.new_names.empty())
      fail<ConfigError>("train.initialize_from = \"{}\": has no parameter {}", config_.train.initialize_from,
                        filled.new_names.front());
    if (empty) reset_peak_bytes();  // of tensors whose memory nobody touched
    new_names_ = std::move(filled.new_names);
  }
  if (!resumes) say_vocabulary();
  choose_trained(config_, new_names_, task_->model());
  if (!device_.is_host()) move_parameters(task_->model(), device_);
  require_gradients(task_->model());
  set_activation_checkpointing(task_->model(), config_.train.checkpoint_activations);
  set_layer_dropout(task_->model(), config_.train.layer_dropout);
  const std::vector<NamedParameter> parameters = trained_parameters(task_->model());
  if (communicator_.size() > 1) {
    const Algorithm algorithm = config_.train.deterministic_reduction ? Algorithm::fixed : Algorithm::of_network;
    ranks_.emplace(communicator_, parameters,
                   DataParallelOptions{.shard = config_.train.shard_optimizer, .algorithm = algorithm});
    if (const std::string text = ranks_->exchange().text(); !text.empty()) observer_.on_message(text);
    if (!resumes) ranks_->broadcast_parameters(task_->model());
  }
  adam_.emplace(parameters, config_.optimizer, config_.train.moving_average,
                ranks_ ? ranks_->owned() : std::vector<ElementRange>{}, learning_rate_factors(config_, parameters));
}

void Run::say_vocabulary() {
  const TransformerConfig& model = config_.model;
  const bool pairs = model.architecture == Architecture::encoder_decoder;
  const std::string note = pairs ? vocabulary_note(config_, model.source_vocab, model.target_vocab)
                                 : vocabulary_note(config_, model.vocab, model.vocab);
  if (!note.empty()) observer_.on_message(note);
}

void Run::report_start() {
  observer_.on_start({.model = config_.model,
                      .parameters = parameter_count(task_->model()),
                      .corpus = task_->corpus(),
                      .batches = task_->batches(),
                      .total_steps = steps_of_run(),
                      .step = state_.step});
}

TrainingResult Run::train() {
  for (;;) {
    if (stop_agreed()) {
      if (saved_step_ != state_.step) save();
      return result(StopReason::requested);
    }
    // Each is done once for a step, also when the run was interrupted in between.
    if (validates() && validation_is_due(config_.train, state_) && state_.last_validation != state_.step && !validate())
      continue;
    const std::optional<StopReason> reason = limit_reached(config_.train, state_);
    // Before the checkpoint, which says what is still to be logged.
    const bool ends_log = reason && state_.window.steps > 0;
    if (ends_log) log(rate_of(state_.step));
    const bool outdated = saved_step_ == state_.step && (ends_log || saved_validation_ != state_.last_validation);
    if (outdated || (checkpoint_is_due(config_.train, state_) && saved_step_ != state_.step)) save();
    if (reason) {
      if (validates() && state_.last_validation != state_.step && !validate()) continue;
      if (saved_step_ != state_.step || saved_validation_ != state_.last_validation) save();
      TrainingResult finished = result(*reason);
      try {
        finished.outcome = write_outcome();
      } catch (const Interrupted&) {
        return result(StopReason::requested);
      }
      return finished;
    }
    step();
  }
}

void Run::step() {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t first_forward = static_cast<uint64_t>(state_.step) * static_cast<uint64_t>(config_.train.accumulate);
  const std::vector<TrainingBatch> batches = batches_->next(state_.batch, state_.step);
  const auto count = static_cast<int64_t>(batches.size());
  const double rate = rate_of(state_.step + 1), r_drop = config_.train.r_drop;
  const Device device = Device::named(config_.train.device);
  const UpdateResult done = update(task_->model(), *adam_,
                                   {.batches = batches,
                                    .step = state_.step + 1,
                                    .epoch = state_.epoch + 1,
                                    .first_batch = state_.batch + 1,
                                    .learning_rate = rate,
                                    .precision = resolved(config_.train.precision),
                                    .label_smoothing = config_.train.label_smoothing,
                                    .r_drop = r_drop,
                                    .seed = config_.train.seed,
                                    .first_forward = forward_of(first_forward, batch_part()),
                                    .device = device,
                                    .meanwhile = [&] { batches_->send_ahead(device, r_drop); },
                                    .ranks = ranks_ ? &*ranks_ : nullptr,
                                    .overlap = !guided_outside_of_checkpoints(config_)});
  ++state_.step;
  state_.batch += count;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  state_.seconds += seconds;
  state_.tokens += done.tokens;
  state_.window.add(done, seconds);
  report_step(rate);
  if (state_.batch == task_->batches()) {
    ++state_.epoch;
    state_.batch = 0;
    task_->begin_epoch(state_.epoch);
  }
}

void Run::report_step(double learning_rate) {
  const LogWindow window = state_.window;
  const bool logged = state_.step % config_.train.log_every == 0;
  if (logged) log(learning_rate);
  const auto labels = static_cast<double>(window.labels);
  observer_.on_step({.step = state_.step,
                     .total_steps = steps_of_run(),
                     .epoch = state_.epoch + 1,
                     .loss = window.loss / labels,
                     .nll = window.nll / labels,
                     .learning_rate = learning_rate,
                     .gradient_norm = window.gradient_norm / static_cast<double>(window.steps),
                     .tokens_per_second = static_cast<double>(window.tokens) / window.seconds,
                     .seconds = state_.seconds,
                     .logged = logged});
}

void Run::log(double learning_rate) {
  const LogWindow window = std::exchange(state_.window, {});
  const LogForm form{.probabilities = !config_.model.is_regression(), .several_ranks = ranks_.has_value()};
  if (log_) log_->write(state_.step, with_cost(log_scalars(window, learning_rate, form), state_));
}

ValidationReport Run::measure() {
  const auto begin = std::chrono::steady_clock::now();
  ValidationReport report = task_->validate({.interrupt = &stop_, .ranks = ranks_ ? &communicator_ : nullptr});
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.step = state_.step;
  return report;
}

// False: a request to stop ended it. Nothing has changed, and a resumed run validates the same step.
bool Run::validate() {
  check_parameters(task_->model(), state_.step);
  swap_averages();
  try {
    ValidationReport report = measure();
    if (is_first_) judge(std::move(report));
  } catch (const Interrupted&) {
    // on all ranks alike
  }
  swap_averages();
  share_state();
  return state_.last_validation == state_.step;
}

void Run::judge(ValidationReport report) {
  report.best = take_if_best(report, config_.best_metric(), state_);
  if (report.best) save_model("best");
  report.without_improvement = state_.without_improvement;
  log_->write(state_.step, with_cost(validation_scalars(report), state_));
  log_->write(state_.step, report.samples);
  observer_.on_validation(report);
}

void Run::save() {
  check_parameters(task_->model(), state_.step);
  const std::vector<AdamState> adam = ranks_ ? ranks_->gather_states(*adam_) : adam_->states();
  if (is_first_) {
    run_folder_->own("checkpoints");
    checkpoints_.write(state_.step, make_checkpoint(parts(), adam, state_));
  }
  saved_step_ = state_.step;
  saved_validation_ = state_.last_validation;
  observer_.on_checkpoint(checkpoints_.file(state_.step));
}

std::optional<ValidationReport> Run::write_outcome() {
  std::optional<ValidationReport> outcome;
  const bool mean = config_.train.average_checkpoints > 1;
  if (!mean && state_.best_step < 0) swap_averages();
  if (mean) {
    if (is_first_) load_mean();
    if (ranks_) ranks_->broadcast_parameters(task_->model());
    if (validates()) outcome = measure();
  }
  if (!is_first_) return std::nullopt;
  if (!mean && state_.best_step >= 0) load_best();
  save_model("model");
  return outcome;
}

// With adapters, the model with them added, and the adapters beside it.
void Run::save_model(const char* name) {
  run_folder_->own(name);
  task_->save_model(folder_ / name);
  if (config_.lora.on())
    write_adapter(folder_ / name / kAdapterFolder, task_->model(),
                  {.base = initial_->folder(),
                   .lora = config_.lora,
                   .saved = new_names_,
                   .labels = config_.model.labels,
                   .is_regression = config_.model.is_regression()});
}

void Run::load_best() {
  const fs::path best = folder_ / "best";
  if (!config_.lora.on()) return load_parameters(best / kParameterFile, task_->model());
  read_adapter(best / kAdapterFolder, initial_->folder(), task_->model());
}

// Of the last checkpoints.
void Run::load_mean() {
  std::vector<fs::path> files;
  for (const int64_t step : checkpoints_.steps())
    if (step <= state_.step) files.push_back(checkpoints_.file(step));
  const auto count = std::min(files.size(), static_cast<size_t>(config_.train.average_checkpoints));
  mean_of_checkpoints(std::span(files).last(count), task_->model());
}

TrainingResult Run::result(StopReason reason) const {
  TrainingResult result{.reason = reason, .step = state_.step, .seconds = state_.seconds};
  if (state_.best_step >= 0) result.best_step = state_.best_step;
  result.best_value = state_.best_value;
  return result;
}

}  // namespace

Trainer::Trainer(RunConfig config, fs::path run_folder, TrainingObserver& observer,
                 const std::atomic<bool>& stop_requested, std::shared_ptr<Communicator> communicator)
    : config_(std::move(config)),
      folder_(std::move(run_folder)),
      observer_(observer),
      stop_requested_(stop_requested),
      communicator_(std::move(communicator)) {
  config_.validate_for_training();
}

TrainingResult Trainer::run(bool resume) {
  const ThreadScope threads(config_.train.threads);
  TrainingObserver nobody;
  Run run(config_, folder_, communicator_->rank() == 0 ? observer_ : nobody, stop_requested_, *communicator_);
  run.prepare(resume);
  return run.train();
}

}  // namespace attune

// What comes before the first step of a run.

#include <fmt/format.h>
#include <array>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/nn/layer_stack.h"
#include "attune/tensor/buffer.h"
#include "attune/tensor/device.h"
#include "attune/train/best_model.h"
#include "attune/train/rank_device.h"
#include "attune/train/tokenizers.h"
#include "attune/train/trained_parts.h"
#include "attune/train/training_run.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

}  // namespace

TrainingRun::TrainingRun(const RunConfig& config, const fs::path& folder, TrainingObserver& observer,
                         const std::atomic<bool>& stop, Communicator& communicator)
    : config_(config),
      folder_(folder),
      observer_(observer),
      stop_(stop),
      communicator_(communicator),
      device_(device_of_rank(config.train.device, communicator)),
      checkpoints_(folder / "checkpoints", config.train.keep_checkpoints) {}

void TrainingRun::prepare(bool resume) {
  if (is_first_) run_folder_.emplace(folder_);
  const std::optional<int64_t> resumed = step_to_resume(resume);
  resolve_precision(resumed);
  const RunConfig given = config_;
  make_task(resumed.has_value());
  if (is_first_) validation_conditions_ = validation_conditions(config_);
  if (resumed) restore(*resumed);
  task_->begin_epoch(state_.epoch);
  check_length(config_, steps_of_run());
  if (is_first_) {
    if (const fs::path aside = run_folder_->write("config.toml", write_toml(with_absolute_paths(given)));
        !aside.empty())
      observer_.on_message(
          fmt::format("config.toml is not as the run wrote it; it is set aside as {}", aside.filename().string()));
    for (const char* name : {"metrics.jsonl", "samples.jsonl"}) run_folder_->own(name);
    if (!resumed) run_folder_->remove_unfinished();
    const bool begins = !fs::exists(folder_ / "metrics.jsonl");
    log_.emplace(folder_, state_.step, state_.last_validation);
    if (begins)
      log_->write(
          0, std::array{std::pair{std::string("parameters"), static_cast<double>(parameter_count(task_->model()))}});
  }
  batches_.emplace(*task_, batch_part(), config_.train.accumulate);
  if (state_.batch >= task_->batches())
    fail<FileError>("{}: the checkpoint continues at batch {}, but the epoch has only {} batches",
                    checkpoints_.file(state_.step).string(), state_.batch, task_->batches());
  report_start();
  if (const std::string note = precision_note(resolved(config_.train.precision, device_), device_); !note.empty())
    observer_.on_message(note);
}

void TrainingRun::restore(int64_t step) {
  const fs::path file = checkpoints_.file(step);
  const RestoredRun restored = restore_checkpoint(file, parts());
  state_ = restored.state;
  if (state_.step != step)
    fail<FileError>("{}: is the checkpoint of step {}; give it back its name", file.string(), state_.step);
  saved_step_ = state_.step;
  saved_validation_ = state_.last_validation;
  for (const std::string& change : restored.changes) observer_.on_message(change);
  forget_lost_best(restored.validation);
}

// The first rank looks, and tells the others. The checkpoint still names the best model that was forgotten, so that it
// has to be written again after the next validation, even where it says that this step was validated.
void TrainingRun::forget_lost_best(const Json& validation_before) {
  constexpr int64_t kNoStep = -2;  // -1 is the state before any validation
  const int64_t best_before = state_.best_step;
  if (is_first_)
    if (const std::string lost =
            attune::forget_lost_best(folder_ / "best", config_, {validation_before, validation_conditions_}, state_);
        !lost.empty())
      observer_.on_message(lost);
  share_state();
  if (state_.best_step == best_before) return;
  forgotten_at_ = state_.step;
  saved_validation_ = kNoStep;
}

// The first rank looks, and tells the others.
std::optional<int64_t> TrainingRun::step_to_resume(bool resume) {
  const std::optional<int64_t> found = is_first_ ? newest_checkpoint(resume) : std::nullopt;
  int64_t step = found.value_or(-1);
  communicator_.broadcast(std::as_writable_bytes(std::span(&step, 1)));
  return step < 0 ? std::nullopt : std::optional(step);
}

// "auto" becomes one precision for all ranks and for the whole run, also for what is resumed on another machine.
void TrainingRun::resolve_precision(const std::optional<int64_t>& resumed) {
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

std::optional<int64_t> TrainingRun::newest_checkpoint(bool resume) {
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
  for (const auto& [step, damage] : found.damaged) set_aside(step, damage);
  return found.step;
}

void TrainingRun::make_task(bool resumes) {
  // The checkpoints of a run with adapters have only what it trains.
  if (!config_.train.initialize_from.empty() && (!resumes || config_.lora.on())) {
    initial_.emplace(config_.train.initialize_from);
    initial_->check(config_);
    if (config_.lora.on()) base_sha256_ = initial_->sha256_of_samples();
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

void TrainingRun::say_vocabulary() {
  const TransformerConfig& model = config_.model;
  const bool pairs = model.architecture == Architecture::encoder_decoder;
  const std::string note = pairs ? vocabulary_note(config_, model.source_vocab, model.target_vocab)
                                 : vocabulary_note(config_, model.vocab, model.vocab);
  if (!note.empty()) observer_.on_message(note);
}

void TrainingRun::report_start() {
  observer_.on_start({.model = config_.model,
                      .parameters = parameter_count(task_->model()),
                      .corpus = task_->corpus(),
                      .batches = task_->batches(),
                      .total_steps = steps_of_run(),
                      .step = state_.step});
}

}  // namespace attune

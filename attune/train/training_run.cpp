#include "attune/train/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "attune/base/file.h"
#include "attune/base/interrupt.h"
#include "attune/base/json_fields.h"
#include "attune/base/process_memory.h"
#include "attune/hub/adapter_folder.h"
#include "attune/io/parameter_file.h"
#include "attune/tensor/buffer.h"
#include "attune/train/best_model.h"
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

// The scalars of the model that is the mean of so many checkpoints.
std::vector<std::pair<std::string, double>> averaged_scalars(const ValidationReport& report, int64_t checkpoints) {
  std::vector<std::pair<std::string, double>> scalars = validation_scalars(report);
  for (auto& [name, value] : scalars) name.insert(0, kAveragedPrefix);
  scalars.emplace(scalars.begin(), kAveragedCheckpoints, static_cast<double>(checkpoints));
  return scalars;
}

// The layer of the guided head keeps its activations; it may share parameters with those that compute theirs again.
bool guided_outside_of_checkpoints(const RunConfig& config) {
  return config.train.checkpoint_activations && !config.data.train_alignments.empty();
}

}  // namespace

// Each rank has its own clock and gets its own signals: here all agree on the time, and on whether to stop.
bool TrainingRun::stop_agreed() {
  struct Said {
    double seconds;
    int64_t stop;
  };
  const std::vector<Said> all = communicator_.all_gather_values(Said{state_.seconds, stop_ ? 1 : 0});
  state_.seconds = all[0].seconds;
  return std::ranges::any_of(all, [](const Said& said) { return said.stop != 0; });
}

// Gives the other ranks what the first one has decided alone.
void TrainingRun::share_state() {
  if (!ranks_) return;
  const std::string text = communicator_.broadcast(write_fields(state_).dump());
  read_fields(Json::parse(text), state_, "the first rank's state");
}

// Puts the moving averages in the place of the parameters, as the model is to be used; a second call swaps them back.
void TrainingRun::swap_averages() {
  adam_->swap_averages();
  if (ranks_ && config_.train.moving_average > 0) ranks_->share_parameters();
}

TrainingResult TrainingRun::train() {
  for (;;) {
    if (stop_agreed()) {
      if (saved_step_ != state_.step) save();
      return result(StopReason::requested);
    }
    // Each is done once for a step, also when the run was interrupted in between.
    if (validates() && validation_is_due() && state_.last_validation != state_.step && !validate()) continue;
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

void TrainingRun::step() {
  const auto begin = std::chrono::steady_clock::now();
  const uint64_t first_forward = static_cast<uint64_t>(state_.step) * static_cast<uint64_t>(config_.train.accumulate);
  const std::vector<TrainingBatch> batches = batches_->next(state_.batch, state_.step);
  const auto count = static_cast<int64_t>(batches.size());
  const double rate = rate_of(state_.step + 1), r_drop = config_.train.r_drop;
  const UpdateResult done = update(task_->model(), *adam_,
                                   {.batches = batches,
                                    .step = state_.step + 1,
                                    .epoch = state_.epoch + 1,
                                    .first_batch = state_.batch + 1,
                                    .learning_rate = rate,
                                    .precision = resolved(config_.train.precision, device_),
                                    .label_smoothing = config_.train.label_smoothing,
                                    .r_drop = r_drop,
                                    .seed = config_.train.seed,
                                    .first_forward = forward_of(first_forward, batch_part()),
                                    .device = device_,
                                    .meanwhile = [&] { batches_->send_ahead(device_, r_drop); },
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

void TrainingRun::report_step(double learning_rate) {
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

void TrainingRun::log(double learning_rate) {
  const LogWindow window = std::exchange(state_.window, {});
  const LogForm form{.probabilities = !config_.model.is_regression(), .several_ranks = ranks_.has_value()};
  if (!log_) return;
  run_folder_->check_is_there();  // the log's files stay open when they are removed
  log_->write(state_.step, with_cost(log_scalars(window, learning_rate, form), state_));
}

ValidationReport TrainingRun::measure() {
  const auto begin = std::chrono::steady_clock::now();
  ValidationReport report = task_->validate({.interrupt = &stop_, .ranks = ranks_ ? &communicator_ : nullptr});
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  report.step = state_.step;
  return report;
}

// False: a request to stop ended it. Nothing has changed, and a resumed run validates the same step.
bool TrainingRun::validate() {
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

void TrainingRun::judge(ValidationReport report) {
  report.best = take_if_best(report, config_.best_metric(), state_);
  if (report.best) {
    save_model("best");
    write_best_step(folder_ / "best", state_);
  }
  report.without_improvement = state_.without_improvement;
  log_->write(state_.step, with_cost(validation_scalars(report), state_));
  log_->write(state_.step, report.samples);
  observer_.on_validation(report);
}

void TrainingRun::save() {
  check_parameters(task_->model(), state_.step);
  const std::vector<AdamState> adam = ranks_ ? ranks_->gather_states(*adam_) : adam_->states();
  if (is_first_) {
    run_folder_->own("checkpoints");
    Checkpoint checkpoint = make_checkpoint(parts(), adam, state_);
    const bool ends = limit_reached(config_.train, state_).has_value();
    if (!checkpoint_is_due(config_.train, state_)) checkpoint.kind = ends ? CheckpointKind::last : CheckpointKind::stop;
    checkpoints_.write(state_.step, checkpoint);
  }
  saved_step_ = state_.step;
  saved_validation_ = state_.last_validation;
  observer_.on_checkpoint(checkpoints_.file(state_.step));
}

std::optional<ValidationReport> TrainingRun::write_outcome() {
  std::optional<ValidationReport> outcome;
  const std::vector<fs::path> averaged = checkpoints_to_average();
  int64_t count = std::ssize(averaged);
  communicator_.broadcast(std::as_writable_bytes(std::span(&count, 1)));
  const bool mean = count > 1;
  if (!mean && state_.best_step < 0) swap_averages();
  if (mean) {
    if (is_first_) mean_of_checkpoints(averaged, task_->model());
    if (ranks_) ranks_->broadcast_parameters(task_->model());
    if (validates()) outcome = measure();
    if (outcome && log_) log_->write(state_.step, with_cost(averaged_scalars(*outcome, count), state_));
  }
  // A rank that leaves would end its group of GPUs while a neighbour may still receive.
  communicator_.barrier();
  if (!is_first_) return std::nullopt;
  if (!mean && state_.best_step >= 0) load_best();
  save_model("model");
  return outcome;
}

// With adapters, the model with them added, and the adapters beside it.
void TrainingRun::save_model(const char* name) {
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

void TrainingRun::load_best() {
  const fs::path best = folder_ / "best";
  if (const std::string other = other_best_step(best, state_); !other.empty()) observer_.on_message(other);
  if (!config_.lora.on()) return load_parameters(best / kParameterFile, task_->model());
  read_adapter(best / kAdapterFolder, initial_->folder(), task_->model());
}

// Renames a damaged checkpoint: by its name it would be taken for a good one.
void TrainingRun::set_aside(int64_t step, const std::string& damage) {
  const fs::path aside = checkpoints_.set_aside(step);
  observer_.on_message(fmt::format("{}; it is set aside as {}", damage, aside.filename().string()));
}

// On the first rank the last train.average_checkpoints that are intact, or as many as there are; elsewhere none. Those
// that were written only because the run was stopped do not count: a run that never stopped has none. Tells the user
// where there are fewer than asked for.
std::vector<fs::path> TrainingRun::checkpoints_to_average() {
  const int64_t most = config_.train.average_checkpoints;
  std::vector<fs::path> files;
  if (!is_first_ || most < 2) return files;
  const std::vector<int64_t> steps = checkpoints_.steps();
  for (auto step = steps.rbegin(); step != steps.rend() && std::ssize(files) < most; ++step) {
    if (*step > state_.step) continue;
    if (const std::string damage = checkpoints_.damage(*step); !damage.empty()) {
      set_aside(*step, damage);
    } else if (*step == state_.step || checkpoints_.is_due(*step)) {
      files.push_back(checkpoints_.file(*step));
    }
  }
  std::ranges::reverse(files);
  const int64_t count = std::ssize(files);
  if (count == most) return files;
  observer_.on_message(fmt::format("train.average_checkpoints = {}: {}", most,
                                   count > 1 ? fmt::format("there are {}; the model is their mean", count)
                                             : "there is one checkpoint, so that nothing is averaged"));
  return files;
}

TrainingResult TrainingRun::result(StopReason reason) const {
  TrainingResult result{.reason = reason, .step = state_.step, .seconds = state_.seconds};
  if (state_.best_step >= 0) result.best_step = state_.best_step;
  result.best_value = state_.best_value;
  return result;
}

}  // namespace attune

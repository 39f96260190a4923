// attune train: trains a model as a configuration file says.

#include <cmath>
#include <iostream>

#include "attune/base/parallel.h"
#include "attune/cli/command.h"
#include "attune/cli/terminal.h"
#include "attune/train/config.h"
#include "attune/train/trainer.h"

namespace attune::cli {
namespace {

struct Options {
  std::string config;
  std::string out;
  std::vector<std::string> set;
  bool resume = false;
  bool describe = false;
};

// Shows the run on the terminal: a bar that is redrawn, or plain lines in a log.
class TerminalObserver final : public TrainingObserver {
 public:
  void on_start(const StartReport& report) override {
    start_step_ = report.step;
    terminal_.message(fmt::format("{} parameters, vocabularies of {} and {}", report.parameters, report.source_vocab,
                                  report.target_vocab));
    terminal_.message(fmt::format(
        "{} pairs, {} and {} tokens, about {} batches an epoch; left out: {} too long, {} empty", report.training_pairs,
        report.source_tokens, report.target_tokens, report.batches, report.skipped_long, report.skipped_empty));
    if (report.step > 0) terminal_.message(fmt::format("going on from step {}", report.step));
  }

  void on_step(const StepReport& report) override {
    if (start_seconds_ < 0) start_seconds_ = report.seconds;
    terminal_.progress({.done = report.step,
                        .total = report.total_steps,
                        .seconds = report.seconds - start_seconds_,
                        .rate = report.tokens_per_second,
                        .unit = "tok",
                        .fields = {{"step", std::to_string(report.step)},
                                   {"loss", fmt::format("{:.3f}", report.loss)},
                                   {"ppl", fmt::format("{:.4g}", std::exp(report.nll))},
                                   {"lr", fmt::format("{:.2e}", report.learning_rate)},
                                   {"epoch", std::to_string(report.epoch)}},
                        .start = start_step_},
                       report.logged);
  }

  void on_validation(const ValidationReport& report) override { terminal_.message(validation_line(report)); }
  void on_message(const std::string& text) override { terminal_.message(text); }
  void finish() { terminal_.clear(); }

  static std::string validation_line(const ValidationReport& report) {
    return fmt::format("step {}: validation loss {:.4f}  perplexity {:.3f}  BLEU {:.2f}{}", report.step,
                       report.loss.nll, report.loss.perplexity, report.bleu, report.best ? "  (best)" : "");
  }

 private:
  Terminal terminal_;
  int64_t start_step_ = 0;
  double start_seconds_ = -1;
};

const char* describe(StopReason reason) {
  switch (reason) {
    case StopReason::steps:
      return "all steps are done";
    case StopReason::epochs:
      return "all epochs are done";
    case StopReason::minutes:
      return "the time is up";
    case StopReason::patience:
      return "validation did not improve any more";
    case StopReason::requested:
      return "stopped on request; --resume goes on";
  }
  return "?";
}

int run(const Options& options) {
  if (options.describe) {
    std::cout << describe_config();
    return 0;
  }
  const bool own_config = options.config.empty() && options.resume && !options.out.empty();
  const std::string config_file = own_config ? options.out + "/config.toml" : options.config;
  if (config_file.empty()) fail<ConfigError>("a configuration file is needed, for instance examples/demo.toml");
  if (options.out.empty()) fail<ConfigError>("--out is needed: the folder of the run");
  const RunConfig config = read_run_config(config_file, options.set);
  if (config.train.threads > 0) set_thread_count(static_cast<int>(config.train.threads));
  catch_stop_signals();
  TerminalObserver observer;
  Trainer trainer(config, options.out, observer, stop_requested());
  const TrainingResult result = trainer.run(options.resume);
  observer.finish();
  std::cerr << fmt::format("{}: step {}, {:.1f} minutes of training\n", describe(result.reason), result.step,
                           result.seconds / 60);
  if (result.best_step)
    std::cerr << fmt::format("best validation: {:.4g} at step {}\n", result.best_value, *result.best_step);
  if (result.outcome) std::cerr << "averaged model: " << TerminalObserver::validation_line(*result.outcome) << "\n";
  if (result.reason == StopReason::requested) return 130;
  std::cerr << "the model is " << options.out << "/model\n";
  return 0;
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      add_command(app, "train", "Train a model; Ctrl-C saves and stops, --resume goes on",
                  "  attune train examples/demo.toml --out runs/demo\n"
                  "  attune train run.toml --out runs/a --set train.steps=20000 --set model.encoder_attention=latent\n"
                  "  attune train --out runs/a --resume\n"
                  "  attune train --describe-config",
                  [options] { return run(*options); });
  command->add_option("config", options->config, "Configuration (TOML)")->check(CLI::ExistingFile);
  command->add_option("--out", options->out, "Folder of the run: checkpoints, metrics, and at the end model/");
  command->add_option("--set", options->set, "Overrides one key: train.steps=20000")->expected(1)->take_all();
  command->add_flag("--resume", options->resume,
                    "Go on from the newest checkpoint, bit for bit; without a configuration, with that of the run");
  command->add_flag("--describe-config", options->describe, "Print every key with its default");
}

}  // namespace attune::cli

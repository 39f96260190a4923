// attune train: trains a model by a configuration file, or by a configuration that is chosen for a text.

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <optional>
#include <span>

#include "attune/base/fail.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/cli/command.h"
#include "attune/cli/options/device_option.h"
#include "attune/cli/ranks.h"
#include "attune/cli/standard_stream.h"
#include "attune/cli/terminal.h"
#include "attune/cli/text_output.h"
#include "attune/cli/training_text.h"
#include "attune/dist/launch.h"
#include "attune/models/presets.h"
#include "attune/train/config.h"
#include "attune/train/config/config_description.h"
#include "attune/train/run_folder.h"
#include "attune/train/trainer.h"

namespace attune::cli {
namespace {

struct Options {
  std::string config;
  std::string out;
  std::string preset;
  std::string device;
  std::vector<std::string> set;
  TrainingText text;
  bool resume = false;
  bool describe = false, reference_page = false;
  bool mpi = false;
};

// The line about a validation, with the measures that matter for the model's architecture. `training`: the newest entry
// of the training log, whose values are shown beside those of the validation.
std::string validation_line(const ValidationReport& report, const std::optional<StepReport>& training, bool smoothed) {
  const auto beside = [&](double StepReport::*value) {
    return training ? fmt::format(" (training {:.4f})", (*training).*value) : "";
  };
  std::string line =
      fmt::format("step {}: validation loss {:.4f}{}", report.step, report.loss.loss, beside(&StepReport::loss));
  if (smoothed) line += fmt::format("  nll {:.4f}{}", report.loss.nll, beside(&StepReport::nll));
  if (report.regression) {
    line += fmt::format("  Pearson {:.4f}  Spearman {:.4f}", report.regression->pearson, report.regression->spearman);
  } else if (report.classification) {
    line += fmt::format("  accuracy {:.2f}%  macro-F1 {:.4f}", 100 * report.classification->accuracy,
                        report.classification->macro_f1);
  } else {
    line += fmt::format("  perplexity {:.3f}", report.loss.perplexity);
    if (!report.bleu) line += fmt::format("  accuracy {:.2f}%", 100 * report.loss.accuracy);
  }
  if (report.bleu) line += fmt::format("  BLEU {:.2f}", *report.bleu);
  if (report.bits_per_character) line += fmt::format("  bits per character {:.4f}", *report.bits_per_character);
  if (report.bits_per_byte) line += fmt::format("  bits per byte {:.4f}", *report.bits_per_byte);
  return line + (report.best ? "  (best)" : "");
}

std::string model_line(const StartReport& report) {
  const TransformerConfig& model = report.model;
  std::string line = fmt::format("{}, {} parameters, ", enum_name(model.architecture), report.parameters);
  if (model.architecture == Architecture::encoder_decoder)
    return line + fmt::format("vocabularies of {} and {}", model.source_vocab, model.target_vocab);
  line += fmt::format("a vocabulary of {}", model.vocab);
  if (model.architecture == Architecture::decoder_lm) line += fmt::format(", context of {}", model.context_length);
  if (model.is_regression()) return line + fmt::format(", a regression: {}", model.labels.front());
  if (model.architecture == Architecture::encoder_classifier) {
    constexpr size_t kShown = 8;
    const std::span shown = std::span(model.labels).first(std::min(kShown, model.labels.size()));
    line += fmt::format(", {} labels: {}{}", model.labels.size(), fmt::join(shown, ", "),
                        shown.size() < model.labels.size() ? ", ..." : "");
  }
  return line;
}

std::string text_line(const StartReport& report) {
  const CorpusReport& corpus = report.corpus;
  const CorpusSize& size = corpus.size;
  const Architecture architecture = report.model.architecture;
  std::string line = count_of_examples(size.examples, architecture) + ", ";
  line += architecture == Architecture::encoder_decoder
              ? fmt::format("{} and {} tokens", size.tokens, size.target_tokens)
              : fmt::format("{} tokens", size.tokens);
  line += fmt::format(", about {} batches an epoch", report.batches);
  if (corpus.validation_examples > 0) line += fmt::format("; {} for validation", corpus.validation_examples);
  if (architecture == Architecture::encoder_decoder || corpus.skipped_long + corpus.skipped_empty > 0)
    line += fmt::format("; left out: {} too long, {} empty", corpus.skipped_long, corpus.skipped_empty);
  if (corpus.unaligned > 0) line += fmt::format("; {} whose alignment does not fit their tokens", corpus.unaligned);
  if (corpus.cut > 0) line += fmt::format("; {} too long and cut", corpus.cut);
  return line;
}

// Shows the run on the terminal: a bar that is redrawn, or plain lines in a log.
class TerminalObserver final : public TrainingObserver {
 public:
  explicit TerminalObserver(const TrainConfig& train)
      : smoothed_(train.label_smoothing > 0), time_limit_(60 * train.max_minutes) {}

  void on_start(const StartReport& report) override {
    shows_perplexity_ = report.model.architecture != Architecture::encoder_classifier;
    terminal_.message(model_line(report));
    terminal_.message(text_line(report));
    if (report.step > 0) terminal_.message(fmt::format("going on from step {}", report.step));
  }

  void on_step(const StepReport& report) override {
    if (start_seconds_ < 0) {  // seconds count from step 0, also in a resumed run: this step's own are not known
      start_seconds_ = report.seconds;
      start_step_ = report.step;
    }
    if (report.logged || !logged_ || !logged_->logged) logged_ = report;
    ProgressState state{.name = "step",
                        .done = report.step,
                        .total = report.total_steps,
                        .seconds = report.seconds - start_seconds_,
                        .rate = report.tokens_per_second,
                        .unit = "tok",
                        .fields = {{"loss", fmt::format("{:.3f}", report.loss)}},
                        .start = start_step_,
                        .time_limit = time_limit_,
                        .earlier_seconds = start_seconds_};
    if (smoothed_) state.fields.emplace_back("nll", fmt::format("{:.3f}", report.nll));
    if (shows_perplexity_) state.fields.emplace_back("perplexity", fmt::format("{:.4g}", std::exp(report.nll)));
    state.fields.emplace_back("lr", fmt::format("{:.2e}", report.learning_rate));
    state.fields.emplace_back("epoch", std::to_string(report.epoch));
    terminal_.progress(state, report.logged);
  }

  void on_validation(const ValidationReport& report) override {
    terminal_.message(validation_line(report, logged_, smoothed_));
  }
  void on_message(const std::string& text) override { terminal_.message(text); }
  void finish() { terminal_.clear(); }

 private:
  Terminal terminal_;
  const bool smoothed_;      // the loss is label-smoothed, so that the negative log likelihood is another number
  const double time_limit_;  // seconds of training; 0: none
  std::optional<StepReport> logged_;  // the newest entry of the log; before the first entry, the newest step
  int64_t start_step_ = 0;
  double start_seconds_ = -1;
  bool shows_perplexity_ = true;
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

// The metric with its value, as people write it.
std::string best_text(ValidationMetric metric, double value) {
  switch (metric) {
    case ValidationMetric::bleu:
      return fmt::format("BLEU {:.2f}", value);
    case ValidationMetric::accuracy:
      return fmt::format("accuracy {:.2f}%", 100 * value);
    case ValidationMetric::macro_f1:
      return fmt::format("macro-F1 {:.4f}", value);
    case ValidationMetric::pearson:
      return fmt::format("Pearson {:.4f}", value);
    case ValidationMetric::spearman:
      return fmt::format("Spearman {:.4f}", value);
    case ValidationMetric::loss:
    case ValidationMetric::automatic:
      break;
  }
  return fmt::format("loss {:.4f}", value);
}

RunConfig read_config(const Options& options) {
  const bool own_config = options.config.empty() && options.resume && !options.out.empty();
  const std::string file = own_config ? options.out + "/config.toml" : options.config;
  std::error_code ignored;
  if (own_config && !std::filesystem::exists(file, ignored))
    fail<ConfigError>("{}: there is no run to resume: it has no config.toml", options.out);
  if (file.empty() && options.preset.empty() && options.set.empty() && !options.describe)
    fail<ConfigError>(
        "a text is needed (--source and --target, --labelled or --text), or a configuration file, for instance "
        "examples/demo.toml");
  const auto read = options.describe ? read_run_config : read_training_config;
  return read(file, options.set, options.preset);
}

void check_out(const Options& options) {
  if (options.out.empty())
    fail<ConfigError>("--out is needed: the folder of the run{}", options.resume ? " to resume" : "");
}

// Throws ConfigError for options that cannot stand beside a text: a configuration file and --resume have a text
// already.
void check_text_options(const Options& options) {
  const std::string used = used_option(options.text);
  if (!options.config.empty())
    fail<ConfigError>("{} {}: what to train on is said twice; with a configuration, --set changes its keys",
                      options.config, used);
  if (options.resume) fail<ConfigError>("--resume {}: a run goes on with its own text: leave out {}", used, used);
}

AutomaticConfig choose_config(const Options& options) {
  check_text_options(options);
  return read_automatic_config(sections_of(options.text), options.set, options.preset);
}

// Returns the configuration of the run, the same on all ranks. For a text, rank 0 chooses it and prints its choices.
RunConfig config_of_run(const Options& options, Communicator& communicator) {
  if (used_option(options.text).empty()) return read_config(options);
  check_out(options);
  std::string text;
  if (communicator.rank() == 0) {
    check_text_options(options);
    RunFolder(options.out).refuse_checkpoints();  // before a long text is read
    const AutomaticConfig chosen = choose_config(options);
    text = write_fields(chosen.config).dump();
    write_to_standard_error("chosen for this text:\n" + choice_table(chosen.choices));
  }
  RunConfig config;
  read_fields(Json::parse(communicator.broadcast(text)), config, "the first rank's configuration");
  return config;
}

int train(const Options& options, const std::shared_ptr<Communicator>& communicator) {
  if (options.resume) check_out(options);  // the configuration may be in this folder
  const RunConfig config = config_of_run(options, *communicator);
  check_out(options);
  catch_stop_signals();
  const bool smoothed = config.train.label_smoothing > 0;
  TerminalObserver observer(config.train);
  Trainer trainer(config, options.out, observer, stop_requested(), communicator);
  const TrainingResult result = trainer.run(options.resume);
  observer.finish();
  const int status = result.reason == StopReason::requested ? stopped_status() : 0;
  if (communicator->rank() > 0) return status;
  std::string summary =
      fmt::format("{}: step {}, {} of training\n", describe(result.reason), result.step, time_text(result.seconds));
  if (result.best_step)
    summary += fmt::format("best validation: {} at step {}\n", best_text(config.best_metric(), result.best_value),
                           *result.best_step);
  if (result.outcome) summary += "averaged model: " + validation_line(*result.outcome, {}, smoothed) + "\n";
  if (status == 0) summary += "the model is " + one_line(options.out) + "/model\n";
  write_to_standard_error(summary);
  return status;
}

int run(Options options) {
  if (!options.device.empty()) options.set.push_back("train.device=" + options.device);
  if (options.reference_page) {
    std::cout << configuration_page();
    return 0;
  }
  if (options.describe) {
    if (!options.preset.empty()) {
      const Preset& preset = find_preset(options.preset);
      std::cout << fmt::format("# {}: {}.\n# What differs from the publication: {}.\n", preset.name, preset.description,
                               preset.differs);
    }
    std::cout << describe_config(used_option(options.text).empty() ? read_config(options)
                                                                   : choose_config(options).config);
    return 0;
  }
  const std::shared_ptr<Communicator> communicator = make_communicator(options.mpi);
  return run_on_ranks(*communicator, [&] { return train(options, communicator); });
}

}  // namespace

void add_train(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = add_command(
      app, "train", "Train a model; Ctrl-C saves and stops, --resume goes on",
      "  attune train --source a.en --target a.de --out runs/a               # all else is chosen for the text\n"
      "  attune train --labelled topics.tsv --out runs/topics\n"
      "  attune train --text poems.txt --out runs/poet --set train.steps=2000\n"
      "  attune train examples/demo.toml --out runs/demo                     # as a configuration says\n"
      "  attune train --preset gpt-char --out runs/lm --set data.train_files=book.txt \\\n"
      "      --set data.tokenizer_type=characters --set data.valid_fraction=0.1   # a language model\n"
      "  attune train --preset bert-tiny --out runs/mood --set data.train_files=reviews.tsv \\\n"
      "      --set data.valid_fraction=0.1                                        # a classifier\n"
      "  attune train mlm.toml --out runs/mlm --set model.architecture=encoder_masked_lm   # its pretraining\n"
      "  attune train mood.toml --out runs/tuned --set train.initialize_from=runs/mlm/model\n"
      "  attune train run.toml --out runs/a --set train.steps=20000 --set model.encoder_attention=latent\n"
      "  attune train --out runs/a --resume\n"
      "  mpirun -n 4 attune train run.toml --out runs/a      # four processes, see docs/scaling.md\n"
      "  torchrun --no-python --nproc-per-node 4 attune train run.toml --out runs/a       # the same without MPI\n"
      "  attune train --describe-config --set model.architecture=decoder_lm",
      [options] { return run(*options); });
  command->add_option("config", options->config, "Configuration (TOML)")->check(CLI::ExistingFile);
  add_training_text(*command, options->text);
  command->add_option("--out", options->out, "Folder of the run: checkpoints, metrics, and at the end model/");
  command->add_option("--preset", options->preset,
                      "A configuration of the literature, to which the file's keys are added: " + preset_names());
  command->add_option("--set", options->set, "Overrides one key: train.steps=20000")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  add_device(*command, options->device);
  command->add_flag("--resume", options->resume,
                    "Go on from the newest checkpoint, bit for bit; without a configuration, with that of the run");
  command->add_flag("--mpi", options->mpi, "Be one of several processes also where mpirun is not recognised");
  command->add_flag("--describe-config", options->describe,
                    "Print every key of the architecture, with its meaning, as the other options set it");
  command->add_flag("--reference-page", options->reference_page,
                    "Print docs/configuration.md: every key of every architecture");
}

}  // namespace attune::cli

#pragma once
// A task that a tiny model learns in seconds: say a line of letters backwards.

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/base/parallel.h"
#include "attune/base/random.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/train/trainer.h"
#include "tests/support/temporary_folder.h"

namespace attune {

/// While one lives, work is on one thread: for tiny models, waiting for a second one can only cost time.
class OneThread {
 public:
  OneThread() : before_(thread_count()) { set_thread_count(1); }
  ~OneThread() { set_thread_count(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

/// Writes <name>.src and <name>.tgt with `lines` lines of `shortest` to `longest` words out of eight.
inline void write_reverse_text(const TemporaryFolder& folder, const std::string& name, int64_t lines, int64_t shortest,
                               int64_t longest, uint64_t seed) {
  Random random(seed);
  std::string source, target;
  for (int64_t i = 0; i < lines; ++i) {
    std::vector<std::string> words(static_cast<size_t>(shortest) +
                                   random.below(static_cast<uint64_t>(longest - shortest + 1)));
    for (std::string& word : words) word = std::string(1, static_cast<char>('a' + random.below(8)));
    for (const std::string& word : words) source += word + " ";
    std::reverse(words.begin(), words.end());
    for (const std::string& word : words) target += word + " ";
    source.back() = target.back() = '\n';
  }
  write_file(folder / (name + ".src"), source);
  write_file(folder / (name + ".tgt"), target);
}

/// A small model on that text, with every kind of dropout. No limits, validations or checkpoints are near.
inline RunConfig reverse_config(const TemporaryFolder& folder) {
  RunConfig config;
  config.model = {.d_model = 32, .heads = 4, .layers = 1, .d_ff = 64};
  config.data.train_source = {(folder / "train.src").string()};
  config.data.train_target = {(folder / "train.tgt").string()};
  config.data.valid_source = {(folder / "valid.src").string()};
  config.data.valid_target = {(folder / "valid.tgt").string()};
  config.data.tokenizer_type = TokenizerKind::whitespace;
  config.schedule = {.kind = ScheduleKind::constant, .learning_rate = 3e-3, .warmup_steps = 10};
  config.train = {
      .steps = 20, .batch_tokens = 128, .seed = 5, .log_every = 5, .valid_every = 1000, .checkpoint_every = 1000};
  return config;
}

/// Keeps what it is told, and can do something after a step.
class Recorder final : public TrainingObserver {
 public:
  void on_start(const StartReport& report) override { start = report; }
  void on_step(const StepReport& report) override {
    steps.push_back(report);
    if (after_step) after_step(report);
  }
  void on_validation(const ValidationReport& report) override { validations.push_back(report); }
  void on_checkpoint(const std::filesystem::path& path) override { checkpoints.push_back(path); }
  void on_message(const std::string& message) override { messages.push_back(message); }

  std::function<void(const StepReport&)> after_step;
  StartReport start;
  std::vector<StepReport> steps;
  std::vector<ValidationReport> validations;
  std::vector<std::filesystem::path> checkpoints;
  std::vector<std::string> messages;
};

struct TrainedRun {
  TrainingResult result;
  Recorder seen;
};

inline TrainedRun train(const RunConfig& config, const std::filesystem::path& folder, bool resume = false,
                        std::function<void(const StepReport&)> after_step = {}) {
  const std::atomic<bool> stop{false};
  TrainedRun run;
  run.seen.after_step = std::move(after_step);
  run.result = Trainer(config, folder, run.seen, stop).run(resume);
  return run;
}

inline std::filesystem::path checkpoint_file(const std::filesystem::path& run, int64_t step) {
  return run / "checkpoints" / fmt::format("step-{:08}.safetensors", step);
}

/// All tensors of a file as raw bytes.
inline std::map<std::string, std::string> tensors_of(const std::filesystem::path& file) {
  const SafetensorsReader reader(file);
  std::map<std::string, std::string> tensors;
  for (const std::string& name : reader.names()) {
    const Tensor t = reader.load(name);
    tensors[name] = std::string(static_cast<const char*>(t.raw()), t.bytes());
  }
  return tensors;
}

/// metrics.jsonl without what a clock says.
inline std::vector<std::string> metrics_of(const std::filesystem::path& run) {
  const std::string text = read_file(run / "metrics.jsonl");
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    Json line = Json::parse(text.substr(begin, end - begin));
    line.erase("time");
    line.erase("tokens_per_second");
    lines.push_back(line.dump());
    begin = end + 1;
  }
  return lines;
}

}  // namespace attune

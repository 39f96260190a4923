#pragma once
// Runs of the trainer, and what they leave.

#include <fmt/format.h>
#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/base/json.h"
#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/io/checkpoint.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/train/trainer.h"
#include "tests/support/temporary_folder.h"

namespace attune {

/// While one lives, work is on one thread: for tiny models, waiting for a second one can only cost time.
struct OneThread {
  ThreadScope scope{1};
};

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

/// The trainer's state in a checkpoint.
inline Json state_of(const std::filesystem::path& checkpoint) {
  return checkpoint_state(SafetensorsReader(checkpoint));
}

/// Changes it.
inline void change_state(const std::filesystem::path& file, const std::function<void(Json& state)>& change) {
  Checkpoint checkpoint;
  {
    const SafetensorsReader reader(file);
    for (const std::string& name : reader.names()) checkpoint.tensors.push_back({name, reader.load(name)});
    checkpoint.state = checkpoint_state(reader);
  }
  change(checkpoint.state);
  write_checkpoint(file, checkpoint);
}

/// metrics.jsonl without what a clock says.
inline std::vector<std::string> metrics_of(const std::filesystem::path& run) {
  const std::string text = read_file(run / "metrics.jsonl");
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    Json line = Json::parse(text.substr(begin, end - begin));
    for (const char* measured : {"time", "seconds", "tokens_per_second", "memory_mib", "tensor_memory_mib"})
      line.erase(measured);
    lines.push_back(line.dump());
    begin = end + 1;
  }
  return lines;
}

}  // namespace attune

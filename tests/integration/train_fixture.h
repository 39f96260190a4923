#pragma once
// What the tests of `attune train` share: a text to be reversed, and runs on it, in one process or in several ones.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "attune/base/file.h"
#include "attune/dist/mpi_transport.h"
#include "attune/io/safetensors.h"
#include "tests/support/run_command.h"
#include "tests/train/reverse_task.h"

namespace attune {

class TrainFixture : public ::testing::Test {
 protected:
  static bool has_several_ranks() { return has_mpi() && run_command({"sh", "-c", "command -v mpirun"}).status == 0; }

  /// The command that trains with config_ into the folder `run`. Each of several ranks writes its process to pid.<rank>
  /// before it becomes attune.
  std::vector<std::string> command(const std::string& run, bool resume = false, int ranks = 1) const {
    write_file(folder_ / "run.toml", write_toml(config_));
    std::vector<std::string> words =
        attune_command({"train", (folder_ / "run.toml").string(), "--out", (folder_ / run).string()});
    if (resume) words.emplace_back("--resume");
    if (ranks == 1) return words;
    const std::string write_process = "echo $$ > " + (folder_ / "pid.$OMPI_COMM_WORLD_RANK").string();
    const std::vector<std::string> shell = {"sh", "-c", write_process + "; exec \"$0\" \"$@\""};
    words.insert(words.begin(), shell.begin(), shell.end());
    return under_mpi(ranks, std::move(words));
  }
  /// The command that starts these words on several ranks of this machine.
  static std::vector<std::string> under_mpi(int ranks, std::vector<std::string> words) {
    const std::vector<std::string> launcher = {"env",
                                               "ASAN_OPTIONS=detect_leaks=0",  // MPI's libraries have some
                                               "mpirun",
                                               "-n",
                                               std::to_string(ranks),
                                               "--oversubscribe",
                                               "--allow-run-as-root",
                                               "--bind-to",
                                               "none",
                                               "--mca",
                                               "btl",
                                               "self,vader,tcp",
                                               "--mca",
                                               "btl_vader_single_copy_mechanism",
                                               "none"};
    words.insert(words.begin(), launcher.begin(), launcher.end());
    return words;
  }
  CommandResult run_to_the_end(const std::string& run, bool resume = false, int ranks = 1) const {
    const CommandResult result = run_command(command(run, resume, ranks), kOptions);
    EXPECT_FALSE(result.timed_out);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result;
  }

  /// Two runs ended with the same numbers. The metrics of several ranks say what communication cost, and may differ.
  void expect_the_same(const std::string& a, const std::string& b, int ranks = 1) const {
    for (const char* part : {"model/model.safetensors", "best/model.safetensors"})
      EXPECT_EQ(read_file(folder_ / a / part), read_file(folder_ / b / part)) << part << " differs";
    EXPECT_EQ(tensors_of(checkpoint_file(folder_ / a, config_.train.steps)),
              tensors_of(checkpoint_file(folder_ / b, config_.train.steps)));
    if (ranks == 1) {
      EXPECT_EQ(metrics_of(folder_ / a), metrics_of(folder_ / b));
    }
  }

  /// The models of two runs are the same but for rounding.
  void expect_models_near(const std::string& a, const std::string& b, double tolerance) const {
    const SafetensorsReader first(folder_ / a / "model" / "model.safetensors");
    const SafetensorsReader second(folder_ / b / "model" / "model.safetensors");
    for (const std::string& name : first.names()) {
      const Tensor p = first.load(name), q = second.load(name);
      for (size_t i = 0; i < p.values<float>().size(); ++i)
        ASSERT_NEAR(p.values<float>()[i], q.values<float>()[i], tolerance) << name;
    }
  }

  /// The process of one of several ranks; 0: it has not begun.
  pid_t process_of(int rank) const {
    std::error_code ignored;
    const std::filesystem::path file = process_file(rank);
    if (std::filesystem::file_size(file, ignored) < 2 || ignored) return 0;
    return std::stoi(read_file(file));
  }
  /// Before a run of several ranks is started again.
  void forget_processes(int ranks) const {
    for (int rank = 0; rank < ranks; ++rank) std::filesystem::remove(process_file(rank));
  }

  static inline const CommandOptions kOptions = {.input = {}, .timeout = std::chrono::seconds(250)};
  TemporaryFolder folder_{memory_folder()};
  RunConfig config_ = make_reverse_task(folder_, 200, 10);

 private:
  std::filesystem::path process_file(int rank) const { return folder_ / ("pid." + std::to_string(rank)); }
};

}  // namespace attune

#pragma once
// A training checkpoint is one safetensors file: parameters "model.<name>", Adam's moments "adam_m.<name>" and
// "adam_v.<name>", optionally a moving average "average.<name>", and the trainer's state as JSON in the metadata.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attune/base/fields.h"
#include "attune/base/json_fields.h"
#include "attune/io/safetensors.h"
#include "attune/nn/module.h"

namespace attune {

enum class CheckpointKind {
  due,   // written at one of the regular steps
  stop,  // written where a run was stopped, only to go on from there
  last   // written at the end of a run; counts as `stop` if the run is continued after all
};

struct Checkpoint {
  std::vector<NamedTensor> tensors;
  Json state = Json::object();  // JSON has no infinity and no NaN: they come back as null
  CheckpointKind kind = CheckpointKind::due;
};

/// Replaces `path` whole or not at all. The file has a checksum of its content. Throws FileError.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// The trainer's state of a file that write_checkpoint made. Throws FileError.
Json checkpoint_state(const SafetensorsReader& reader);

/// Whether the file begins as those of write_checkpoint() do; its tensors are not read.
bool is_checkpoint(const std::filesystem::path& path);

struct FoundCheckpoint {
  std::optional<int64_t> step = {};             // of the newest one that is intact
  std::map<int64_t, std::string> damaged = {};  // later ones, and what is wrong with them
};

/// The checkpoints of a run, "step-00001000.safetensors" and so on.
class CheckpointFolder {
 public:
  /// Keeps the last `keep_last` checkpoints, all of them for 0.
  CheckpointFolder(std::filesystem::path folder, int64_t keep_last);

  std::filesystem::path file(int64_t step) const;
  /// Writes the checkpoint, then removes old ones of earlier steps. Of those that were due, and this one unless it is a
  /// stop, the last `keep_last` stay. Of the others the last two stay after a stop, none after any other checkpoint, so
  /// that a run that went on has the files of one that never stopped. A file that is no checkpoint is set aside if it
  /// has the name of this one, else left as it is.
  void write(int64_t step, const Checkpoint& checkpoint) const;
  std::vector<int64_t> steps() const;  // ascending; does not check whether the files are valid
  /// Whether the checkpoint was due. Throws FileError.
  bool is_due(int64_t step) const;
  /// Reads a checkpoint and says what is wrong with it, "" for nothing. Throws FileError when it cannot be opened.
  std::string damage(int64_t step) const;
  /// Reads checkpoints from the last one backwards until one is as it was written. Throws FileError naming a file that
  /// cannot be opened, since it may be intact.
  FoundCheckpoint newest() const;
  /// Renames a checkpoint to NAME.damaged, or NAME.damaged.2 and so on where that is taken. Returns the new name.
  std::filesystem::path set_aside(int64_t step) const;

 private:
  std::filesystem::path folder_;
  int64_t keep_last_;
};

/// Fills `target` with the mean of the "model.*" tensors of the checkpoints, summed in float64. Throws FileError when
/// there are none or a tensor is missing or has another shape; `target` is then as it was. Source: Vaswani et al. 2017,
/// section 6.1.
void mean_of_checkpoints(std::span<const std::filesystem::path> paths, Module& target);

}  // namespace attune

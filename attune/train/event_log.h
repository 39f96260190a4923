#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "attune/train/validation.h"

namespace attune {

/// The numbers of a training run, in two forms in one folder, each complete after every call:
///   metrics.jsonl                          a JSON object a line: {"step":10,"time":1700000000.25,"loss":2.5};
///                                          time in seconds since 1970, a value that is not finite as null
///   events.out.tfevents.<time>.attune.<n>  the same for TensorBoard, a new file for every EventLog
///   samples.jsonl                          sentences with their translations, where there are some:
///                                          {"step":10,"source":"...","reference":"...","translation":"..."}
class EventLog {
 public:
  /// Appends to what the folder holds; makes the folder where there is none. A run that continues from a checkpoint of
  /// step `resume_step` >= 0 first removes what was logged for later steps and for an averaged model, which it measures
  /// again at its end, so that the log becomes that of a run without interruption; -1 keeps everything. A validation of
  /// that very step is removed too unless `last_validation` says that the run knows of it. Either way an incomplete
  /// last line, which a killed process leaves, is dropped. Throws FileError, also when metrics.jsonl has a line that is
  /// no such object.
  explicit EventLog(const std::filesystem::path& folder, int64_t resume_step = -1, int64_t last_validation = -1);

  /// Appends one line and one event. `step` >= 0; a name is neither "step" nor "time" and comes once. Throws DataError
  /// for these, FileError when the disk is full.
  void write(int64_t step, std::span<const std::pair<std::string, double>> scalars);

  /// Appends a line for each sample to samples.jsonl. Throws FileError.
  void write(int64_t step, std::span<const ValidationReport::Sample> samples);

 private:
  class AppendFile {
   public:
    explicit AppendFile(std::filesystem::path path);
    ~AppendFile();
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;

    /// In one write(2), so that a killed process leaves whole pieces.
    void append(std::string_view bytes);

   private:
    std::filesystem::path path_;
    int descriptor_;
  };

  const std::filesystem::path samples_file_;
  AppendFile metrics_;
  AppendFile events_;
};

}  // namespace attune

#pragma once
// The target tokens that the translation of a sentence may have, so that only some rows of the projection are
// multiplied.

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// The target tokens for each source token, and those for every sentence. Source: Jean et al. 2015, "On Using Very
/// Large Target Vocabulary for Neural Machine Translation", section 3.3.
///
/// Stored as safetensors: offsets int32 [source_vocab + 1], targets int32 [n] (those of source token s are
/// targets[offsets[s]] ... targets[offsets[s + 1] - 1]), frequent int32 [m], and target_vocab in the metadata.
class Shortlist {
 public:
  /// Throws DataError for a target outside the vocabulary.
  Shortlist(const std::vector<std::vector<int32_t>>& targets, std::vector<int32_t> frequent, int64_t target_vocab);

  /// The file may be hostile. Throws FileError naming it and what was expected.
  static Shortlist load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;

  int64_t source_vocab() const { return static_cast<int64_t>(offsets_.size()) - 1; }
  int64_t target_vocab() const { return target_vocab_; }
  /// All target tokens for a sentence, in rising order. Source tokens outside the vocabulary add nothing.
  std::vector<int32_t> targets_of(std::span<const int32_t> source) const;

 private:
  Shortlist() = default;
  /// What is wrong, or "".
  std::string fault() const;

  std::vector<int32_t> offsets_ = {0}, targets_, frequent_;
  int64_t target_vocab_ = 0;
};

}  // namespace attune

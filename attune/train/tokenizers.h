#pragma once
// The vocabularies of a run: one, or in translation one for each side.

#include <filesystem>
#include <memory>
#include <string>

#include "attune/base/atomic_folder.h"
#include "attune/base/file.h"
#include "attune/text/tokenizer_files.h"
#include "attune/train/config.h"

namespace attune {

/// Returns the tokenizers of the files that config.data names, else those of train.initialize_from, else new ones
/// learnt from the training text; the same text and seed give the same vocabulary. Throws ConfigError, DataError and
/// FileError.
TokenizerPair make_tokenizers(const RunConfig& config);
/// The tokenizer of an architecture with one vocabulary. A new one is learnt from data.train_files; with
/// data.text_unit = "answer" from the prompts and answers in them, of which a copy is in `scratch_folder` meanwhile.
std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config, const std::filesystem::path& scratch_folder);
/// Returns the tokenizer of data.tokenizer or of train.initialize_from, or null where one is to be learnt.
std::shared_ptr<const Tokenizer> given_tokenizer(const RunConfig& config);

/// Returns a note for the user, or "". There is one where a subword tokenizer that was learnt from the training text
/// has fewer tokens than data.vocab_size, because the text yields no more; and where the tokenizer is that of
/// train.initialize_from, but the configuration says how to learn one. `source` and `target` are the sizes of the
/// vocabularies, the same number where there is one.
std::string vocabulary_note(const RunConfig& config, int64_t source, int64_t target);

/// The name of the temporary folder of a LearningText, with digits added.
inline constexpr const char* kLearningText = "learning-text";

/// A file of texts that a tokenizer is learnt from, in a temporary folder that goes away with it. Tokenizers learn from
/// files, and files of labelled texts have labels too, those of prompts and answers the signs of JSON.
class LearningText {
 public:
  explicit LearningText(const std::filesystem::path& scratch_folder);

  void add(const std::string& text);
  /// Ends the file: nothing may follow.
  std::shared_ptr<const Tokenizer> learn(const RunConfig& config);

 private:
  AtomicFolder folder_;  // never committed
  std::filesystem::path path_;
  AtomicFile file_;
  std::string pending_;  // not yet written
};

}  // namespace attune

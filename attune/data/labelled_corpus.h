#pragma once
// Texts with labels, for classification, or with numbers, for regression.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attune/data/labelled_format.h"
#include "attune/text/text_file.h"
#include "attune/text/tokenizer.h"

namespace attune {

struct LabelledReadOptions {
  LabelledFormat format = LabelledFormat::automatic;
  std::string label_field = "label";  // csv and jsonl
  std::string text_field = "text";
  std::string second_text_field = {};  // of pairs of texts; "": texts are single. csv and jsonl
  bool needs_label = true;             // false: a text may lack its label, as described at read_labelled()
  bool numbers = false;                // labels are finite numbers; in jsonl they may be strings or have a fraction
  TextLimits limits = {};              // a csv record that goes over several lines is limited as one line
  ReadProgress on_read = {};
};

struct LabelledText {
  std::string label, text;                       // the text may be empty
  std::string second = {};                       // of a pair of texts
  int64_t line = 0;                              // the line of its file where it ends, from 1
  std::shared_ptr<const std::string> file = {};  // its name, which the texts of a file share; null: of no file
};

/// Returns all texts of a file, or of several one after another. Throws DataError that names file and line and says
/// what is missing ("reviews.csv:1: has no column "label", found id, text"); FileError when a file cannot be read.
///
/// Without needs_label, the csv column, the JSON field or the text before the tab may be missing or empty; the label is
/// then empty. A tsv line without a tab is all text, and an empty tsv line is an empty text.
std::vector<LabelledText> read_labelled(const std::filesystem::path& file, const LabelledReadOptions& options = {});
std::vector<LabelledText> read_labelled(const std::vector<std::filesystem::path>& files,
                                        const LabelledReadOptions& options = {});
/// The same, but calls a function with each text in turn.
void read_labelled(const std::vector<std::filesystem::path>& files, const LabelledReadOptions& options,
                   const std::function<void(LabelledText&&)>& take);

/// Returns the different labels in the order of their bytes. Throws DataError when there are fewer than two or one is
/// empty.
std::vector<std::string> labels_of(std::span<const LabelledText> texts);

/// One text as it enters a classifier: bos, whose output represents the text as that of [CLS] does in Devlin et al.
/// 2019, then the text, then eos; or as the tokenizer frames a text or a pair of texts.
struct LabelledExample {
  std::vector<int32_t> tokens;
  int32_t label;        // index into the labels; 0 where the text has a number; -1: the text has none
  int32_t second = -1;  // the place in `tokens` from which on type ids are 1, see Encoding; -1: all are 0
  float value = 0;      // the number of the text, for regression
  int64_t line = 0;     // LabelledText's
};

struct LabelledCorpusOptions {
  int64_t max_tokens = 512;             // bos and eos included; of longer texts the beginning is kept
  bool needs_label = true;              // false: a text with an empty label gets -1
  bool tokenizer_frames_texts = false;  // texts have the tokenizer's special tokens in place of bos and eos
  bool pairs = false;                   // texts are pairs; only tokenizers that frame texts have a form for them
  bool numbers = false;                 // the texts' labels are numbers, and `labels` has the one name of all of them
  std::string advice = {};              // ends the message of a label that is not one of `labels`
  void validate() const;                // throws ConfigError
};

struct LabelledCorpus {
  std::vector<LabelledExample> examples;
  int64_t cut = 0, skipped_empty = 0;  // texts that were cut; texts without tokens, left out
};

/// Encodes in parallel; the order is kept. Throws DataError when a label is not one of `labels` or no finite number,
/// `labels` has one twice or no text is left; ConfigError on bad options, and for a tokenizer that gives a text other
/// type ids than 0 ... 0 1 ... 1.
LabelledCorpus encode_labelled(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                               const Tokenizer& tokenizer, const LabelledCorpusOptions& options = {});
/// The same for a part of the texts. Does not throw when no text is left.
LabelledCorpus encode_more_labelled(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                                    const Tokenizer& tokenizer, const LabelledCorpusOptions& options);

/// Texts one after another, without padding. Text i has the tokens [offsets[i], offsets[i + 1]).
struct LabelledBatch {
  std::vector<int32_t> tokens;     // [tokens]
  std::vector<int32_t> offsets;    // [texts + 1], from 0 to tokens
  std::vector<int32_t> labels;     // [texts]
  std::vector<int32_t> types;      // [tokens], 1 for second texts; empty: all 0
  std::vector<float> values = {};  // [texts], their numbers, for regression

  int64_t texts() const { return static_cast<int64_t>(labels.size()); }
};

/// Packs the chosen examples in the order of `indices`. Throws DataError on an index outside of `examples` or more
/// tokens than 32 bits can count.
LabelledBatch pack(std::span<const LabelledExample> examples, std::span<const int32_t> indices);

/// The lengths of a corpus as BatchSampler takes them: (tokens, 0).
std::vector<std::pair<int32_t, int32_t>> lengths_of(std::span<const LabelledExample> examples);

}  // namespace attune

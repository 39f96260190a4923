#include "attune/data/labelled_corpus.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"

namespace attune {
namespace {

constexpr int64_t kTextsPerTask = 64;
constexpr size_t kLabelsShown = 8;

/// Index of each text's label, -1 for none.
std::vector<int32_t> label_indices(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                                   bool needs_label, size_t before) {
  std::unordered_map<std::string_view, int32_t> known;
  for (const std::string& label : labels)
    if (!known.emplace(label, static_cast<int32_t>(known.size())).second)
      fail<DataError>("the label \"{}\" is there twice", label.substr(0, 100));
  std::vector<int32_t> indices;
  indices.reserve(texts.size());
  for (const LabelledText& text : texts) {
    const auto found = known.find(text.label);
    const bool none = text.label.empty() && !needs_label;
    if (found == known.end() && !none) {
      const std::span shown = std::span(labels).first(std::min(labels.size(), kLabelsShown));
      fail<DataError>("text {} has the label \"{}\", expected one of {}{}", before + indices.size() + 1,
                      text.label.substr(0, 100), fmt::join(shown, ", "), shown.size() < labels.size() ? ", ..." : "");
    }
    indices.push_back(none ? -1 : found->second);
  }
  return indices;
}

/// bos, the ids, eos in at most max_tokens; whether ids had to be left out.
bool frame(std::vector<int32_t>& ids, const Tokenizer& tokenizer, int64_t max_tokens) {
  const auto room = static_cast<size_t>(max_tokens - 2);
  const bool cut = ids.size() > room;
  if (cut) ids.resize(room);
  ids.insert(ids.begin(), tokenizer.bos_id());
  ids.push_back(tokenizer.eos_id());
  return cut;
}

}  // namespace

std::vector<std::string> labels_of(std::span<const LabelledText> texts) {
  std::vector<std::string_view> all;
  all.reserve(texts.size());
  for (const LabelledText& text : texts) {
    if (text.label.empty()) fail<DataError>("text {} has no label", all.size() + 1);
    all.push_back(text.label);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() < 2)
    fail<DataError>("there are {} different labels in {} texts, expected 2 or more", all.size(), texts.size());
  return {all.begin(), all.end()};
}

void LabelledCorpusOptions::validate() const {
  if (max_tokens < 3 || max_tokens > std::numeric_limits<int32_t>::max())
    fail<ConfigError>("max_tokens = {} is not between 3 (bos, a token, eos) and 2147483647", max_tokens);
}

LabelledCorpus encode_labelled(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                               const Tokenizer& tokenizer, const LabelledCorpusOptions& options) {
  LabelledCorpus corpus = encode_more_labelled(texts, labels, tokenizer, options, 0);
  if (texts.empty()) fail<DataError>("there is no text");
  if (corpus.examples.empty()) fail<DataError>("no text is left ({} without tokens)", corpus.skipped_empty);
  return corpus;
}

LabelledCorpus encode_more_labelled(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                                    const Tokenizer& tokenizer, const LabelledCorpusOptions& options, int64_t before) {
  options.validate();
  const std::vector<int32_t> indices = label_indices(texts, labels, options.needs_label, static_cast<size_t>(before));
  std::vector<std::vector<int32_t>> encoded(texts.size());
  parallel_for(static_cast<int64_t>(texts.size()), kTextsPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      encoded[i] = tokenizer.encode(texts[i].text);
  });
  LabelledCorpus corpus;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (encoded[i].empty()) {
      ++corpus.skipped_empty;
      continue;
    }
    if (frame(encoded[i], tokenizer, options.max_tokens)) ++corpus.cut;
    corpus.examples.push_back({std::move(encoded[i]), indices[i]});
  }
  return corpus;
}

LabelledBatch pack(std::span<const LabelledExample> examples, std::span<const int32_t> indices) {
  int64_t tokens = 0;
  for (const int32_t index : indices) {
    if (index < 0 || static_cast<size_t>(index) >= examples.size())
      fail<DataError>("example {} is outside of the {} examples", index, examples.size());
    tokens += static_cast<int64_t>(examples[static_cast<size_t>(index)].tokens.size());
  }
  if (tokens > std::numeric_limits<int32_t>::max()) fail<DataError>("a batch of {} tokens is too large", tokens);

  LabelledBatch batch;
  batch.tokens.reserve(static_cast<size_t>(tokens));
  batch.offsets.assign(1, 0);
  for (const int32_t index : indices) {
    const LabelledExample& example = examples[static_cast<size_t>(index)];
    batch.tokens.insert(batch.tokens.end(), example.tokens.begin(), example.tokens.end());
    batch.offsets.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.labels.push_back(example.label);
  }
  return batch;
}

std::vector<std::pair<int32_t, int32_t>> lengths_of(std::span<const LabelledExample> examples) {
  std::vector<std::pair<int32_t, int32_t>> lengths;
  lengths.reserve(examples.size());
  for (const LabelledExample& example : examples) lengths.emplace_back(static_cast<int32_t>(example.tokens.size()), 0);
  return lengths;
}

}  // namespace attune

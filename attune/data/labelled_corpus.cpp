#include "attune/data/labelled_corpus.h"

#include <fmt/format.h>
#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/base/parsed_number.h"
#include "attune/text/encoder_text.h"

namespace attune {
namespace {

constexpr int64_t kTextsPerTask = 64;
constexpr size_t kLabelsShown = 8;

/// Where a text is, for messages.
std::string place_of(const LabelledText& text, size_t index) {
  return text.file ? fmt::format("{}:{}", *text.file, text.line) : fmt::format("text {}", index + 1);
}

/// Index of each text's label, -1 for none.
std::vector<int32_t> label_indices(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                                   const LabelledCorpusOptions& options) {
  std::unordered_map<std::string_view, int32_t> known;
  for (const std::string& label : labels)
    if (!known.emplace(label, static_cast<int32_t>(known.size())).second)
      fail<DataError>("the label \"{}\" is there twice", cut_text(label, 100));
  std::vector<int32_t> indices;
  indices.reserve(texts.size());
  for (const LabelledText& text : texts) {
    const auto found = known.find(text.label);
    const bool none = text.label.empty() && !options.needs_label;
    if (found == known.end() && !none) {
      const std::span shown = std::span(labels).first(std::min(labels.size(), kLabelsShown));
      fail<DataError>("{}: the label is \"{}\", expected one of {}{}{}", place_of(text, indices.size()),
                      cut_text(text.label, 100), fmt::join(shown, ", "), shown.size() < labels.size() ? ", ..." : "",
                      options.advice);
    }
    indices.push_back(none ? -1 : found->second);
  }
  return indices;
}

/// Each text's number; 0 for none.
std::vector<float> numbers_of(std::span<const LabelledText> texts, bool needs_label) {
  std::vector<float> numbers;
  numbers.reserve(texts.size());
  for (const LabelledText& text : texts) {
    const std::optional<float> number = parsed_real(text.label);
    const bool none = text.label.empty() && !needs_label;
    if (!number && !none)
      fail<DataError>("{}: the label is \"{}\", expected a number", place_of(text, numbers.size()),
                      cut_text(text.label, 100));
    numbers.push_back(number.value_or(0));
  }
  return numbers;
}

/// What is to be learnt of each text: LabelledExample's label and value.
struct Targets {
  std::vector<int32_t> labels;
  std::vector<float> values;
};

Targets targets_of(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                   const LabelledCorpusOptions& options) {
  if (!options.numbers) return {label_indices(texts, labels, options), std::vector<float>(texts.size())};
  Targets targets{{}, numbers_of(texts, options.needs_label)};
  for (const LabelledText& text : texts) targets.labels.push_back(text.label.empty() ? -1 : 0);
  return targets;
}

Encoding encode_framed(const LabelledText& text, const Tokenizer& tokenizer, const LabelledCorpusOptions& options) {
  if (options.pairs)
    return tokenizer.encode_pair(text.text, text.second, {.truncation = Truncation{.max_length = options.max_tokens}});
  return encode_for_encoder(tokenizer, options.tokenizer_frames_texts, text.text, options.max_tokens);
}

/// Where the type ids become 1, or -1. Throws ConfigError for other type ids: an example cannot hold them, but the
/// trained model would get them from the tokenizer, so that training and use would differ.
int32_t place_of_second(const Encoding& encoding) {
  const auto begin = encoding.type_ids.begin(), end = encoding.type_ids.end();
  const auto second = std::find_if(begin, end, [](int32_t type) { return type != 0; });
  const auto other = std::find_if(second, end, [](int32_t type) { return type != 1; });
  if (other != end)
    fail<ConfigError>("the tokenizer gives token {} of a text the type id {}; training needs zeros, and then ones",
                      other - begin, *other);
  return second == end ? -1 : static_cast<int32_t>(second - begin);
}

}  // namespace

std::vector<std::string> labels_of(std::span<const LabelledText> texts) {
  std::vector<std::string_view> all;
  all.reserve(texts.size());
  for (const LabelledText& text : texts) {
    if (text.label.empty()) fail<DataError>("{}: has no label", place_of(text, all.size()));
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
  LabelledCorpus corpus = encode_more_labelled(texts, labels, tokenizer, options);
  if (texts.empty()) fail<DataError>("there is no text");
  if (corpus.examples.empty()) fail<DataError>("no text is left ({} without tokens)", corpus.skipped_empty);
  return corpus;
}

LabelledCorpus encode_more_labelled(std::span<const LabelledText> texts, const std::vector<std::string>& labels,
                                    const Tokenizer& tokenizer, const LabelledCorpusOptions& options) {
  options.validate();
  const Targets targets = targets_of(texts, labels, options);
  const size_t without_tokens = encode_framed({}, tokenizer, options).ids.size();
  std::vector<Encoding> encoded(texts.size());
  parallel_for(static_cast<int64_t>(texts.size()), kTextsPerTask, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      encoded[i] = encode_framed(texts[i], tokenizer, options);
  });
  LabelledCorpus corpus;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (encoded[i].ids.size() == without_tokens) {
      ++corpus.skipped_empty;
      continue;
    }
    if (encoded[i].cut > 0) ++corpus.cut;
    const int32_t second = place_of_second(encoded[i]);
    corpus.examples.push_back({std::move(encoded[i].ids), targets.labels[i], second, targets.values[i], texts[i].line});
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
    if (example.second >= 0) {
      batch.types.resize(batch.tokens.size() + static_cast<size_t>(example.second), 0);
      batch.types.resize(batch.tokens.size() + example.tokens.size(), 1);
    }
    batch.tokens.insert(batch.tokens.end(), example.tokens.begin(), example.tokens.end());
    batch.offsets.push_back(static_cast<int32_t>(batch.tokens.size()));
    batch.labels.push_back(example.label);
    batch.values.push_back(example.value);
  }
  if (!batch.types.empty()) batch.types.resize(batch.tokens.size(), 0);
  return batch;
}

std::vector<std::pair<int32_t, int32_t>> lengths_of(std::span<const LabelledExample> examples) {
  std::vector<std::pair<int32_t, int32_t>> lengths;
  lengths.reserve(examples.size());
  for (const LabelledExample& example : examples) lengths.emplace_back(static_cast<int32_t>(example.tokens.size()), 0);
  return lengths;
}

}  // namespace attune

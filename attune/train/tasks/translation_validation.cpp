#include "attune/train/tasks/translation_validation.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include "attune/base/fail.h"
#include "attune/base/interrupt.h"
#include "attune/data/held_out.h"
#include "attune/inference/translator.h"
#include "attune/metrics/bleu.h"
#include "attune/text/text_file.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune {
namespace {

constexpr int64_t kMostTokens = 1024;
constexpr size_t kSamples = 3;

// The most tokens of a side of a pair: without the special tokens, and with them.
struct SideLimits {
  int64_t tokens, sequence;
};

// Throws DataError when a line has more tokens, of which `special` are special ones.
void check_length(const std::vector<int32_t>& ids, size_t special, const LineReader& reader, const SideLimits& limits) {
  const auto of_special = static_cast<int64_t>(special);
  const int64_t most = std::min(limits.tokens, limits.sequence - of_special);
  if (std::ssize(ids) > most + of_special)
    fail<DataError>("{}:{}: has {} tokens, at most {} are accepted for validation", reader.name(), reader.line_number(),
                    ids.size() - special, most);
}

// Two lines that are translations of each other, and the readers that have just read them.
struct LinePair {
  const LineReader &sources, &targets;
  const std::string &source, &target;
};

// Calls a function with each pair of lines. Throws DataError when one file of two ends before the other.
void for_each_pair(const std::vector<std::string>& source_files, const std::vector<std::string>& target_files,
                   const std::function<void(const LinePair&)>& take) {
  for (size_t i = 0; i < source_files.size(); ++i) {
    LineReader sources(source_files[i]), targets(target_files[i]);
    std::string source, target;
    for (;;) {
      const bool more = sources.next(source);
      if (targets.next(target) != more)
        fail<DataError>("{} ends after {} lines, but {} goes on", more ? target_files[i] : source_files[i],
                        more ? targets.line_number() : sources.line_number(), more ? source_files[i] : target_files[i]);
      if (!more) break;
      take({sources, targets, source, target});
    }
  }
}

// Returns the texts of all ranks on rank 0, `mine` on the others. Text i of rank r is number i * ranks + r of them.
std::vector<std::string> gather_texts(Communicator& ranks, const std::vector<std::string>& mine) {
  std::string bytes;
  for (const std::string& text : mine) {
    const uint64_t size = text.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size)).append(text);
  }
  const std::vector<std::vector<std::byte>> received = ranks.gather(std::as_bytes(std::span(bytes)), 0);
  if (ranks.rank() != 0) return mine;
  std::vector<std::string> all;
  std::vector<size_t> at(received.size());
  for (size_t r = 0; at[r] < received[r].size(); r = (r + 1) % received.size()) {
    uint64_t size = 0;
    std::memcpy(&size, received[r].data() + at[r], sizeof(size));
    at[r] += sizeof(size);
    all.emplace_back(reinterpret_cast<const char*>(received[r].data()) + at[r], size);
    at[r] += size;
  }
  return all;
}

}  // namespace

PairFrame pair_frame(const GenerationConfig& generation) {
  if (!generation.special_tokens) return {};
  return {.by_tokenizer = true,
          .start = static_cast<int32_t>(generation.start_token),
          .first = static_cast<int32_t>(generation.forced_first_token),
          .end = generation.eos_tokens.empty() ? -1 : static_cast<int32_t>(generation.eos_tokens.front())};
}

TranslationValidation::TranslationValidation(const RunConfig& config, const TokenizerPair& tokenizers)
    : tokenizers_(tokenizers),
      generation_(config.generation),
      evaluate_options_{.batch_tokens = config.train.batch_tokens, .label_smoothing = config.train.label_smoothing},
      most_tokens_(std::max(kMostTokens, config.data.max_tokens_per_sentence)),
      longest_sequence_(config.model.longest_sequence()),
      most_sentences_(config.train.valid_sentences > 0 ? static_cast<size_t>(config.train.valid_sentences)
                                                       : std::numeric_limits<size_t>::max()) {
  generation_.resize_beam(config.train.valid_beam_size);
  if (config.data.valid_source.empty()) {
    read_held_out(config.data);
  } else {
    read_files(config.data);
  }
}

ParallelExample TranslationValidation::encode(const std::string& source, const std::string& target) const {
  const PairFrame frame = pair_frame(generation_);
  return {frame.source(*tokenizers_.source, source), frame.target(*tokenizers_.target, target)};
}

void TranslationValidation::add(ParallelExample example, const std::string& source, const std::string& target) {
  examples_.push_back(std::move(example));
  sources_.push_back(source);
  references_.push_back(joined_text(*tokenizers_.target, target));
}

void TranslationValidation::read_files(const DataConfig& data) {
  const ParallelExample empty = encode("", "");
  const SideLimits limits{most_tokens_, longest_sequence_};
  for_each_pair(data.valid_source, data.valid_target, [&](const LinePair& pair) {
    if (sources_.size() >= most_sentences_) return;
    ParallelExample example = encode(pair.source, pair.target);
    check_length(example.source, empty.source.size(), pair.sources, limits);
    check_length(example.target, empty.target.size(), pair.targets, limits);
    add(std::move(example), pair.source, pair.target);
  });
  if (sources_.empty()) fail<DataError>("{}: has no line to validate on", data.valid_source.at(0));
}

void TranslationValidation::read_held_out(const DataConfig& data) {
  const ParallelExample empty = encode("", "");
  const auto longest = static_cast<size_t>(data.max_tokens_per_sentence);
  const auto is_usable = [&](const std::vector<int32_t>& ids, const std::vector<int32_t>& nothing) {
    return ids.size() > nothing.size() && ids.size() <= longest;
  };
  int64_t lines = 0, held_out = 0;
  for_each_pair(data.train_source, data.train_target, [&](const LinePair& pair) {
    if (!is_held_out(lines++, data.valid_fraction) || sources_.size() >= most_sentences_) return;
    ++held_out;
    ParallelExample example = encode(pair.source, pair.target);
    if (!is_usable(example.source, empty.source) || !is_usable(example.target, empty.target)) return;
    add(std::move(example), pair.source, pair.target);
  });
  if (!sources_.empty()) return;
  if (held_out == 0)
    fail<DataError>("data.valid_fraction = {}: {} pairs are too few: none of them would be held out",
                    data.valid_fraction, lines);
  fail<DataError>(
      "data.valid_fraction = {}: {} of {} pairs are held out, and each of them is empty or longer than "
      "data.max_tokens_per_sentence = {}",
      data.valid_fraction, held_out, lines, longest);
}

// Each of n ranks translates every n-th sentence. Returns all translations on rank 0, this rank's own on the others. A
// sentence's translation does not depend on those beside it.
std::vector<std::string> TranslationValidation::translate(const std::shared_ptr<Transformer>& model,
                                                          const ValidationWork& work) const {
  const size_t rank = work.ranks != nullptr ? static_cast<size_t>(work.ranks->rank()) : 0;
  const size_t ranks = work.ranks != nullptr ? static_cast<size_t>(work.ranks->size()) : 1;
  std::vector<std::string> sources, outputs;
  for (size_t i = rank; i < sources_.size(); i += ranks) sources.push_back(sources_[i]);
  bool interrupted = false;
  try {
    const Translator translator(model, tokenizers_.source, tokenizers_.target, generation_);
    for (const Translation& t :
         translator.translate(sources, {.max_source_tokens = most_tokens_, .interrupt = work.interrupt}))
      outputs.push_back(t.text());
  } catch (const Interrupted&) {
    interrupted = true;
  }
  if (work.ranks != nullptr)
    interrupted = std::ranges::count(work.ranks->all_gather_values(interrupted ? 1 : 0), 1) > 0;
  if (interrupted) throw Interrupted();
  return work.ranks != nullptr && ranks > 1 ? gather_texts(*work.ranks, outputs) : outputs;
}

ValidationReport TranslationValidation::measure(const std::shared_ptr<Transformer>& model,
                                                const ValidationWork& work) const {
  EvaluateOptions evaluation = evaluate_options_;
  evaluation.interrupt = work.interrupt;
  evaluation.ranks = work.ranks;
  const int32_t start = pair_frame(generation_).decoder_start(*tokenizers_.target);
  ValidationReport report{.loss = evaluate(*model, examples_, start, evaluation), .examples = sentences()};
  const std::vector<std::string> outputs = translate(model, work);
  if (outputs.size() < sources_.size()) return report;  // rank 0 has the others
  report.bleu = corpus_bleu(outputs, references_, bleu_tokenizer_for(*tokenizers_.target)).score;
  for (size_t i = 0; i < std::min(kSamples, outputs.size()); ++i)
    report.samples.push_back({sources_[i], references_[i], outputs[i]});
  return report;
}

}  // namespace attune

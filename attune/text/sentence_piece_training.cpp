// train_sentence_piece: samples the text, keeps SentencePiece's trainer from what makes it exit the program, and turns
// its errors into ours.

#include <fmt/format.h>
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <unordered_map>

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/text_file.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

constexpr size_t kMaxSentenceBytes = 4096;

using TrainerArguments = std::unordered_map<std::string, std::string>;

/// Hands sentences to the trainer.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& sentences) : sentences_(sentences) {}
  bool done() const override { return next_ == sentences_.size(); }
  void Next() override { ++next_; }
  const std::string& value() const override { return sentences_[next_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& sentences_;
  size_t next_ = 0;
};

/// A uniform sample of bounded size, a pure function of the sentences and the seed (Vitter 1985, algorithm R).
class Sample {
 public:
  explicit Sample(const SentencePieceOptions& options)
      : size_(static_cast<uint64_t>(options.max_sentences)),
        max_bytes_(static_cast<size_t>(options.max_bytes)),
        random_(options.seed) {}

  /// Adds one sentence; a long one in parts that end at a space where there is one, else between two characters.
  void add(std::string_view sentence) {
    while (sentence.size() > kMaxSentenceBytes) {
      size_t cut = sentence.rfind(' ', kMaxSentenceBytes);
      if (cut == std::string_view::npos || cut == 0) {
        cut = kMaxSentenceBytes;
        while (cut > kMaxSentenceBytes - 4 && continues_character(sentence[cut])) --cut;
      }
      add_part(sentence.substr(0, cut));
      sentence.remove_prefix(cut);
    }
    if (!sentence.empty()) add_part(sentence);
  }

  const std::vector<std::string>& sentences() const { return sentences_; }

 private:
  void add_part(std::string_view part) {
    ++seen_;
    if (sentences_.size() < size_) {
      bytes_ += part.size();
      sentences_.emplace_back(part);
    } else if (const uint64_t place = random_.below(seen_); place < size_) {
      bytes_ += part.size() - sentences_[place].size();
      sentences_[place] = part;
    }
    if (bytes_ > max_bytes_) thin();
  }

  /// Keeps half of the sample, which is uniform too, and goes on with that size.
  void thin() {
    random_.shuffle(sentences_);
    sentences_.resize(sentences_.size() / 2);
    size_ = sentences_.size();
    bytes_ = 0;
    for (const std::string& sentence : sentences_) bytes_ += sentence.size();
  }

  uint64_t size_;
  size_t max_bytes_;
  Random random_;
  uint64_t seen_ = 0;
  size_t bytes_ = 0;
  std::vector<std::string> sentences_;
};

std::string normalization_name(SentencePieceOptions::Normalization normalization) {
  switch (normalization) {
    case SentencePieceOptions::Normalization::nmt_nfkc:
      return "nmt_nfkc";
    case SentencePieceOptions::Normalization::nmt_nfkc_cf:
      return "nmt_nfkc_cf";
    case SentencePieceOptions::Normalization::nfkc:
      return "nfkc";
    case SentencePieceOptions::Normalization::identity:
      break;
  }
  return "identity";
}

TrainerArguments common_arguments(SentencePieceOptions::Normalization normalization) {
  return {{"minloglevel", "3"},  // silent
          {"normalization_rule_name", normalization_name(normalization)},
          {"pad_id", "0"},
          {"unk_id", "1"},
          {"bos_id", "2"},
          {"eos_id", "3"},
          {"max_sentence_length", std::to_string(kMaxSentenceBytes)},
          {"shuffle_input_sentence", "false"}};
}

/// Whether normalization leaves something of at least one sentence: otherwise the trainer exits the program. A model of
/// the single letter "a" with the same normalization tells. Sentences with U+2585, the trainer's mark for <unk>, or
/// with a NUL do not count.
bool has_text_to_learn(const std::vector<std::string>& sentences, SentencePieceOptions::Normalization normalization) {
  TrainerArguments arguments = common_arguments(normalization);
  arguments.insert({{"model_type", "char"}, {"vocab_size", "6"}});
  const std::vector<std::string> letter{"a"};
  Sentences iterator(letter);
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
  if (!status.ok()) fail<DataError>("SentencePiece cannot train a tokenizer: {}", status.message());
  const SentencePieceTokenizer probe(std::move(model), "the probe for empty text");
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find("\u2585") == std::string::npos && sentence.find('\0') == std::string::npos &&
           !probe.encode(sentence).empty();
  });
}

/// The number that follows `words` in the trainer's message.
std::optional<int64_t> number_after(std::string_view message, std::string_view words) {
  const size_t found = message.find(words);
  if (found == std::string_view::npos) return std::nullopt;
  int64_t number = 0;
  size_t digits = 0;
  for (const char c : message.substr(found + words.size())) {
    if (c < '0' || c > '9' || ++digits > 9) break;
    number = number * 10 + (c - '0');
  }
  return digits > 0 ? std::optional(number) : std::nullopt;
}

[[noreturn]] void fail_training(std::string_view message, const SentencePieceOptions& options) {
  const std::string versus = fmt::format("Vocabulary size is smaller than required_chars. {} vs ", options.vocab_size);
  if (const auto least = number_after(message, versus))
    fail<ConfigError>(
        "vocab_size = {} is less than the characters of this text need: at least {}, or a lower "
        "character_coverage",
        options.vocab_size, *least);
  fail<DataError>("SentencePiece cannot train a tokenizer: {}", message);
}

std::unique_ptr<SentencePieceTokenizer> train(const Sample& sample, const SentencePieceOptions& options) {
  if (!has_text_to_learn(sample.sentences(), options.normalization))
    fail<DataError>("there is no text to train a tokenizer on");
  TrainerArguments arguments = common_arguments(options.normalization);
  arguments["model_type"] = options.kind == SentencePieceOptions::Kind::bpe ? "bpe" : "unigram";
  arguments["vocab_size"] = std::to_string(options.vocab_size);
  arguments["hard_vocab_limit"] = "false";  // a text that yields fewer tokens is no error
  arguments["character_coverage"] = fmt::format("{}", options.character_coverage);
  arguments["byte_fallback"] = options.byte_fallback ? "true" : "false";
  arguments["num_threads"] = std::to_string(options.threads);
  Sentences iterator(sample.sentences());
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &iterator, &model);
  if (!status.ok()) fail_training(status.message(), options);
  return std::make_unique<SentencePieceTokenizer>(std::move(model), "the trained model");
}

}  // namespace

void SentencePieceOptions::validate() const {
  const int32_t smallest = byte_fallback ? 4 + 256 + 1 : 4 + 1;
  if (vocab_size < smallest || vocab_size > 1'000'000)
    fail<ConfigError>("vocab_size = {} is not between {} and 1000000", vocab_size, smallest);
  if (!(character_coverage >= 0.98 && character_coverage <= 1.0))
    fail<ConfigError>("character_coverage = {} is not between 0.98 and 1", character_coverage);
  if (threads < 1 || threads > 128) fail<ConfigError>("threads = {} is not between 1 and 128", threads);
  if (max_sentences < 1) fail<ConfigError>("max_sentences = {} is below 1", max_sentences);
  // The trainer exits when there are more than 2^31 characters, and one of three bytes (U+FDFA) can become 18.
  check_range<int64_t>("max_bytes", max_bytes, kMaxSentenceBytes, kMostBytes);
}

std::unique_ptr<SentencePieceTokenizer> train_sentence_piece(const std::vector<std::string>& sentences,
                                                             const SentencePieceOptions& options) {
  options.validate();
  Sample sample(options);
  for (size_t i = 0; i < sentences.size(); ++i) {
    if (!valid_utf8(sentences[i])) fail<DataError>("sentence {} to train a tokenizer on is not valid UTF-8", i + 1);
    sample.add(sentences[i]);
  }
  return train(sample, options);
}

std::unique_ptr<SentencePieceTokenizer> train_sentence_piece_from_files(const std::vector<std::filesystem::path>& files,
                                                                        const SentencePieceOptions& options) {
  options.validate();
  Sample sample(options);
  std::string line;
  for (const auto& file : files)
    for (LineReader reader(file); reader.next(line);) sample.add(line);
  return train(sample, options);
}

}  // namespace attune

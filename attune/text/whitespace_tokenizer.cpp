#include "attune/text/whitespace_tokenizer.h"

#include <algorithm>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/text_file.h"
#include "attune/text/vocabulary_json.h"

namespace attune {
namespace {

constexpr std::string_view kSeparators = " \t\r\n";
constexpr const char* kWhatToSet = "set max_size (data.vocab_size, --vocab-size)";

bool is_special(std::string_view word) {
  return std::find(kSpecialPieces.begin(), kSpecialPieces.end(), word) != kSpecialPieces.end();
}

/// Calls visit(word) for every word of the text.
template <class Visit>
void for_each_word(std::string_view text, Visit&& visit) {
  for (size_t begin = text.find_first_not_of(kSeparators); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSeparators, begin), text.size());
    visit(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kSeparators, end);
  }
}

/// Words with a space between each two, but none behind a subword's marker, which is left out.
class JoinedWords {
 public:
  explicit JoinedWords(std::string_view marker) : marker_(marker) {}

  void add(std::string_view word) {
    if (!glue_) text_ += ' ';
    glue_ = !marker_.empty() && word.ends_with(marker_);
    if (glue_) word.remove_suffix(marker_.size());
    text_ += word;
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string_view marker_;
  std::string text_;
  bool glue_ = true;  // nothing stands between what is there and the next word
};

}  // namespace

void WhitespaceOptions::validate() const {
  if (min_count < 1) fail<ConfigError>("min_count = {} is below 1", min_count);
  if (max_size != 0 && max_size <= static_cast<int64_t>(kSpecialPieces.size()))
    fail<ConfigError>("max_size = {} leaves no room beside the {} special tokens", max_size, kSpecialPieces.size());
}

WhitespaceTokenizer::WhitespaceTokenizer(const std::vector<std::string>& words, std::string subword_marker)
    : pieces_(kSpecialPieces.begin(), kSpecialPieces.end()), subword_marker_(std::move(subword_marker)) {
  if (words.size() > kMaxPieces - kSpecialPieces.size())
    fail<DataError>("a vocabulary of {} words is too large, at most {} are accepted; {}", words.size(),
                    kMaxPieces - kSpecialPieces.size(), kWhatToSet);
  if (!valid_utf8(subword_marker_)) fail<DataError>("the subword marker is not valid UTF-8");
  for (const std::string& word : words) {
    const size_t id = pieces_.size();
    if (!valid_utf8(word)) fail<DataError>("piece {} is not valid UTF-8", id);
    if (word.empty() || word.find_first_of(kSeparators) != std::string::npos)
      fail<DataError>("piece {} is empty or has white space in it", id);
    if (is_special(word) || !ids_.emplace(word, static_cast<int32_t>(id)).second)
      fail<DataError>("piece {} (\"{}\") is there a second time", id, cut_text(word, 100));
    pieces_.push_back(word);
  }
}

WhitespaceTokenizer WhitespaceTokenizer::build(const std::vector<std::filesystem::path>& files,
                                               const WhitespaceOptions& options) {
  options.validate();
  std::unordered_map<std::string, int64_t> counts;
  std::string line;
  for (const auto& file : files) {
    for (LineReader reader(file); reader.next(line);) {
      for_each_word(line, [&](std::string_view word) { ++counts[std::string(word)]; });
    }
  }
  std::vector<std::pair<int64_t, std::string>> ranked;  // (-count, word): ascending is the wanted order
  for (auto& [word, count] : counts)
    if (count >= options.min_count && !is_special(word)) ranked.emplace_back(-count, word);
  if (ranked.empty()) fail<DataError>("no word occurs {} times, so the vocabulary would be empty", options.min_count);
  std::sort(ranked.begin(), ranked.end());
  if (options.max_size > 0)
    ranked.resize(std::min(ranked.size(), static_cast<size_t>(options.max_size) - kSpecialPieces.size()));
  std::vector<std::string> words;
  words.reserve(ranked.size());
  for (auto& [count, word] : ranked) words.push_back(std::move(word));
  return WhitespaceTokenizer(words, options.subword_marker);
}

WhitespaceTokenizer WhitespaceTokenizer::from_json(std::string_view text, const std::string& name) {
  nlohmann::json vocabulary = parse_vocabulary(text, "whitespace", {"pieces", "subword_marker"}, name);
  std::string marker = vocabulary.contains("subword_marker") ? string_field(vocabulary, "subword_marker", name) : "";
  std::vector<std::string> words = take_strings(vocabulary, "pieces", "piece", name);
  for (size_t i = 0; i < std::min(words.size(), kSpecialPieces.size()); ++i)
    if (words[i] != kSpecialPieces[i])
      fail<FileError>("{}: piece {} is \"{}\", expected \"{}\"", name, i, cut_text(words[i], 100), kSpecialPieces[i]);
  if (words.size() < kSpecialPieces.size())
    fail<FileError>("{}: has {} pieces, expected 4 or more", name, words.size());
  words.erase(words.begin(), words.begin() + kSpecialPieces.size());
  try {
    return WhitespaceTokenizer(words, std::move(marker));
  } catch (const DataError& error) {
    fail<FileError>("{}: {}", name, error.what());
  }
}

std::vector<int32_t> WhitespaceTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  std::string key;
  for_each_word(text, [&](std::string_view word) {
    const auto found = ids_.find(key.assign(word));
    ids.push_back(found == ids_.end() ? special_.unk : found->second);
  });
  return ids;
}

std::string WhitespaceTokenizer::join(const std::vector<int>& ids) const {
  JoinedWords words(subword_marker_);
  for (const int id : ids) words.add(pieces_[static_cast<size_t>(id)]);
  return std::move(words).text();
}

std::string joined_text(const Tokenizer& tokenizer, const std::string& text) {
  const auto* const of_words = dynamic_cast<const WhitespaceTokenizer*>(&tokenizer);
  if (of_words == nullptr || of_words->subword_marker().empty()) return text;
  JoinedWords words(of_words->subword_marker());
  for_each_word(text, [&](std::string_view word) { words.add(word); });
  return std::move(words).text();
}

std::string WhitespaceTokenizer::piece(int32_t id) const {
  check_id(id);
  return pieces_[static_cast<size_t>(id)];
}

void WhitespaceTokenizer::save(const std::filesystem::path& file) const {
  nlohmann::ordered_json vocabulary;
  vocabulary["type"] = "whitespace";
  if (!subword_marker_.empty()) vocabulary["subword_marker"] = subword_marker_;
  vocabulary["pieces"] = pieces_;
  const std::string text = vocabulary.dump(1) + "\n";
  if (text.size() > kMaxTokenizerBytes)
    fail<DataError>("{}: a vocabulary of {} bytes is too large, at most {} are accepted; {}", file.string(),
                    text.size(), kMaxTokenizerBytes, kWhatToSet);
  write_file(file, text);
}

}  // namespace attune

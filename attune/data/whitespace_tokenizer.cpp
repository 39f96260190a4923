#include "attune/data/whitespace_tokenizer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "attune/data/text_file.h"

namespace attune {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kSpecials{"<pad>", "<unk>", "<s>", "</s>"};
constexpr size_t kMaxPieces = size_t{1} << 22;
constexpr std::string_view kSeparators = " \t";

bool is_special(std::string_view word) {
  return std::find(kSpecials.begin(), kSpecials.end(), word) != kSpecials.end();
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

/// Parses without building more than a vocabulary can need: hostile JSON is small as text and large in memory.
json parse_vocabulary(std::string_view text, const std::string& name) {
  size_t values = 0;
  const auto limit = [&](int depth, json::parse_event_t, json&) {
    if (depth > 2) fail<FileError>("{}: not a whitespace vocabulary: nested more than 2 levels deep", name);
    if (++values > kMaxPieces) fail<FileError>("{}: has more than {} pieces", name, kMaxPieces);
    return true;
  };
  try {
    return json::parse(text, limit);
  } catch (const json::parse_error& error) {
    fail<FileError>("{}: not valid JSON in UTF-8 (byte {})", name, error.byte);
  } catch (const json::exception&) {  // a number that is out of range
    fail<FileError>("{}: not valid JSON", name);
  }
}

const std::string& string_field(const json& object, const char* field, const std::string& name) {
  const auto found = object.find(field);
  if (found == object.end())
    fail<FileError>("{}: not a whitespace vocabulary: the field \"{}\" is missing", name, field);
  if (!found->is_string()) fail<FileError>("{}: the field \"{}\" is not a string", name, field);
  return found->get_ref<const std::string&>();
}

}  // namespace

void WhitespaceOptions::validate() const {
  if (min_count < 1) fail<ConfigError>("min_count = {} is below 1", min_count);
  if (max_size != 0 && max_size <= static_cast<int64_t>(kSpecials.size()))
    fail<ConfigError>("max_size = {} leaves no room beside the {} special tokens", max_size, kSpecials.size());
}

WhitespaceTokenizer::WhitespaceTokenizer(const std::vector<std::string>& words, std::string subword_marker)
    : pieces_(kSpecials.begin(), kSpecials.end()), subword_marker_(std::move(subword_marker)) {
  if (words.size() > kMaxPieces - kSpecials.size())
    fail<DataError>("a vocabulary of {} words is too large, at most {} are accepted", words.size(),
                    kMaxPieces - kSpecials.size());
  if (!valid_utf8(subword_marker_)) fail<DataError>("the subword marker is not valid UTF-8");
  for (const std::string& word : words) {
    const size_t id = pieces_.size();
    if (!valid_utf8(word)) fail<DataError>("piece {} is not valid UTF-8", id);
    if (word.empty() || word.find_first_of(" \t\r\n") != std::string::npos)
      fail<DataError>("piece {} is empty or has white space in it", id);
    if (is_special(word) || !ids_.emplace(word, static_cast<int32_t>(id)).second)
      fail<DataError>("piece {} (\"{}\") is there a second time", id, word.substr(0, 100));
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
    if (count >= options.min_count && !is_special(word) && word.find('\r') == std::string::npos)
      ranked.emplace_back(-count, word);
  if (ranked.empty()) fail<DataError>("no word occurs {} times, so the vocabulary would be empty", options.min_count);
  std::sort(ranked.begin(), ranked.end());
  if (options.max_size > 0)
    ranked.resize(std::min(ranked.size(), static_cast<size_t>(options.max_size) - kSpecials.size()));
  std::vector<std::string> words;
  words.reserve(ranked.size());
  for (auto& [count, word] : ranked) words.push_back(std::move(word));
  return WhitespaceTokenizer(words, options.subword_marker);
}

WhitespaceTokenizer WhitespaceTokenizer::from_json(std::string_view text, const std::string& name) {
  if (text.size() > kMaxTokenizerBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", name, text.size(), kMaxTokenizerBytes);
  json vocabulary = parse_vocabulary(text, name);
  if (!vocabulary.is_object()) fail<FileError>("{}: not a whitespace vocabulary: not an object", name);
  for (const auto& [field, value] : vocabulary.items())
    if (field != "type" && field != "pieces" && field != "subword_marker")
      fail<FileError>("{}: not a whitespace vocabulary: the field \"{}\" is unknown", name, field.substr(0, 100));
  if (const std::string& type = string_field(vocabulary, "type", name); type != "whitespace")
    fail<FileError>("{}: the field \"type\" is \"{}\", expected \"whitespace\"", name, type.substr(0, 100));
  std::string marker = vocabulary.contains("subword_marker") ? string_field(vocabulary, "subword_marker", name) : "";
  const auto pieces = vocabulary.find("pieces");
  if (pieces == vocabulary.end() || !pieces->is_array())
    fail<FileError>("{}: the field \"pieces\" is missing or not an array", name);
  std::vector<std::string> words;
  for (size_t i = 0; i < pieces->size(); ++i) {
    json& piece = (*pieces)[i];
    if (!piece.is_string()) fail<FileError>("{}: piece {} is not a string", name, i);
    auto& word = piece.get_ref<std::string&>();
    if (i >= kSpecials.size())
      words.push_back(std::move(word));
    else if (word != kSpecials[i])
      fail<FileError>("{}: piece {} is \"{}\", expected \"{}\"", name, i, word.substr(0, 100), kSpecials[i]);
  }
  if (pieces->size() < kSpecials.size()) fail<FileError>("{}: has {} pieces, expected 4 or more", name, pieces->size());
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
  std::string text;
  bool glue = true;  // nothing stands between what is there and the next piece
  for (const int id : ids) {
    std::string_view word = pieces_[static_cast<size_t>(id)];
    if (!glue) text += ' ';
    glue = !subword_marker_.empty() && word.ends_with(subword_marker_);
    if (glue) word.remove_suffix(subword_marker_.size());
    text += word;
  }
  return text;
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
  write_file(file, vocabulary.dump(1) + "\n");
}

}  // namespace attune

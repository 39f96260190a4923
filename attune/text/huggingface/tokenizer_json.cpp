#include "attune/text/huggingface/tokenizer_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <charconv>
#include <cmath>
#include <utility>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/git_lfs.h"
#include "attune/base/json.h"
#include "attune/text/tokenizer.h"
#include "attune/text/unicode.h"
#include "attune/text/vocabulary_json.h"

namespace attune::huggingface {
namespace {

using nlohmann::json;

constexpr size_t kMaxValues = size_t{1} << 20;  // beside vocabulary and merges
constexpr size_t kMaxDepth = 40;

// 0 for what is smaller than any number; the parser has refused what is larger.
double nearest_number(std::string_view text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// A number as Rust's serde_json reads it: it rounds the digits and then the quotient by a power of ten, so that a
/// result may be one unit in the last place off. Tokens of equal scores are told apart by that.
double number_of(std::string_view text) {
  const bool negative = text.starts_with('-');
  uint64_t digits = 0;
  int64_t exponent = 0;
  bool in_fraction = false, full = false;
  size_t at = negative ? 1 : 0;
  for (; at < text.size() && text[at] != 'e' && text[at] != 'E'; ++at) {
    if (text[at] == '.') {
      in_fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(text[at] - '0');
    full |= digits > (UINT64_MAX - digit) / 10;
    if (!full) digits = 10 * digits + digit;
    exponent += full ? (in_fraction ? 0 : 1) : (in_fraction ? -1 : 0);
  }
  int written = 0;
  if (at < text.size()) {
    const char* begin = text.data() + at + (text[at + 1] == '+' ? 2 : 1);
    if (std::from_chars(begin, text.data() + text.size(), written).ec != std::errc()) return nearest_number(text);
  }
  exponent += written;
  if (std::abs(exponent) > 308) return nearest_number(text);
  const double power = std::pow(10.0, static_cast<double>(std::abs(exponent))), value = static_cast<double>(digits);
  const double result = exponent >= 0 ? value * power : value / power;
  return negative ? -result : result;
}

/// Receives the events of nlohmann's parser. Values go into a tree, except those of vocabulary and merges.
class Builder : public nlohmann::json_sax<json> {
 public:
  Builder(TokenizerJson& result, const std::string& name) : result_(result), name_(name) {}

  /// The whole text is a vocabulary: {"token": id, ...}.
  void expect_vocabulary() { mode_ = Mode::vocabulary; }

  bool null() override { return value(nullptr); }
  bool boolean(bool b) override { return value(b); }
  bool number_integer(number_integer_t n) override { return number(n); }
  bool number_unsigned(number_unsigned_t n) override { return number(n); }
  bool number_float(number_float_t n, const string_t& text) override {
    return number(mode_ == Mode::vocabulary ? number_of(text) : n);
  }
  bool string(string_t& text) override {
    if (mode_ == Mode::values) return value(std::move(text));
    if (mode_ == Mode::merges) return merge(text);
    if (inner_ != 2 || !in_array_ || parts_ != 0) wrong_entry();
    count_entry();
    result_.vocabulary.tokens.push_back(text);
    ++parts_;
    return true;
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (mode_ == Mode::values) return open(json::object());
    if (mode_ == Mode::merges || inner_ != 0) wrong_entry();
    ++inner_;
    in_array_ = false;
    return true;
  }
  bool start_array(std::size_t) override {
    if (mode_ == Mode::values) return open(json::array());
    if (inner_ == 0) in_array_ = true;
    if (++inner_ > 2 || !in_array_) wrong_entry();
    parts_ = 0;
    return true;
  }
  bool end_object() override { return mode_ == Mode::values ? close() : leave(); }
  bool end_array() override {
    if (mode_ == Mode::values) return close();
    if (inner_ == 2 && parts_ != 2) wrong_entry();
    return leave();
  }

  bool key(string_t& text) override {
    if (mode_ != Mode::values) {
      count_entry();
      result_.vocabulary.tokens.push_back(text);
      return true;
    }
    const bool in_model = keys_.size() == 2 && keys_[0] == "model";
    keys_.back() = text;
    if (in_model && text == "vocab") mode_ = Mode::vocabulary;
    if (in_model && text == "merges") mode_ = Mode::merges;
    const bool again = mode_ == Mode::vocabulary ? std::exchange(has_vocabulary_, true)
                       : mode_ == Mode::merges   ? std::exchange(has_merges_, true)
                                                 : stack_.back()->contains(text);
    if (again)
      fail<FileError>("{}: {} is there twice", name_,
                      cut_text(show(Json(fmt::format("{}", fmt::join(keys_, ".")))), 200));
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    fail<FileError>("{}: not valid JSON in UTF-8 (byte {})", name_, position);
  }

 private:
  enum class Mode { values, vocabulary, merges };

  [[noreturn]] void wrong_entry() const {
    if (mode_ == Mode::merges)
      fail<FileError>("{}: model.merges, entry {}: not \"a b\" or [\"a\", \"b\"]", name_, merges_);
    fail<FileError>("{}: vocabulary, entry {}: not \"token\": id or [\"token\", score]", name_, entries_);
  }

  void count_entry() {
    if (++entries_ > kMaxPieces) fail<FileError>("{}: the vocabulary has more than {} tokens", name_, kMaxPieces);
  }

  bool leave() {
    if (--inner_ == 0) mode_ = Mode::values;
    return true;
  }

  bool merge(const std::string& text) {
    if (inner_ == 0) wrong_entry();
    if (merges_ == 0) result_.merges_are_pairs = inner_ == 2;
    if (result_.merges_are_pairs != (inner_ == 2) || (inner_ == 2 && ++parts_ > 2)) wrong_entry();
    if (++merges_ > 4 * kMaxPieces) fail<FileError>("{}: has more than {} merges", name_, 4 * kMaxPieces);
    result_.merges.push_back(text);
    return true;
  }

  template <class Number>
  bool number(Number n) {
    if (mode_ == Mode::values) return value(n);
    if (mode_ == Mode::merges || inner_ == 0) wrong_entry();
    if (in_array_) {
      if (inner_ != 2 || parts_ != 1) wrong_entry();
      ++parts_;
      result_.vocabulary.scores.push_back(static_cast<double>(n));
      return true;
    }
    if (!(n >= 0 && static_cast<double>(n) < static_cast<double>(2 * kMaxPieces)))
      fail<FileError>("{}: vocabulary, entry {}: the id is not a number from 0 to {}", name_, entries_,
                      2 * kMaxPieces - 1);
    result_.vocabulary.ids.push_back(static_cast<int32_t>(n));
    return true;
  }

  // A value, in the tree, where the last key or the last array wants it.
  json* add(json&& item) {
    if (++values_ > kMaxValues) fail<FileError>("{}: has more than {} values beside its vocabulary", name_, kMaxValues);
    if (stack_.empty()) return &(result_.values = std::move(item));
    json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(item));
      return &parent.back();
    }
    return &(parent[keys_.back()] = std::move(item));
  }

  template <class Value>
  bool value(Value&& item) {
    if constexpr (std::is_same_v<std::decay_t<Value>, std::nullptr_t>) {
      if (mode_ != Mode::values && inner_ == 0) {  // "merges": null
        mode_ = Mode::values;
        return true;
      }
    }
    if (mode_ != Mode::values) wrong_entry();
    add(json(std::forward<Value>(item)));
    return true;
  }

  bool open(json&& container) {
    if (stack_.size() >= kMaxDepth) fail<FileError>("{}: nested more than {} levels deep", name_, kMaxDepth);
    stack_.push_back(add(std::move(container)));
    keys_.emplace_back();
    return true;
  }

  bool close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  TokenizerJson& result_;
  const std::string& name_;
  std::vector<json*> stack_;       // open containers; a parent does not grow while its child is open
  std::vector<std::string> keys_;  // the last key of each
  Mode mode_ = Mode::values;
  int inner_ = 0, parts_ = 0;  // open containers within vocabulary or merges; parts of the entry that is being read
  bool in_array_ = false, has_vocabulary_ = false, has_merges_ = false;
  size_t entries_ = 0, merges_ = 0, values_ = 0;
};

void parse(std::string_view text, const std::string& name, Builder& builder) {
  if (text.size() > kMaxTokenizerBytes)
    fail<FileError>("{}: has {} bytes, at most {} are accepted here", name, text.size(), kMaxTokenizerBytes);
  check_is_fetched(text, name);
  refuse_nul<FileError>(text, name);
  try {
    json::sax_parse(text, &builder);
  } catch (const json::exception&) {  // a number that is out of range
    fail<FileError>("{}: not valid JSON", name);
  }
}

void check_complete(const VocabularyEntries& entries, const std::string& name) {
  if (entries.tokens.size() != entries.ids.size() + entries.scores.size())
    fail<FileError>("{}: the vocabulary has entries without id or score", name);
}

}  // namespace

bool is_tokenizer_json(std::string_view text) {
  const auto skip = [&](size_t at) { return std::min(text.find_first_not_of(" \t\r\n", at), text.size()); };
  const size_t brace = skip(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
  if (brace == text.size() || text[brace] != '{') return false;
  const std::string_view rest = text.substr(skip(brace + 1));
  for (const std::string_view key : {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                                     "post_processor", "decoder", "model"})
    if (rest.size() > key.size() + 2 && rest[0] == '"' && rest.substr(1, key.size()) == key &&
        rest[key.size() + 1] == '"')
      return true;
  return false;
}

TokenizerJson parse_tokenizer_json(std::string_view text, const std::string& name) {
  TokenizerJson result;
  Builder builder(result, name);
  parse(text, name, builder);
  if (!result.values.is_object()) fail<FileError>("{}: not a tokenizer: not an object", name);
  check_complete(result.vocabulary, name);
  return result;
}

VocabularyEntries parse_vocabulary_object(std::string_view text, const std::string& name) {
  TokenizerJson result;
  Builder builder(result, name);
  builder.expect_vocabulary();
  parse(text, name, builder);
  check_complete(result.vocabulary, name);
  if (!result.vocabulary.scores.empty()) fail<FileError>("{}: not a vocabulary: not an object", name);
  return std::move(result.vocabulary);
}

}  // namespace attune::huggingface

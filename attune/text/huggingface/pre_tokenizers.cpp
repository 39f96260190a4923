#include "attune/text/huggingface/pre_tokenizers.h"

#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/splitting.h"
#include "attune/text/huggingface/steps.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

/// Cuts at characters for which matches(c).
template <class Matches>
void split_at_characters(Words& words, Delimiters behavior, Matches&& matches) {
  std::vector<Words::Range> ranges;
  ranges.reserve(words.ranges.size() + words.text.size() / 4);
  Splitter splitter(ranges, behavior);
  for (const Words::Range& range : words.ranges) {
    splitter.begin(range);
    for (size_t at = range.begin; at < range.end;) {
      const size_t here = at;
      if (matches(next_character(words.text, at))) splitter.match(here, at);
    }
    splitter.finish(range.end);
  }
  take_ranges(words, std::move(ranges));
}

/// Cuts at characters with a property.
void split_at_property(Words& words, Delimiters behavior, uint16_t property) {
  split_at_characters(words, behavior,
                      [=, table = property_table()](char32_t c) { return (table[c] & property) != 0; });
}

class Sequence final : public Steps<PreTokenizer> {
 public:
  using Steps::Steps;
  void apply(Words& words) const override {
    const size_t before = words.text.size();
    for (const auto& step : steps_) {
      if (words.ranges.empty()) return;
      step->apply(words);
      check_growth("pre-tokenization", before, words.text.size());
    }
  }
  bool ends_with_bytes() const override { return !steps_.empty() && steps_.back()->ends_with_bytes(); }
  void leave_bytes() override { steps_.back()->leave_bytes(); }
};

class Bert final : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    std::vector<Words::Range> ranges;
    ranges.reserve(words.ranges.size() + words.text.size() / 4);
    const uint16_t* table = property_table();
    for (const Words::Range& range : words.ranges) {
      size_t begin = range.begin;
      for (size_t at = range.begin; at < range.end;) {
        const size_t here = at;
        const uint16_t found = table[next_character(words.text, at)];
        if (!(found & (properties::white_space | properties::punctuation))) continue;
        if (here > begin) ranges.push_back({begin, here});
        if (!(found & properties::white_space)) ranges.push_back({here, at});
        begin = at;
      }
      if (range.end > begin) ranges.push_back({begin, range.end});
    }
    take_ranges(words, std::move(ranges));
  }
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  void apply(Words& words) const override { split_at_property(words, Delimiters::removed, properties::white_space); }
};

/// \w+|[^\w\s]+
class Whitespace final : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    std::vector<Words::Range> ranges;
    const uint16_t* table = property_table();
    constexpr uint16_t kinds = properties::white_space | properties::word;
    for (const Words::Range& range : words.ranges) {
      size_t begin = range.begin;
      uint16_t kind = properties::white_space;
      for (size_t at = range.begin; at < range.end;) {
        const size_t here = at;
        const uint16_t found = table[next_character(words.text, at)] & kinds;
        if (found == kind) continue;
        if (kind != properties::white_space) ranges.push_back({begin, here});
        kind = found;
        begin = here;
      }
      if (kind != properties::white_space && range.end > begin) ranges.push_back({begin, range.end});
    }
    take_ranges(words, std::move(ranges));
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(Delimiters behavior) : behavior_(behavior) {}
  void apply(Words& words) const override { split_at_property(words, behavior_, properties::punctuation); }

 private:
  Delimiters behavior_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : behavior_(individual ? Delimiters::isolated : Delimiters::contiguous) {}
  void apply(Words& words) const override { split_at_property(words, behavior_, properties::numeric); }

 private:
  Delimiters behavior_;
};

class CharDelimiterSplit final : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}
  void apply(Words& words) const override {
    split_at_characters(words, Delimiters::removed, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

class Split final : public PreTokenizer {
 public:
  Split(std::unique_ptr<Pattern> pattern, Delimiters behavior, bool inverted)
      : pattern_(std::move(pattern)), behavior_(behavior), inverted_(inverted) {}
  void apply(Words& words) const override { split_at(words, *pattern_, behavior_, inverted_); }

 private:
  std::unique_ptr<Pattern> pattern_;
  Delimiters behavior_;
  bool inverted_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(size_t length) : length_(length) {}
  void apply(Words& words) const override {
    std::vector<Words::Range> ranges;
    for (const Words::Range& range : words.ranges) {
      for (size_t at = range.begin; at < range.end;) {
        const size_t begin = at;
        for (size_t i = 0; i < length_ && at < range.end; ++i) at += character_bytes(words.text[at]);
        ranges.push_back({begin, at});
      }
    }
    take_ranges(words, std::move(ranges));
  }

 private:
  size_t length_;
};

class UnicodeScripts final : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    std::vector<Words::Range> ranges;
    for (const Words::Range& range : words.ranges) {
      size_t begin = range.begin;
      int last = kAnyScript;  // none yet
      bool any = false;
      for (size_t at = range.begin; at < range.end;) {
        const size_t here = at;
        const int script = script_of(next_character(words.text, at));
        if (script != kAnyScript && script != last) {  // Hugging Face drops what is before the first script
          if (any && here > begin) ranges.push_back({begin, here});
          begin = here;
          any = true;
        }
        if (script != kAnyScript) last = script;
      }
      if (any && range.end > begin) ranges.push_back({begin, range.end});
    }
    take_ranges(words, std::move(ranges));
  }
};

class Metaspace final : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  Metaspace(std::string replacement, Prepend prepend, bool split)
      : replacement_(std::move(replacement)), prepend_(prepend), split_(split) {}

  void apply(Words& words) const override {
    Words result;
    result.text.reserve(words.text.size() + words.text.size() / 4 + 8);
    for (size_t i = 0; i < words.ranges.size(); ++i) {
      const std::string_view word = words.word(words.ranges[i]);
      const bool marked = word.starts_with(' ') || word.starts_with(replacement_);
      const bool first = i == 0 && words.from_start;
      size_t begin = result.text.size();
      if (!marked && (prepend_ == Prepend::always || (prepend_ == Prepend::first && first)))
        result.text += replacement_;
      for (size_t at = 0; at < word.size();) {
        const size_t next = std::min(at + character_bytes(word[at]), word.size());
        const std::string_view character = word.substr(at, next - at);
        const bool space = character == " " || character == replacement_;
        if (space && split_ && result.text.size() > begin) {
          result.ranges.push_back({begin, result.text.size()});
          begin = result.text.size();
        }
        result.text += space ? std::string_view(replacement_) : character;
        at = next;
      }
      result.ranges.push_back({begin, result.text.size()});
    }
    result.budget = words.budget;
    result.from_start = words.from_start;
    words = std::move(result);
  }

 private:
  std::string replacement_;  // one character
  Prepend prepend_;
  bool split_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex), pattern_(gpt2_pattern()) {}

  void apply(Words& words) const override {
    if (add_prefix_space_) add_spaces(words);
    if (use_regex_) split_at(words, *pattern_, Delimiters::isolated, false);
    if (!leaves_bytes_) write_characters(words);
  }
  bool ends_with_bytes() const override { return true; }
  void leave_bytes() override { leaves_bytes_ = true; }

 private:
  static void add_spaces(Words& words) {
    Words result;
    result.budget = words.budget;
    result.from_start = words.from_start;
    for (const Words::Range& range : words.ranges) {
      const size_t begin = result.text.size();
      if (words.text[range.begin] != ' ') result.text.push_back(' ');
      result.text += words.word(range);
      result.ranges.push_back({begin, result.text.size()});
    }
    words = std::move(result);
  }

  static void write_characters(Words& words) {
    Words result;
    result.budget = words.budget;
    result.from_start = words.from_start;
    result.text.reserve(2 * words.text.size());
    for (const Words::Range& range : words.ranges) {
      const size_t begin = result.text.size();
      for (const char byte : words.word(range)) append_utf8(result.text, character_of_byte(static_cast<uint8_t>(byte)));
      result.ranges.push_back({begin, result.text.size()});
    }
    words = std::move(result);
  }

  bool add_prefix_space_, use_regex_;
  bool leaves_bytes_ = false;
  std::unique_ptr<Pattern> pattern_;
};

Delimiters read_behavior(const Fields& fields) {
  const std::string behavior = fields.string("behavior", "Isolated");
  if (behavior == "Removed") return Delimiters::removed;
  if (behavior == "Isolated") return Delimiters::isolated;
  if (behavior == "MergedWithPrevious") return Delimiters::merged_with_previous;
  if (behavior == "MergedWithNext") return Delimiters::merged_with_next;
  if (behavior == "Contiguous") return Delimiters::contiguous;
  fields.refuse("behavior", "\"Removed\", \"Isolated\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"");
}

// Files of before 2024 have add_prefix_space in place of prepend_scheme.
std::unique_ptr<PreTokenizer> read_metaspace(const Fields& fields) {
  const std::string scheme =
      fields.string("prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
  auto prepend = Metaspace::Prepend::always;
  if (scheme == "first") {
    prepend = Metaspace::Prepend::first;
  } else if (scheme == "never") {
    prepend = Metaspace::Prepend::never;
  } else if (scheme != "always") {
    fields.refuse("prepend_scheme", "\"always\", \"first\" or \"never\"");
  }
  return std::make_unique<Metaspace>(read_character(fields, "replacement"), prepend, fields.boolean("split", true));
}

}  // namespace

PreTokenizer::~PreTokenizer() = default;

std::unique_ptr<PreTokenizer> bert_pre_tokenizer() {
  return std::make_unique<Bert>();
}

std::unique_ptr<PreTokenizer> byte_level_pre_tokenizer(bool add_prefix_space) {
  return std::make_unique<ByteLevel>(add_prefix_space, true);
}

std::unique_ptr<PreTokenizer> read_pre_tokenizer(const nlohmann::json* value, const std::string& where, int depth) {
  if (value == nullptr || value->is_null()) return nullptr;
  const Fields fields(*value, where);
  const std::string& type = fields.string("type");
  if (type == "Sequence")
    return std::make_unique<Sequence>(read_steps<PreTokenizer>(fields, "pretokenizers", depth, read_pre_tokenizer));
  if (type == "ByteLevel")
    return std::make_unique<ByteLevel>(fields.boolean("add_prefix_space", true), fields.boolean("use_regex", true));
  if (type == "Metaspace") return read_metaspace(fields);
  if (type == "BertPreTokenizer") return bert_pre_tokenizer();
  if (type == "Whitespace") return std::make_unique<Whitespace>();
  if (type == "WhitespaceSplit") return std::make_unique<WhitespaceSplit>();
  if (type == "Punctuation") return std::make_unique<Punctuation>(read_behavior(fields));
  if (type == "Digits") return std::make_unique<Digits>(fields.boolean("individual_digits", false));
  if (type == "UnicodeScripts") return std::make_unique<UnicodeScripts>();
  if (type == "FixedLength") {
    const int64_t length = fields.number("length", INT32_MAX, 5);
    if (length == 0) fields.refuse("length", "a number from 1");
    return std::make_unique<FixedLength>(static_cast<size_t>(length));
  }
  if (type == "CharDelimiterSplit") {
    size_t at = 0;
    const std::string delimiter = read_character(fields, "delimiter");
    return std::make_unique<CharDelimiterSplit>(next_character(delimiter, at));
  }
  if (type == "Split")
    return std::make_unique<Split>(read_pattern(fields, "pattern"), read_behavior(fields),
                                   fields.boolean("invert", false));
  fields.refuse("type", "a pre-tokenizer that is known here");
}

}  // namespace attune::huggingface

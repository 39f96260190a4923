#include "attune/text/huggingface/unicode.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "attune/base/fail.h"
#include "attune/text/huggingface/unicode_16_characters.h"
#include "attune/text/text_file.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

[[noreturn]] void fail_unicode(UErrorCode code) {
  fail<Error>("the Unicode library cannot read its data: {}", u_errorName(code));
}

icu::UnicodeSet set_of(const char* pattern) {
  UErrorCode code = U_ZERO_ERROR;
  icu::UnicodeSet set(icu::UnicodeString::fromUTF8(pattern), code);
  if (U_FAILURE(code)) fail_unicode(code);
  return set;
}

class PropertyTable {
 public:
  PropertyTable() : table_(kCodePoints) {
    u_enumCharTypes(
        [](const void* table, UChar32 start, UChar32 limit, UCharCategory category) -> UBool {
          auto& values = *static_cast<std::vector<uint16_t>*>(const_cast<void*>(table));
          std::fill(values.begin() + start, values.begin() + limit, static_cast<uint16_t>(category));
          return true;
        },
        &table_);
    for (const AssignedRange& range : kUnicode16Characters)
      for (char32_t c = range.first; c <= range.last; ++c) table_[c] = static_cast<uint16_t>(range.category);
    add_derived();
    add("[[:White_Space:]]", properties::white_space);
    add("[[:Alphabetic:][:M:][:Nd:][:Pc:]\\u200C\\u200D]", properties::word);
    add("[[[:P:]&[:age=8.0:]][\\u0021-\\u002F\\u003A-\\u0040\\u005B-\\u0060\\u007B-\\u007E]\\u166D\\U000111C9]",
        properties::punctuation);
    add("[[[:Cc:][:Cf:][:Co:]]&[:age=8.0:]]", properties::control);
    add("[[[[:Mn:]&[:age=8.0:]]\\u1734]-[\\u1885\\u1886\\uA9BD\\U000111C9]]", properties::nonspacing_mark);
    add("[[[[:M:]&[:age=9.0:]]\\u1CF2\\u1CF3]-[\\U000111C9]]", properties::mark);
    add("[[\\U00011DE0-\\U00011DE9\\U00016FF4-\\U00016FF6]]", properties::numeric);
    add_graphemes();
  }

  const uint16_t* get() const { return table_.data(); }

 private:
  void add(const char* pattern, uint16_t flag) {
    const icu::UnicodeSet set = set_of(pattern);
    for (int32_t i = 0; i < set.getRangeCount(); ++i)
      for (auto c = set.getRangeStart(i); c <= set.getRangeEnd(i); ++c) table_[static_cast<size_t>(c)] |= flag;
  }

  void remove(const char* pattern, uint16_t flag) {
    const icu::UnicodeSet set = set_of(pattern);
    for (int32_t i = 0; i < set.getRangeCount(); ++i)
      for (auto c = set.getRangeStart(i); c <= set.getRangeEnd(i); ++c)
        table_[static_cast<size_t>(c)] &= static_cast<uint16_t>(~flag);
  }

  // What follows from the category alone.
  void add_derived() {
    constexpr uint32_t word = kLetters | kMarks | mask_of(Category::decimal_number);
    constexpr uint32_t controls = mask_of(Category::control) | mask_of(Category::format) |
                                  mask_of(Category::line_separator) | mask_of(Category::paragraph_separator);
    for (uint16_t& value : table_) {
      const uint32_t mask = uint32_t{1} << value;
      if (mask & word) value |= properties::word;
      if (mask & kNumbers) value |= properties::numeric;
      if (mask & kMarks) value |= properties::grapheme_extend;
      if (mask & controls) value |= properties::grapheme_control;
    }
  }

  // Unicode Standard Annex 29: Grapheme_Cluster_Break, as far as short clusters need it.
  void add_graphemes() {
    const char* joining =
        "[\\u200C\\u200D\\uFF9E\\uFF9F\\u0E33\\u0EB3\\U0001F3FB-\\U0001F3FF\\U000E0020-\\U000E007F"
        // Marks of Unicode 17.
        "\\u1ACF-\\u1ADD\\u1AE0-\\u1AEB\\U00010EFA\\U00010EFB\\U00011B60-\\U00011B67\\U0001E6E3\\U0001E6E6\\U0001E6EE"
        "\\U0001E6EF\\U0001E6F5]";
    add(joining, properties::grapheme_extend);
    remove(joining, properties::grapheme_control);
    remove(
        "[\\u102B\\u102C\\u1038\\u1062-\\u1064\\u1067-\\u106D\\u1083\\u1087-\\u108C\\u108F\\u109A-\\u109C\\u1A61"
        "\\u1A63\\u1A64\\uAA7B\\uAA7D\\U00011720\\U00011721]",
        properties::grapheme_extend);
    remove("[:Prepended_Concatenation_Mark:]", properties::grapheme_control);
  }

  std::vector<uint16_t> table_;
};

// U+0600 to U+0605 and the like begin a cluster with the next character. Others of the kind need 3 bytes and a base.
bool is_prepended(char32_t c) {
  return (c >= 0x600 && c <= 0x605) || c == 0x6DD || c == 0x70F || c == 0x890 || c == 0x891 || c == 0x8E2 || c == 0xD4E;
}

const icu::Normalizer2& normalizer_of(NormalizationForm form) {
  struct Filtered {
    Filtered(const icu::Normalizer2* (*get)(UErrorCode&), const icu::UnicodeSet& set) {
      UErrorCode code = U_ZERO_ERROR;
      const icu::Normalizer2* all = get(code);
      if (U_FAILURE(code)) fail_unicode(code);
      normalizer = std::make_unique<icu::FilteredNormalizer2>(*all, set);
    }
    std::unique_ptr<icu::FilteredNormalizer2> normalizer;
  };
  static const auto* set = [] {
    auto* known = new icu::UnicodeSet(set_of("[[:age=9.0:]]"));
    known->freeze();
    return known;
  }();
  static const Filtered forms[] = {{icu::Normalizer2::getNFCInstance, *set},
                                   {icu::Normalizer2::getNFDInstance, *set},
                                   {icu::Normalizer2::getNFKCInstance, *set},
                                   {icu::Normalizer2::getNFKDInstance, *set}};
  return *forms[static_cast<size_t>(form)].normalizer;
}

// Lower case of letters that ICU 72 does not have.
char32_t newer_lowercase(char32_t c) {
  if (c >= 0x10D50 && c <= 0x10D65) return c + 0x20;
  if (c >= 0x16EA0 && c <= 0x16EB8) return c + 0x1B;
  switch (c) {
    case 0x1C89:
    case 0xA7CC:
    case 0xA7CE:
    case 0xA7D2:
    case 0xA7D4:
    case 0xA7DA:
      return c + 1;
    case 0xA7CB:
      return 0x264;
    case 0xA7DC:
      return 0x19B;
    default:
      return c;
  }
}

// How many bytes one U+FFFD replaces at the start of a text that begins with no valid character.
size_t replaced_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0);
  if (first < 0xC2 || first > 0xF4) return 1;
  const size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const uint8_t least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 1;
  size_t valid = 2;
  while (valid < length && (byte(valid) & 0xC0) == 0x80) ++valid;
  return valid;
}

}  // namespace

const uint16_t* property_table() {
  static const PropertyTable table;
  return table.get();
}

bool is_ascii(std::string_view text) {
  uint8_t all = 0;
  for (const char c : text) all |= static_cast<uint8_t>(c);
  return all < 0x80;
}

std::string with_replacements(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t length = utf8_sequence(bytes);
    if (length > 0) {
      text.append(bytes.substr(0, length));
    } else {
      text += "\uFFFD";
      length = replaced_bytes(bytes);
    }
    bytes.remove_prefix(length);
  }
  return text;
}

void normalize(NormalizationForm form, std::string_view text, std::string& result) {
  // ICU counts bytes in int32_t, and the steps before may have lengthened the text.
  if (text.size() > INT32_MAX)
    fail<DataError>("cannot normalize a text of {} bytes, at most {} are accepted", text.size(), INT32_MAX);
  result.clear();
  UErrorCode code = U_ZERO_ERROR;
  icu::StringByteSink<std::string> sink(&result, static_cast<int32_t>(text.size()));
  normalizer_of(form).normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, code);
  if (U_FAILURE(code)) fail<DataError>("cannot normalize a text of {} bytes: {}", text.size(), u_errorName(code));
}

void append_lowercase(std::string& text, char32_t c) {
  if (c < 0x80) {
    text.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {
    text += "i\u0307";
  } else {
    const auto lower = static_cast<char32_t>(u_tolower(static_cast<UChar32>(c)));
    append_utf8(text, lower == c ? newer_lowercase(c) : lower);
  }
}

size_t grapheme_end(std::string_view text, size_t at) {
  const uint16_t* table = property_table();
  char32_t c = next_character(text, at);
  if (at == text.size()) return at;
  if (c == '\r' && text[at] == '\n') return at + 1;
  size_t next = at;
  while (is_prepended(c) && at < text.size()) {
    c = next_character(text, next);
    if (table[c] & properties::grapheme_control) return at;
    at = next;
  }
  if (table[c] & properties::grapheme_control) return at;
  while (at < text.size()) {
    next = at;
    if (!(table[next_character(text, next)] & properties::grapheme_extend)) return at;
    at = next;
  }
  return at;
}

int script_of(char32_t c) {
  if (c == ' ') return kAnyScript;
  if (c == 0x30FC) return USCRIPT_HAN;
  if (c == 0x589 || c == 0x61C) return USCRIPT_COMMON;  // these four have another script since
  if (c == 0x953 || c == 0x954) return USCRIPT_DEVANAGARI;
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  if (age[0] > 9) return kAnyScript;
  UErrorCode code = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &code);
  if (U_FAILURE(code) || script == USCRIPT_UNKNOWN) return kAnyScript;
  if (script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA) return USCRIPT_HAN;
  return script;
}

}  // namespace attune::huggingface

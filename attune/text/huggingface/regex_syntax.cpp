// Oniguruma's syntax to PCRE2's.

#include <unicode/uchar.h>

#include <cctype>
#include <utility>
#include <vector>

#include "attune/base/cut_text.h"
#include "attune/text/huggingface/regex.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/text_file.h"

namespace attune::huggingface {
namespace {

// Inside [...].
constexpr std::string_view kWhiteSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNoWhiteSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e})"
    R"(\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{N}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr std::string_view kHexDigit = "0-9A-Fa-f";

// An expression that becomes longer than this is too large for PCRE2 too, which takes 64 KiB of its own code.
constexpr size_t kLongestTranslation = size_t{256} << 10;

// All characters that PCRE2 10.42 (Unicode 14) does not know yet, without controls and the like; in order.
const std::vector<char32_t>& assigned_since_unicode_14() {
  static const std::vector<char32_t> characters = [] {
    constexpr uint32_t left_out = mask_of(Category::unassigned) | mask_of(Category::control) |
                                  mask_of(Category::format) | mask_of(Category::private_use) |
                                  mask_of(Category::surrogate);
    const uint16_t* table = property_table();
    std::vector<char32_t> found;
    for (char32_t c = 0x800; c < kCodePoints; ++c) {
      if (uint32_t{1} << (table[c] & properties::category_bits) & left_out) continue;
      UVersionInfo age;
      u_charAge(static_cast<UChar32>(c), age);
      if (age[0] == 0 || age[0] > 14) found.push_back(c);
    }
    return found;
  }();
  return characters;
}

// Those of this general category, as ranges.
std::string newer_characters(std::string_view category) {
  if (category.empty() || category.starts_with('C')) return "";
  uint32_t mask = 0;
  constexpr std::string_view names = "CnLuLlLtLmLoMnMeMcNdNlNoZsZlZpCcCfCoCsPdPsPePcPoSmScSkSoPiPf";
  for (size_t i = 0; i < names.size() / 2; ++i)
    if (names.substr(2 * i, 2).starts_with(category)) mask |= uint32_t{1} << i;
  if (mask == 0) return "";
  const uint16_t* table = property_table();
  std::string ranges;
  char32_t first = 0, last = 0;  // of the range that is open; 0: none is
  const auto write_range = [&] {
    if (last > 0)
      ranges += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", static_cast<uint32_t>(first), static_cast<uint32_t>(last));
  };
  for (const char32_t c : assigned_since_unicode_14()) {
    if (!(uint32_t{1} << (table[c] & properties::category_bits) & mask)) continue;
    if (c != last + 1) {
      write_range();
      first = c;
    }
    last = c;
  }
  write_range();
  return ranges;
}

class Translation {
 public:
  Translation(const std::string& from, const std::string& where) : from_(from), where_(where) {}

  std::string translate() {
    while (at_ < from_.size()) {
      step();
      check_length(to_);
    }
    to_.append(options_, ')');
    return std::move(to_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    fail<FileError>("{}: \"{}\" has {}, which is not supported", where_, cut_text(from_, 100), what);
  }
  // An escape of two characters may stand for ranges of a thousand.
  void check_length(const std::string& translated) const {
    if (translated.size() > kLongestTranslation)
      fail<FileError>("{}: \"{}\" is too large: it has more than {} bytes with the characters of its classes", where_,
                      cut_text(from_, 100), kLongestTranslation);
  }
  bool starts(std::string_view text) const { return from_.compare(at_, text.size(), text) == 0; }
  char peek(size_t ahead = 0) const { return at_ + ahead < from_.size() ? from_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\\') return escape();
    if (c == '[') {
      atom_ = to_.size();
      to_ += set();
      return;
    }
    if (c == '(') return open_group();
    if (c == ')') {
      if (groups_.empty()) refuse("a closing parenthesis too many");
      to_.append(std::exchange(options_, groups_.back().options), ')');
      atom_ = groups_.back().begin;
      groups_.pop_back();
      to_ += from_[at_++];
      return;
    }
    if (c == '{' && std::isdigit(static_cast<unsigned char>(peek(1))) != 0) return repetition();
    if (c == '{' && peek(1) == ',') return repetition();
    if (c != '*' && c != '+' && c != '?') atom_ = to_.size();
    const size_t bytes = std::min(character_bytes(c), from_.size() - at_);
    to_.append(from_, at_, bytes);
    at_ += bytes;
  }

  void open_group() {
    if (starts("(?~")) refuse("an absence operator (?~");
    if (starts("(*")) refuse("a verb (*");
    if (starts("(?#")) refuse("a comment (?#");
    groups_.push_back({to_.size(), std::exchange(options_, 0)});
    to_ += '(';
    ++at_;
    if (peek() != '?') return;
    to_ += '?';
    ++at_;
    for (; std::isalpha(static_cast<unsigned char>(peek())) != 0 || peek() == '-'; ++at_) {
      if (peek() == 'x') refuse("the option x");
      to_ += peek() == 'm' ? 's' : peek();  // Ruby's m: a dot matches a line end
    }
    if (peek() == ')') {  // (?i): a group to the end of the one around it, alternatives included
      options_ = groups_.back().options + 1;
      groups_.pop_back();
      to_ += ':';
      ++at_;
      return;
    }
    // What follows (= ! <= <! > : or a name) is the same in both.
    while (at_ < from_.size() && std::string_view("=!<>:").find(peek()) != std::string_view::npos) to_ += from_[at_++];
  }

  // {n,m}: a + behind it repeats the whole, a possessive quantifier in PCRE2.
  void repetition() {
    const size_t end = from_.find('}', at_);
    if (end == std::string::npos) refuse("a brace without its end");
    std::string count = from_.substr(at_, end + 1 - at_);
    if (count.find_first_not_of("0123456789,{}") != std::string::npos) refuse("braces that are no count");
    if (count.starts_with("{,")) count.insert(1, "0");
    at_ = end + 1;
    to_ += count;
    if (peek() != '+') return;
    to_.insert(atom_, "(?:");
    to_ += ")+";
    ++at_;
  }

  void escape() {
    const char c = peek(1);
    atom_ = to_.size();
    if (c == 'b' || c == 'B') {
      at_ += 2;
      const std::string word = "[" + std::string(kWord) + "]";
      const char* form = c == 'b' ? "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))" : "(?:(?<={0})(?={0})|(?<!{0})(?!{0}))";
      to_ += fmt::format(fmt::runtime(form), word);
      return;
    }
    if (std::string_view("GKkgRXAzZ").find(c) != std::string_view::npos) {
      if (c == 'G' || c == 'K' || c == 'g' || c == 'k') refuse(fmt::format("\\{}", c));
      to_.append(from_, at_, 2);
      at_ += 2;
      return;
    }
    bool negated = false;
    const std::string members = class_escape(negated);
    to_ += members.size() == 2 && members[0] == '\\' ? members : (negated ? "[^" : "[") + members + "]";
  }

  // An escape that stands for characters, as members of a set; `negated`: for all others.
  std::string class_escape(bool& negated) {
    const char c = peek(1);
    if (c == '\0') refuse("a backslash at its end");
    if (c == 'p' || c == 'P') return property(negated);
    if (c == 'x' || c == 'u' || c == 'o') return code_point();
    at_ += 2;
    negated = c == 'S' || c == 'W' || c == 'D' || c == 'H';
    switch (c) {
      case 's':
      case 'S':
        return std::string(kWhiteSpace);
      case 'w':
      case 'W':
        return std::string(kWord);
      case 'd':
      case 'D':
        return "\\p{Nd}" + newer_characters("Nd");
      case 'h':
      case 'H':
        return std::string(kHexDigit);
      default:
        break;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) refuse(fmt::format("\\{}", c));
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 &&
        std::string_view("tnrfvae").find(c) == std::string_view::npos)
      refuse(fmt::format("\\{}", c));
    if (c == 'v') return "\\x{b}";
    const size_t bytes = character_bytes(c);
    std::string character = "\\" + from_.substr(at_ - 1, bytes);
    if (bytes > 1) character.erase(0, 1);
    at_ += bytes - 1;
    return character;
  }

  std::string property(bool& negated) {
    negated = peek(1) == 'P';
    at_ += 2;
    if (peek() != '{') refuse("\\p without braces");
    const size_t end = from_.find('}', at_);
    if (end == std::string::npos) refuse("a brace without its end");
    std::string name = from_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    if (name.starts_with('^')) {
      negated = !negated;
      name.erase(0, 1);
    }
    if (name == "Letter") name = "L";
    if (name == "Number") name = "N";
    if (name == "Punctuation") name = "P";
    // PCRE2 takes a script's name alone for all characters that are used with that script too.
    if (u_getPropertyValueEnum(UCHAR_SCRIPT, name.c_str()) != UCHAR_INVALID_CODE) name.insert(0, "sc:");
    return "\\p{" + name + "}" + (name.size() <= 2 ? newer_characters(name) : "");
  }

  std::string code_point() {
    const bool braces = peek(2) == '{';
    const size_t begin = at_ + (braces ? 3 : 2);
    const size_t longest = braces ? 8 : peek(1) == 'u' ? 4 : 2;
    size_t end = begin;
    while (end < from_.size() && end < begin + longest && std::isxdigit(static_cast<unsigned char>(from_[end])) != 0)
      ++end;
    if (end == begin || peek(1) == 'o' || (braces && (end == from_.size() || from_[end] != '}')))
      refuse("a code point that is not hexadecimal");
    const std::string code = "\\x{" + from_.substr(begin, end - begin) + "}";
    at_ = end + (braces ? 1 : 0);
    return code;
  }

  // [...]; a set within a set is a union.
  std::string set() {
    std::string result = "[";
    ++at_;
    if (peek() == '^') {
      result += '^';
      ++at_;
    }
    result += members();
    return result + "]";
  }

  std::string members() {
    if (++depth_ > 20) refuse("sets within sets, too deep");
    std::string result;
    for (bool first = true; at_ < from_.size(); first = false) {
      const char c = peek();
      if (c == ']' && !first) {
        ++at_;
        --depth_;
        return result;
      }
      if (starts("&&")) refuse("an intersection of sets (&&)");
      if (starts("[:")) refuse("a POSIX bracket");
      if (c == '[') {
        ++at_;
        if (peek() == '^') refuse("a negated set within a set");
        result += members();
      } else if (c == '\\') {
        result += set_escape();
      } else {
        const size_t bytes = std::min(character_bytes(c), from_.size() - at_);
        if (c == ']') result += '\\';
        result.append(from_, at_, bytes);
        at_ += bytes;
      }
      check_length(result);
    }
    refuse("a set without its end");
  }

  std::string set_escape() {
    const char c = peek(1);
    if (c == 'b') {
      at_ += 2;
      return "\\x{8}";
    }
    if (c == 'S') {
      at_ += 2;
      return std::string(kNoWhiteSpace);
    }
    if (c == 'W' || c == 'D' || c == 'H') refuse(fmt::format("\\{} within a set", c));
    bool negated = false;
    const std::string result = class_escape(negated);
    if (!negated) return result;
    return "\\P" + result.substr(2, result.find('}') - 1);
  }

  const std::string& from_;
  const std::string& where_;
  std::string to_;
  size_t at_ = 0;
  size_t atom_ = 0;     // where the last atom begins in to_
  size_t options_ = 0;  // groups that (?i) and the like opened in the innermost group
  struct Group {
    size_t begin;    // in to_
    size_t options;  // options_ of the group around it
  };
  std::vector<Group> groups_;  // that are open
  int depth_ = 0;
};

}  // namespace

std::string translate_oniguruma(const std::string& expression, const std::string& where) {
  if (!valid_utf8(expression)) fail<FileError>("{}: is not UTF-8", where);
  return Translation(expression, where).translate();
}

}  // namespace attune::huggingface

#define PCRE2_CODE_UNIT_WIDTH 8
#include "attune/text/huggingface/regex.h"

#include <pcre2.h>

#include <array>

#include "attune/base/cut_text.h"
#include "attune/text/huggingface/unicode.h"

namespace attune::huggingface {
namespace {

constexpr size_t kLongestExpression = 16 << 10;
// Steps at one place of a text. Published patterns need a few for each character; a place that needs more than the
// first limit is tried again with the next, and all these trials together may take a SearchBudget.
constexpr std::array<uint32_t, 6> kMatchLimits = {1'000, 4'000, 16'000, 64'000, 250'000, 1'000'000};
constexpr uint32_t kDepthLimit = 10'000;
constexpr uint32_t kHeapLimit = 32 << 10;  // KiB

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <class T>
Owned<T> own(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return Owned<T>(made);
}

class Regex final : public Pattern {
 public:
  Regex(const std::string& expression, const std::string& where) {
    if (expression.size() > kLongestExpression)
      fail<FileError>("{}: has {} bytes, at most {} are accepted", where, expression.size(), kLongestExpression);
    const std::string translated = translate_oniguruma(expression, where);
    const auto context = own(pcre2_compile_context_create(nullptr));
    pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context.get(), 100);
    int code = 0;
    PCRE2_SIZE position = 0;
    constexpr uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C | PCRE2_NO_UTF_CHECK;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(), options, &code,
                              &position, context.get()));
    if (code_ == nullptr)
      fail<FileError>("{}: \"{}\" is no regular expression: {}", where, cut_text(expression, 100), message_of(code));
    for (size_t i = 0; i < limits_.size(); ++i) {
      limits_[i] = own(pcre2_match_context_create(nullptr));
      pcre2_set_match_limit(limits_[i].get(), kMatchLimits[i]);
      pcre2_set_depth_limit(limits_[i].get(), kDepthLimit);
      pcre2_set_heap_limit(limits_[i].get(), kHeapLimit);
    }
  }

  void search(std::string_view text, const std::function<void(Match)>& found, SearchBudget& budget) const override {
    const auto data = own(pcre2_match_data_create(1, nullptr));
    size_t previous = std::string_view::npos;  // the end of the last match
    for (size_t at = 0; at <= text.size();) {
      const int result = next_match(text, at, budget.left, data.get());
      if (result == PCRE2_ERROR_NOMATCH) return;
      if (result < 0) fail<DataError>("cannot search a text of {} bytes: {}", text.size(), message_of(result));
      const PCRE2_SIZE* places = pcre2_get_ovector_pointer(data.get());
      const size_t begin = places[0], end = std::max(places[0], places[1]);
      if (end > begin || end != previous) {
        found({begin, end});
        previous = end;
      }
      at = end > begin ? end : end < text.size() ? end + character_bytes(text[end]) : end + 1;
    }
  }

 private:
  // The first match at or behind `at`; takes what it costs from `left`. PCRE2 counts steps anew at each place where a
  // match may begin, so that many places could take hours together.
  int next_match(std::string_view text, size_t at, size_t& left, pcre2_match_data* data) const {
    int result = match(text, at, 0, 0, data);
    if (result != PCRE2_ERROR_MATCHLIMIT) return result;
    for (; at <= text.size(); at += at < text.size() ? character_bytes(text[at]) : 1) {
      result = match(text, at, PCRE2_ANCHORED, 0, data);
      for (size_t i = 1; i < limits_.size() && result == PCRE2_ERROR_MATCHLIMIT; ++i) {
        if (left < kMatchLimits[i]) return result;
        left -= kMatchLimits[i];
        result = match(text, at, PCRE2_ANCHORED, i, data);
      }
      if (result != PCRE2_ERROR_NOMATCH) return result;
    }
    return result;
  }
  int match(std::string_view text, size_t at, uint32_t options, size_t limit, pcre2_match_data* data) const {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                       options | PCRE2_NO_UTF_CHECK, data, limits_[limit].get());
  }

  Owned<pcre2_code> code_;
  std::array<Owned<pcre2_match_context>, kMatchLimits.size()> limits_;
};

}  // namespace

std::unique_ptr<Pattern> make_regex(const std::string& expression, const std::string& where) {
  return std::make_unique<Regex>(expression, where);
}

}  // namespace attune::huggingface

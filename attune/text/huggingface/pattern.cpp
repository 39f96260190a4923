#include "attune/text/huggingface/pattern.h"

#include "attune/text/huggingface/regex.h"
#include "attune/text/huggingface/scanners.h"

namespace attune::huggingface {
namespace {

class StringPattern final : public Pattern {
 public:
  explicit StringPattern(std::string text) : text_(std::move(text)) {}
  void search(std::string_view text, const std::function<void(Match)>& found, SearchBudget&) const override {
    if (text_.empty()) return;
    for (size_t at = text.find(text_); at != std::string_view::npos; at = text.find(text_, at + text_.size()))
      found({at, at + text_.size()});
  }

 private:
  std::string text_;
};

}  // namespace

Pattern::~Pattern() = default;

std::unique_ptr<Pattern> string_pattern(std::string text) {
  return std::make_unique<StringPattern>(std::move(text));
}

std::unique_ptr<Pattern> regex_pattern(const std::string& expression, const std::string& where) {
  if (auto scanner = scanner_for(expression)) return scanner;
  return make_regex(expression, where);
}

std::unique_ptr<Pattern> read_pattern(const Fields& fields, const char* name) {
  const nlohmann::json& pattern = fields.at(name);
  if (pattern.is_string()) return string_pattern(pattern.get<std::string>());  // files of before 2021
  const Fields kinds(pattern, fields.where(name));
  if (kinds.find("String")) return string_pattern(kinds.string("String"));
  if (kinds.find("Regex")) return regex_pattern(kinds.string("Regex"), kinds.where("Regex"));
  fields.refuse(name, "{\"String\": \"...\"} or {\"Regex\": \"...\"}");
}

}  // namespace attune::huggingface

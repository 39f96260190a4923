#include "attune/text/huggingface/normalizers.h"

#include <vector>

#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/pattern.h"
#include "attune/text/huggingface/steps.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

bool is_white_space(char32_t c) {
  return (property_table()[c] & properties::white_space) != 0;
}

class SequenceNormalizer final : public Steps<Normalizer> {
 public:
  using Steps::Steps;
  void apply(NormalizedText& text) const override {
    const size_t before = text.text.size();
    for (const auto& step : steps_) {
      step->apply(text);
      check_growth("normalization", before, text.text.size());
    }
  }
};

/// Calls put(result, c) with each character.
template <class Put>
void rewrite(NormalizedText& text, Put&& put) {
  std::string result;
  result.reserve(text.text.size() + text.text.size() / 8);
  for (size_t at = 0; at < text.text.size();) {
    const bool first = at == 0;
    put(result, next_character(text.text, at));
    if (first && result.empty()) text.keeps_start = false;
  }
  text.text = std::move(result);
}

class UnicodeForm final : public Normalizer {
 public:
  explicit UnicodeForm(NormalizationForm form) : form_(form) {}
  void apply(NormalizedText& text) const override {
    if (is_ascii(text.text)) return;
    std::string result;
    normalize(form_, text.text, result);
    text.text = std::move(result);
  }

 private:
  NormalizationForm form_;
};

void lowercase_ascii(std::string& text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

class Lowercase final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    if (is_ascii(text.text)) return lowercase_ascii(text.text);
    rewrite(text, append_lowercase);
  }
};

class StripAccents final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    if (is_ascii(text.text)) return;
    rewrite(text, [table = property_table()](std::string& result, char32_t c) {
      if (!(table[c] & properties::mark)) append_utf8(result, c);
    });
  }
};

bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options) : options_(options) {}

  void apply(NormalizedText& text) const override {
    rewrite(text, [this, table = property_table()](std::string& result, char32_t c) { clean(table, result, c); });
    if (is_ascii(text.text)) {
      if (options_.lowercase) lowercase_ascii(text.text);
      return;
    }
    if (options_.strip_accents) {
      std::string decomposed;
      normalize(NormalizationForm::nfd, text.text, decomposed);
      text.text = std::move(decomposed);
    }
    if (!options_.strip_accents && !options_.lowercase) return;
    rewrite(text, [this, table = property_table()](std::string& result, char32_t c) {
      if (options_.strip_accents && (table[c] & properties::nonspacing_mark)) return;
      options_.lowercase ? append_lowercase(result, c) : append_utf8(result, c);
    });
  }

 private:
  void clean(const uint16_t* table, std::string& result, char32_t c) const {
    if (options_.clean_text) {
      if (c == '\t' || c == '\n' || c == '\r') return result.push_back(' ');
      if (c == 0 || c == 0xFFFD || (table[c] & properties::control)) return;
      if (table[c] & properties::white_space) return result.push_back(' ');
    }
    const bool spaced = options_.handle_chinese_chars && is_chinese(c);
    if (spaced) result.push_back(' ');
    append_utf8(result, c);
    if (spaced) result.push_back(' ');
  }

  BertNormalizerOptions options_;
};

class Nmt final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    rewrite(text, [](std::string& result, char32_t c) {
      if ((c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
      const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
      append_utf8(result, space ? U' ' : c);
    });
  }
};

class ReplaceNormalizer final : public Normalizer {
 public:
  ReplaceNormalizer(std::unique_ptr<Pattern> pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void apply(NormalizedText& text) const override {
    if (text.text.empty()) return;
    std::string result;
    size_t done = 0;
    bool any = false;
    const auto found = [&](Match match) {
      if (!any) result.reserve(text.text.size() + text.text.size() / 4);
      any = true;
      // As in the reference, new characters stand where the last one that they replace stood.
      if (match.begin == 0 && match.end > 0 && (content_.empty() || match.end > character_bytes(text.text[0])))
        text.keeps_start = false;
      result.append(text.text, done, match.begin - done);
      result += content_;
      done = match.end;
    };
    pattern_->search(text.text, found, text.budget);
    if (!any) return;
    result.append(text.text, done);
    text.text = std::move(result);
  }

 private:
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string content) : content_(std::move(content)) {}
  void apply(NormalizedText& text) const override {
    if (!text.text.empty()) text.text.insert(0, content_);
  }

 private:
  std::string content_;
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  void apply(NormalizedText& text) const override {
    size_t begin = 0, end = 0;  // of what is not white space
    bool any = false;
    for (size_t at = 0; at < text.text.size();) {
      const size_t here = at;
      if (is_white_space(next_character(text.text, at))) continue;
      if (!any) begin = here;
      any = true;
      end = at;
    }
    if (!any) begin = text.text.size();
    if (right_) text.text.resize(any ? end : left_ ? text.text.size() : 0);
    if (left_ && begin > 0) {
      text.text.erase(0, std::min(begin, text.text.size()));
      text.keeps_start = false;
    }
  }

 private:
  bool left_, right_;
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  void apply(NormalizedText& text) const override {
    std::string result;
    for (const char byte : text.text) append_utf8(result, character_of_byte(static_cast<uint8_t>(byte)));
    text.text = std::move(result);
  }
};

std::unique_ptr<Normalizer> read_bert(const Fields& fields) {
  BertNormalizerOptions options;
  options.clean_text = fields.boolean("clean_text", true);
  options.handle_chinese_chars = fields.boolean("handle_chinese_chars", true);
  options.lowercase = fields.boolean("lowercase", true);
  options.strip_accents = fields.boolean("strip_accents", options.lowercase);
  return bert_normalizer(options);
}

}  // namespace

Normalizer::~Normalizer() = default;

std::unique_ptr<Normalizer> bert_normalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}

std::unique_ptr<Normalizer> read_normalizer(const nlohmann::json* value, const std::string& where, int depth) {
  if (value == nullptr || value->is_null()) return nullptr;
  const Fields fields(*value, where);
  const std::string& type = fields.string("type");
  if (type == "Sequence")
    return std::make_unique<SequenceNormalizer>(read_steps<Normalizer>(fields, "normalizers", depth, read_normalizer));
  if (type == "BertNormalizer") return read_bert(fields);
  if (type == "NFC") return std::make_unique<UnicodeForm>(NormalizationForm::nfc);
  if (type == "NFD") return std::make_unique<UnicodeForm>(NormalizationForm::nfd);
  if (type == "NFKC") return std::make_unique<UnicodeForm>(NormalizationForm::nfkc);
  if (type == "NFKD") return std::make_unique<UnicodeForm>(NormalizationForm::nfkd);
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<StripAccents>();
  if (type == "Nmt") return std::make_unique<Nmt>();
  if (type == "ByteLevel") return std::make_unique<ByteLevelNormalizer>();
  if (type == "Prepend") return std::make_unique<Prepend>(content_of(fields, "prepend"));
  if (type == "Strip")
    return std::make_unique<StripNormalizer>(fields.boolean("strip_left", true), fields.boolean("strip_right", true));
  if (type == "Replace")
    return std::make_unique<ReplaceNormalizer>(read_pattern(fields, "pattern"), content_of(fields, "content"));
  if (type == "Precompiled")
    return precompiled_normalizer(fields.string("precompiled_charsmap", ""), fields.where("precompiled_charsmap"));
  fields.refuse("type", "a normalizer that is known here");
}

}  // namespace attune::huggingface

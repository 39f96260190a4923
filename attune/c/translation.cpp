// See attune/c.h.

#include <memory>
#include <nlohmann/json.hpp>

#include "attune/base/parallel.h"
#include "attune/c/call.h"
#include "attune/inference/option_fields.h"
#include "attune/inference/translator.h"
#include "attune/text/word_alignment.h"

struct attune_translator {
  attune::Translator translator;
};

struct attune_translations {
  struct Text {
    attune::ScoredText scored;
    std::string alignment;
  };
  std::vector<std::vector<Text>> sentences;
};

namespace attune {
namespace {

using c::element;

const attune_translations::Text* text_at(const attune_translations* translations, size_t sentence, size_t rank) {
  const auto* n_best = element(translations->sentences, sentence);
  return n_best == nullptr ? nullptr : element(*n_best, rank);
}

}  // namespace
}  // namespace attune

using namespace attune;
using namespace attune::c;

attune_status attune_translator_load(const char* folder, attune_translator** translator) {
  return attune_translator_load_with(folder, nullptr, translator);
}
attune_status attune_translator_load_with(const char* folder, const char* options, attune_translator** translator) {
  return guarded([&] {
    const auto [scheduling, adapters] = loading_of(options);
    auto& out = given(translator, "translator");
    out = new attune_translator{Translator::load(&given(folder, "folder"), scheduling, adapters)};
  });
}
void attune_translator_free(attune_translator* translator) {
  delete translator;
}

attune_status attune_translate(const attune_translator* translator, const char* const* sentences, size_t count,
                               const char* options, const attune_interrupt* interrupt,
                               attune_translations** translations) {
  return guarded([&] {
    const Translator& model = given(translator, "translator").translator;
    auto& out = given(translations, "translations");
    TranslateFields fields = translate_fields(model, options_of(options));
    fields.options.interrupt = flag_of(interrupt);
    const ThreadScope threads(fields.decoding.threads);
    auto result = std::make_unique<attune_translations>();
    for (Translation& t : model.translate(texts_of(sentences, count, "sentences"), fields.options)) {
      auto& n_best = result->sentences.emplace_back();
      for (ScoredText& text : t.n_best) {
        std::string alignment = pharaoh(text.alignment);
        n_best.push_back({std::move(text), std::move(alignment)});
      }
    }
    out = result.release();
  });
}

size_t attune_translations_count(const attune_translations* translations) {
  return translations->sentences.size();
}
size_t attune_translations_n_best(const attune_translations* translations, size_t sentence) {
  const auto* n_best = element(translations->sentences, sentence);
  return n_best == nullptr ? 0 : n_best->size();
}
const char* attune_translation_text(const attune_translations* translations, size_t sentence, size_t rank) {
  const auto* text = text_at(translations, sentence, rank);
  return text == nullptr ? nullptr : text->scored.text.c_str();
}
double attune_translation_score(const attune_translations* translations, size_t sentence, size_t rank) {
  const auto* text = text_at(translations, sentence, rank);
  return text == nullptr ? kNone : text->scored.score;
}
int attune_translation_finished(const attune_translations* translations, size_t sentence, size_t rank) {
  const auto* text = text_at(translations, sentence, rank);
  return text != nullptr && text->scored.finished ? 1 : 0;
}
const char* attune_translation_alignment(const attune_translations* translations, size_t sentence, size_t rank) {
  const auto* text = text_at(translations, sentence, rank);
  return text == nullptr ? nullptr : text->alignment.c_str();
}
const int32_t* attune_translation_tokens(const attune_translations* translations, size_t sentence, size_t rank,
                                         size_t* count) {
  const auto* text = text_at(translations, sentence, rank);
  return tokens_of(text == nullptr ? nullptr : &text->scored.tokens, count);
}
void attune_translations_free(attune_translations* translations) {
  delete translations;
}

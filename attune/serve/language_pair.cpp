#include "attune/serve/language_pair.h"
#include "attune/base/cut_text.h"

#include <fmt/format.h>

namespace attune::serve {

TranslateOptions LanguagePair::options() const {
  TranslateOptions options;
  options.adapter = model->adapter();
  options.source_language = source.token;
  options.target_language = target.token;
  options.batch_sentences = model->config().batch;
  return options;
}

std::vector<LanguagePair> language_pairs(const Service& service) {
  service.check_loaded();
  std::vector<LanguagePair> pairs;
  for (const auto& model : service.models().bases())
    for (const ServedLanguage& source : model->source_languages())
      for (const ServedLanguage& target : model->target_languages())
        if (source.code != target.code) pairs.push_back({model, source, target});
  return pairs;
}

LanguagePair find_language_pair(const Service& service, const std::string& source, const std::string& target) {
  bool source_known = false;
  for (LanguagePair& pair : language_pairs(service)) {
    source_known = source_known || pair.source.code == source;
    if (pair.source.code == source && pair.target.code == target) return std::move(pair);
  }
  if (!source_known) refuse_field("source", cut_text(source, 100) + " is not supported");
  refuse_field("target", fmt::format("{} is not supported from {}", cut_text(target, 100), source));
}

LanguagePair requested_pair(Service& service, Call& call, RequestFields& fields) {
  const auto source = fields.text("source"), target = fields.text("target");
  const std::string name = fields.text("model").value_or("");
  if (name.empty() && source && target) {
    LanguagePair pair = find_language_pair(service, *source, *target);
    service.enter(call, pair.model);
    return pair;
  }
  const ServedModel& model = service.enter(call, name, ModelKind::translation);
  LanguagePair pair{.model = call.model};
  const auto language = [&](const char* field, const std::optional<std::string>& code, const auto& known) {
    if (!code) return ServedLanguage{};
    for (const ServedLanguage& l : known)
      if (l.code == *code) return l;
    refuse_field(field, cut_text(*code, 100) + " is not a language of this model");
  };
  pair.source = language("source", source, model.source_languages());
  pair.target = language("target", target, model.target_languages());
  return pair;
}

}  // namespace attune::serve

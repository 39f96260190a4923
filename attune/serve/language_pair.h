#pragma once
// Which model translates what.

#include <memory>
#include <string>
#include <vector>

#include "attune/inference/translator.h"
#include "attune/serve/service.h"

namespace attune::serve {

/// A pair of languages that a model translates; without codes where a request names the model alone.
struct LanguagePair {
  std::shared_ptr<const ServedModel> model;
  ServedLanguage source = {}, target = {};

  /// The model's own options, with these languages.
  TranslateOptions options() const;
};

/// All pairs. Throws HttpError (503) while models are loaded.
std::vector<LanguagePair> language_pairs(const Service& service);
/// The pair with these codes. Throws HttpError: 503 while models are loaded, 400 where there is none.
LanguagePair find_language_pair(const Service& service, const std::string& source, const std::string& target);
/// Reads the fields `model`, or `source` and `target`, and gives the call that model; without these fields, the only
/// one. Throws HttpError.
LanguagePair requested_pair(Service& service, Call& call, RequestFields& fields);

}  // namespace attune::serve

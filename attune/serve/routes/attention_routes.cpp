// Where a model looks while it translates.

#include <algorithm>
#include <cmath>
#include <span>

#include "attune/base/cut_text.h"
#include "attune/base/json_fields.h"
#include "attune/inference/translation_attention.h"
#include "attune/inference/translation_requests.h"
#include "attune/models/transformer.h"
#include "attune/ops/linear/precision.h"
#include "attune/serve/language_pair.h"
#include "attune/serve/routes/routes.h"
#include "attune/tensor/host_view.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {
namespace {

// A source and its translation as one pass reads them, and what is wanted of it.
struct AttentionRequest {
  std::vector<int32_t> source, target;
  std::vector<int32_t> predicted;  // by each row of the target: the token after it
  int64_t layer = 1, layers = 1;   // counted from 1
};

// Tokens that /v1/translate has returned.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, const std::vector<std::string>& tokens) {
  std::vector<int32_t> ids;
  for (const std::string& token : tokens) {
    ids.push_back(tokenizer.token_id(token));
    if (ids.back() < 0) refuse_field("translation", "\"" + cut_text(token, 100) + "\" is no token of the model");
  }
  return ids;
}

AttentionRequest read_attention(Service& service, const LanguagePair& pair, RequestFields& fields) {
  if (!pair.model->adapter().empty())
    refuse_field("model", "\"" + pair.model->name() + "\" is an adapter of \"" + pair.model->base() +
                              "\"; attention is shown of models without one");
  const Translator& translator = *pair.model->translator();
  const TranslationRequests requests(translator, pair.options());
  AttentionRequest request;
  request.layers = static_cast<int64_t>(translator.model().decoder().layers().size());
  request.layer = fields.integer("layer", 1, request.layers).value_or(request.layers);
  const std::string text = fields.required_text("text");
  service.check_text_bytes("text", text);
  const bool tokens = fields.is_list("translation");
  const std::vector<std::string> given = fields.texts("translation", service.config().limits.attention_tokens);
  if (given.empty() && !tokens) refuse_field("translation", "is missing");
  for (const std::string& one : given) service.check_text_bytes("translation", one);
  fields.finish();
  request.source = requests.encode(text, "text");
  if (request.source.empty()) refuse_field("text", "has no tokens");
  request.target = tokens ? requests.decoder_input(ids_of(translator.target_tokenizer(), given))
                          : requests.decoder_input(given.front(), "translation");
  const int64_t most = service.config().limits.attention_tokens;
  check_tokens("text", std::ssize(request.source), most);
  check_tokens("translation", std::ssize(request.target), most);
  request.predicted.assign(request.target.begin() + 1, request.target.end());
  request.predicted.push_back(requests.end_token());
  return request;
}

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n";  // as words_of_tokens() counts
  std::vector<std::string> words;
  for (size_t at = text.find_first_not_of(kSpaces); at != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = text.find_first_not_of(kSpaces, end);
  }
  return words;
}

// Tokens with the words that they belong to; special tokens are in no word.
Json tokens_json(const Tokenizer& tokenizer, std::span<const int32_t> ids) {
  Json tokens = Json::array();
  for (const int32_t id : ids) tokens.push_back(tokenizer.piece(id));
  return {{"tokens", std::move(tokens)},
          {"words", words_of(tokenizer.decode(ids))},
          {"word_of_token", words_of_tokens(tokenizer, ids)}};
}

// weights [1, heads, queries, keys] as lists, with five digits.
Json heads_json(const Tensor& weights) {
  constexpr double kDigits = 1e5;
  const int64_t heads = weights.size(1), queries = weights.size(2), keys = weights.size(3);
  const HostView view(weights);
  auto values = view.as<float>().begin();
  Json all = Json::array();
  for (int64_t head = 0; head < heads; ++head) {
    Json rows = Json::array();
    for (int64_t query = 0; query < queries; ++query) {
      Json row = Json::array();
      for (int64_t key = 0; key < keys; ++key) row.push_back(std::round(kDigits * *values++) / kDigits);
      rows.push_back(std::move(row));
    }
    all.push_back(std::move(rows));
  }
  return all;
}

Json attention_json(const ServedModel& model, const AttentionRequest& request) {
  const Translator& translator = *model.translator();
  const ProductPrecisionScope precision(resolved(model.config().precision));  // as in the search
  const TranslationAttention found = translation_attention(translator.model(), request.source, request.target);
  return {{"model", model.name()},
          {"layer", request.layer},
          {"layers", request.layers},
          {"source", tokens_json(translator.source_tokenizer(), request.source)},
          {"target", tokens_json(translator.target_tokenizer(), request.predicted)},
          {"heads", heads_json(found.cross[static_cast<size_t>(request.layer - 1)])}};
}

}  // namespace

void answer_attention(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const LanguagePair pair = requested_pair(service, *call, fields);
  service.set_deadline(*call, fields.number("timeout", 0.001, 1e9));
  const AttentionRequest request = read_attention(service, pair, fields);
  call->count_tokens(static_cast<int64_t>(request.source.size() + request.target.size()), 0);
  service.run_aside(call, [call, request] { call->respond(attention_json(*call->model, request)); });
}

}  // namespace attune::serve

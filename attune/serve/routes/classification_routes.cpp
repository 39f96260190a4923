// Labels of texts and pairs of texts, and texts in the order in which they fit a query: the API of
// text-embeddings-inference.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <variant>

#include "attune/base/json_fields.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/routes/encoding_answer.h"
#include "attune/serve/routes/routes.h"

namespace attune::serve {
namespace {

using TextOrPair = std::variant<std::string, TextPair>;

constexpr const char* kInputs = "a text, a pair [text, text], or a list of such lists [[text], [text, text], ...]";

std::string text_of(const Service& service, const char* field, const Json& json) {
  if (!json.is_string()) refuse_field(field, std::string("needs ") + kInputs);
  auto text = json.get<std::string>();
  service.check_text_bytes(field, text);
  return text;
}

// ["text"] or ["first", "second"].
TextOrPair text_or_pair(const Service& service, const char* field, const Json& list) {
  if (!list.is_array() || list.empty() || list.size() > 2) refuse_field(field, std::string("needs ") + kInputs);
  std::string first = text_of(service, field, list[0]);
  if (list.size() == 1) return first;
  return TextPair{std::move(first), text_of(service, field, list[1])};
}

struct PredictInputs {
  std::vector<TextOrPair> texts;
  bool list = false;  // whether the answer is one for each
};

PredictInputs predict_inputs(const Service& service, RequestFields& fields, const char* field) {
  const Json& json = fields.value(field);
  if (json.is_string()) return {{text_of(service, field, json)}};
  if (!json.is_array() || json.empty()) refuse_field(field, std::string("needs ") + kInputs);
  if (json[0].is_string()) return {{text_or_pair(service, field, json)}};
  if (const int64_t most = service.config().limits.texts; json.size() > static_cast<size_t>(most))
    refuse_field(field, fmt::format("has {} texts, at most {} are accepted", json.size(), most));
  PredictInputs inputs{{}, true};
  for (const Json& one : json) inputs.texts.push_back(text_or_pair(service, field, one));
  return inputs;
}

// Labels of a text, those with the highest scores first.
Json labels_json(const std::vector<std::string>& labels, const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  Json json = Json::array();
  for (const size_t i : order) json.push_back({{"label", labels[i]}, {"score", scores[i]}});
  return json;
}

// The query is read once for each text: all of these together may have as many bytes as a body.
void check_query_bytes(const Service& service, const std::string& query, size_t texts) {
  service.check_text_bytes("query", query);
  const auto most = static_cast<size_t>(service.config().http.body_bytes);
  if (query.size() > most / texts)
    throw HttpError(413,
                    fmt::format("query: has {} bytes for each of {} texts, at most {} together are accepted",
                                query.size(), texts, most),
                    "query");
}

struct Ranked {
  size_t index;  // among the texts of the request
  double score;
};

// Highest score first. The logit of a text is that of the model's only label.
std::vector<Ranked> ranked(const std::vector<std::vector<float>>& logits, bool raw_scores) {
  std::vector<Ranked> ranks;
  for (const std::vector<float>& of_text : logits) {
    const double logit = of_text.at(0);
    ranks.push_back({ranks.size(), raw_scores ? logit : 1 / (1 + std::exp(-logit))});
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
  return ranks;
}

}  // namespace

void answer_predict(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const ServedModel& model = service.enter(*call, fields.text("model").value_or(""), ModelKind::classifier);
  const Classifier& classifier = *model.classifier();
  const PredictInputs inputs = predict_inputs(service, fields, "inputs");
  const bool raw_scores = fields.flag("raw_scores").value_or(false);
  const bool truncate = read_last_fields(service, *call, fields);
  std::vector<Encoding> encoded;
  for (const TextOrPair& text : inputs.texts)
    encoded.push_back(std::visit([&](const auto& t) { return classifier.encode(t); }, text));
  if (!truncate) check_not_cut("inputs", encoded);
  const auto on_done = [call, list = inputs.list, raw_scores](std::vector<std::vector<float>>&& logits) {
    const Classifier& by = *call->model->classifier();
    Json answer = Json::array();
    for (const std::vector<float>& of_text : logits) {
      const std::vector<double> raw(of_text.begin(), of_text.end());
      answer.push_back(labels_json(by.labels(), raw_scores ? raw : by.probabilities(of_text)));
    }
    call->respond(list ? answer : answer.front());
  };
  encode_texts(service, call, "inputs", std::move(encoded), on_done);
}

void answer_rerank(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const ServedModel& model = service.enter(*call, fields.text("model").value_or(""), ModelKind::classifier);
  const Classifier& classifier = *model.classifier();
  if (const size_t labels = classifier.labels().size(); labels != 1)
    refuse_field("model", fmt::format("{} has {} labels, ranking needs a classifier of one", model.name(), labels));
  const std::string query = fields.required_text("query");
  if (!fields.is_list("texts")) refuse_field("texts", "needs a list of strings");
  const std::vector<std::string> texts = texts_of_field(service, fields, "texts");
  check_query_bytes(service, query, texts.size());
  const bool raw_scores = fields.flag("raw_scores").value_or(false);
  const bool return_text = fields.flag("return_text").value_or(false);
  const bool truncate = read_last_fields(service, *call, fields);
  std::vector<Encoding> encoded;
  for (const std::string& text : texts) encoded.push_back(classifier.encode(TextPair{query, text}));
  if (!truncate) check_not_cut("texts", encoded);
  const auto on_done = [call, raw_scores, kept = return_text ? texts : std::vector<std::string>()](
                           std::vector<std::vector<float>>&& logits) {
    Json answer = Json::array();
    for (const auto& [index, score] : ranked(logits, raw_scores)) {
      Json& rank = answer.emplace_back(Json{{"index", index}, {"score", score}});
      if (!kept.empty()) rank["text"] = kept[index];
    }
    call->respond(answer);
  };
  encode_texts(service, call, "texts", std::move(encoded), on_done);
}

}  // namespace attune::serve

// Embeddings: OpenAI's API and that of text-embeddings-inference; tokens likewise.

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "attune/base/json_fields.h"
#include "attune/base/version.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/routes/encoding_answer.h"
#include "attune/serve/routes/routes.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {
namespace {

std::string base64(const void* data, size_t bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* from = static_cast<const unsigned char*>(data);
  std::string text;
  for (size_t i = 0; i < bytes; i += 3) {
    const size_t left = std::min<size_t>(3, bytes - i);
    const uint32_t group = static_cast<uint32_t>(from[i]) << 16 |
                           (left > 1 ? static_cast<uint32_t>(from[i + 1]) << 8 : 0U) |
                           (left > 2 ? static_cast<uint32_t>(from[i + 2]) : 0U);
    for (size_t d = 0; d < 4; ++d) text += d <= left ? kDigits[group >> (18 - 6 * d) & 63] : '=';
  }
  return text;
}

// Little-endian float32, as the machines are that Attune runs on.
std::string base64_of(const std::vector<float>& vector) {
  return base64(vector.data(), vector.size() * sizeof(float));
}

// Numbers with the digits that give the same float32 again.
Json numbers_json(const std::vector<float>& vector) {
  Json numbers = Json::array();
  for (const float v : vector) {
    const std::string shortest = fmt::format("{}", v);
    numbers.push_back(std::strtod(shortest.c_str(), nullptr));
  }
  return numbers;
}

std::vector<Encoding> encode_for(const Embedder& embedder, const std::vector<std::string>& texts) {
  std::vector<Encoding> encoded;
  for (const std::string& text : texts) encoded.push_back(embedder.encode(text));
  return encoded;
}

std::string text_of_ids(const Tokenizer& tokenizer, const Json& list) {
  std::vector<int32_t> ids;
  for (const Json& id : list) {
    if (!id.is_number_integer() || id < 0 || id >= tokenizer.vocab_size())
      refuse_field("input", fmt::format("needs token ids from 0 to {}", tokenizer.vocab_size() - 1));
    ids.push_back(id.get<int32_t>());
  }
  if (ids.empty()) refuse_field("input", "has a text without tokens");
  return tokenizer.decode(ids);
}

// The field `input`: one text or a list, each a string or the ids of its tokens, with special tokens or without. Ids
// are read as the text that they are, so that the model gets the special tokens that it expects around it.
std::vector<std::string> texts_to_embed(const Service& service, RequestFields& fields, const Tokenizer& tokenizer) {
  const Json& input = fields.value("input");
  if (!input.is_array() || input.empty() || input[0].is_string()) return texts_of_field(service, fields, "input");
  const Json list = input[0].is_array() ? input : Json::array({input});
  if (const int64_t most = service.config().limits.texts; list.size() > static_cast<size_t>(most))
    refuse_field("input", fmt::format("has {} texts, at most {} are accepted", list.size(), most));
  std::vector<std::string> texts;
  for (const Json& ids : list) {
    if (!ids.is_array()) refuse_field("input", "needs texts or token ids");
    check_tokens("input", std::ssize(ids), service.config().limits.tokens);
    texts.push_back(text_of_ids(tokenizer, ids));
    service.check_text_bytes("input", texts.back());
  }
  return texts;
}

const Tokenizer& tokenizer_of(const ServedModel& model) {
  if (model.translator() != nullptr) return model.translator()->source_tokenizer();
  if (model.generator() != nullptr) return model.generator()->tokenizer();
  if (model.classifier() != nullptr) return model.classifier()->tokenizer();
  return model.embedder()->tokenizer();
}

// The model of this name, of any kind; without a name the only model.
std::shared_ptr<ServedModel> any_model(const Service& service, const std::string& name) {
  if (!name.empty()) return service.models().find(name);
  service.check_loaded();
  const auto models = service.models().bases();
  if (models.size() != 1) refuse_field("model", "is missing, and there are several");
  return models.front();
}

Json codes_of(const std::vector<ServedLanguage>& languages) {
  Json codes = Json::array();
  for (const ServedLanguage& l : languages) codes.push_back(l.code);
  return codes;
}

}  // namespace

void answer_openai_embeddings(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const ServedModel& model = service.enter(*call, fields.text("model").value_or(""), ModelKind::embedder);
  const Embedder& embedder = *model.embedder();
  const std::vector<std::string> texts = texts_to_embed(service, fields, embedder.tokenizer());
  const std::string format = fields.text("encoding_format").value_or("float");
  if (format != "float" && format != "base64") refuse_field("encoding_format", "needs float or base64");
  const auto dimensions = fields.integer("dimensions", 1, embedder.dimension());
  service.set_deadline(*call, fields.number("timeout", 0.001, 1e9));
  fields.ignore({"user"});
  fields.finish();
  std::vector<Encoding> encoded = encode_for(embedder, texts);
  const int64_t tokens = count_tokens(encoded);
  const auto on_done = [call, format, dimensions, tokens](std::vector<std::vector<float>>&& vectors) {
    Json data = Json::array();
    for (size_t i = 0; i < vectors.size(); ++i) {
      // The first numbers, for models that were trained for it (Kusupati et al. 2022), again with length 1.
      if (dimensions) vectors[i].resize(static_cast<size_t>(*dimensions));
      normalize(vectors[i]);
      Json embedding = format == "base64" ? Json(base64_of(vectors[i])) : numbers_json(vectors[i]);
      data.push_back({{"object", "embedding"}, {"index", i}, {"embedding", std::move(embedding)}});
    }
    call->respond(Json{{"object", "list"},
                       {"data", std::move(data)},
                       {"model", call->model->name()},
                       {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}});
  };
  encode_texts(service, call, "input", std::move(encoded), on_done);
}

void answer_embed(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  const ServedModel& model = service.enter(*call, fields.text("model").value_or(""), ModelKind::embedder);
  const std::vector<std::string> texts = texts_of_field(service, fields, "inputs");
  const bool normal = fields.flag("normalize").value_or(true);
  const bool truncate = read_last_fields(service, *call, fields);
  std::vector<Encoding> encoded = encode_for(*model.embedder(), texts);
  if (!truncate) check_not_cut("inputs", encoded);
  const auto on_done = [call, normal](std::vector<std::vector<float>>&& vectors) {
    Json answer = Json::array();
    for (std::vector<float>& vector : vectors) {
      if (normal) normalize(vector);
      answer.push_back(numbers_json(vector));
    }
    call->respond(answer);
  };
  encode_texts(service, call, "inputs", std::move(encoded), on_done);
}

void answer_tokenize(Service& service, const std::shared_ptr<Call>& call) {
  RequestFields fields(call->request());
  service.enter(*call, any_model(service, fields.text("model").value_or("")));
  const std::vector<std::string> texts = texts_of_field(service, fields, "inputs");
  const bool special = fields.flag("add_special_tokens").value_or(true);
  fields.finish();
  const Tokenizer& tokenizer = tokenizer_of(*call->model);
  Json answer = Json::array();
  int64_t in_all = 0;
  for (const std::string& text : texts) {
    Json tokens = Json::array();
    const std::vector<int32_t> ids = tokenizer.encode_for_model(text, {.special_tokens = special}).ids;
    in_all += std::ssize(ids);
    check_tokens("inputs", in_all, service.config().limits.tokens);
    for (const int32_t id : ids)
      tokens.push_back({{"id", id}, {"text", tokenizer.piece(id)}, {"special", tokenizer.is_special_token(id)}});
    answer.push_back(std::move(tokens));
  }
  call->respond(answer);
}

void answer_info(Service& service, const std::shared_ptr<Call>& call) {
  service.check_loaded();
  const RequestLimits& limits = service.config().limits;
  Json models = Json::array();
  for (const auto& model : service.models().all()) {
    Json json = {{"model_id", model->name()}};
    if (model->embedder() != nullptr) {
      json["model_type"] = {{"embedding", {{"dimension", model->embedder()->dimension()}}}};
    } else if (model->classifier() != nullptr) {
      const std::vector<std::string>& labels = model->classifier()->labels();
      json["model_type"] = {{labels.size() == 1 ? "reranker" : "classifier", {{"labels", labels}}}};
      json["max_input_length"] = model->classifier()->max_tokens();
    } else {
      json["model_type"] = model->translator() != nullptr ? "translation" : "language_model";
    }
    if (model->translator() != nullptr) {
      json["source_languages"] = codes_of(model->source_languages());
      json["target_languages"] = codes_of(model->target_languages());
    }
    if (model->generator() != nullptr) json["chat"] = model->chat_template() != nullptr;
    models.push_back(std::move(json));
  }
  Json info = {{"version", version()},
               {"max_concurrent_requests", limits.requests},
               {"max_client_batch_size", limits.texts},
               {"max_batch_tokens", limits.tokens}};
  if (models.size() == 1) info.update(models.front());  // as text-embeddings-inference, which has one model
  info["models"] = std::move(models);
  call->respond(info);
}

}  // namespace attune::serve

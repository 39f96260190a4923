#pragma once
// What the service answers, by method and path.

#include <span>
#include <string_view>

#include "attune/serve/service.h"

namespace attune::serve {

/// Who may ask.
enum class Access {
  open,      // everybody
  key,       // who has a key, in Authorization: Bearer KEY, or X-Api-Key
  body_key,  // likewise, or in the field api_key: the handler checks it
  admin      // who has a key with `admin`
};

using CallHandler = void (*)(Service& service, const std::shared_ptr<Call>& call);

struct Route {
  std::string_view method, path;  // a path may end with {id}, which stands for one or more characters
  ErrorForm errors;
  Access access;
  CallHandler handle;
};

std::span<const Route> routes();

/// Whether a request's path is that of a route.
bool is_path_of(const Route& route, std::string_view path);

/// The key of Authorization: Bearer KEY, else of X-Api-Key; "" where there is none.
std::string_view key_of_headers(const HttpRequest& request);

// operation_routes.cpp
void answer_health(Service& service, const std::shared_ptr<Call>& call);
void answer_ready(Service& service, const std::shared_ptr<Call>& call);
void answer_metrics(Service& service, const std::shared_ptr<Call>& call);
void answer_reload(Service& service, const std::shared_ptr<Call>& call);
void answer_openapi(Service& service, const std::shared_ptr<Call>& call);
void answer_models(Service& service, const std::shared_ptr<Call>& call);
void answer_model(Service& service, const std::shared_ptr<Call>& call);

// completion_routes.cpp
void answer_completions(Service& service, const std::shared_ptr<Call>& call);
void answer_chat_completions(Service& service, const std::shared_ptr<Call>& call);

// page_routes.cpp
void answer_page(Service& service, const std::shared_ptr<Call>& call);

// attention_routes.cpp
void answer_attention(Service& service, const std::shared_ptr<Call>& call);

// translation_routes.cpp
void answer_translate(Service& service, const std::shared_ptr<Call>& call);
void answer_languages(Service& service, const std::shared_ptr<Call>& call);
void answer_detect(Service& service, const std::shared_ptr<Call>& call);
void answer_frontend_settings(Service& service, const std::shared_ptr<Call>& call);
void answer_own_translate(Service& service, const std::shared_ptr<Call>& call);

// embedding_routes.cpp
void answer_openai_embeddings(Service& service, const std::shared_ptr<Call>& call);
void answer_embed(Service& service, const std::shared_ptr<Call>& call);
void answer_tokenize(Service& service, const std::shared_ptr<Call>& call);
void answer_info(Service& service, const std::shared_ptr<Call>& call);

// classification_routes.cpp
void answer_predict(Service& service, const std::shared_ptr<Call>& call);
void answer_rerank(Service& service, const std::shared_ptr<Call>& call);

}  // namespace attune::serve

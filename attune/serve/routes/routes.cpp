#include "attune/serve/routes/routes.h"

#include <algorithm>
#include <cctype>

namespace attune::serve {

std::span<const Route> routes() {
  static constexpr Route kRoutes[] = {
      {"GET", "/", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/page.css", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/icon.svg", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/page.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/common.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/translate.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/write.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/classify.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/page/server.js", ErrorForm::openai, Access::open, answer_page},
      {"GET", "/health", ErrorForm::libretranslate, Access::open, answer_health},
      {"GET", "/ready", ErrorForm::libretranslate, Access::open, answer_ready},
      {"GET", "/metrics", ErrorForm::openai, Access::open, answer_metrics},
      {"POST", "/admin/reload", ErrorForm::openai, Access::admin, answer_reload},
      {"GET", "/openapi.json", ErrorForm::openai, Access::open, answer_openapi},
      {"GET", "/v1/models", ErrorForm::openai, Access::key, answer_models},
      {"GET", "/v1/models/{id}", ErrorForm::openai, Access::key, answer_model},
      {"POST", "/translate", ErrorForm::libretranslate, Access::body_key, answer_translate},
      {"POST", "/detect", ErrorForm::libretranslate, Access::body_key, answer_detect},
      {"GET", "/languages", ErrorForm::libretranslate, Access::open, answer_languages},
      {"GET", "/frontend/settings", ErrorForm::libretranslate, Access::open, answer_frontend_settings},
      {"POST", "/v1/translate", ErrorForm::openai, Access::key, answer_own_translate},
      {"POST", "/v1/attention", ErrorForm::openai, Access::key, answer_attention},
      {"POST", "/v1/completions", ErrorForm::openai, Access::key, answer_completions},
      {"POST", "/v1/chat/completions", ErrorForm::openai, Access::key, answer_chat_completions},
      {"POST", "/v1/embeddings", ErrorForm::openai, Access::key, answer_openai_embeddings},
      {"POST", "/embed", ErrorForm::text_embeddings, Access::key, answer_embed},
      {"POST", "/predict", ErrorForm::text_embeddings, Access::key, answer_predict},
      {"POST", "/rerank", ErrorForm::text_embeddings, Access::key, answer_rerank},
      {"POST", "/tokenize", ErrorForm::text_embeddings, Access::key, answer_tokenize},
      {"GET", "/info", ErrorForm::text_embeddings, Access::key, answer_info},
  };
  return kRoutes;
}

bool is_path_of(const Route& route, std::string_view path) {
  constexpr std::string_view kId = "{id}";
  if (!route.path.ends_with(kId)) return route.path == path;
  const std::string_view before = route.path.substr(0, route.path.size() - kId.size());
  return path.size() > before.size() && path.starts_with(before);
}

std::string_view key_of_headers(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";  // of either case: RFC 9110, section 11.1
  const std::string_view authorization = request.header("authorization");
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (std::ranges::equal(authorization.substr(0, kBearer.size()), kBearer, same))
    return authorization.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace attune::serve

#include "attune/serve/routes/routes.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "attune/base/ascii.h"
#include "attune/serve/page_files.h"

namespace attune::serve {
namespace {

// All but those of the page's files.
constexpr Route kRoutes[] = {
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

std::vector<Route> all_routes() {
  std::vector<Route> all(std::begin(kRoutes), std::end(kRoutes));
  for (const PageFile& file : page_files())
    all.push_back({"GET", file.path, ErrorForm::openai, Access::open, answer_page});
  return all;
}

}  // namespace

std::span<const Route> routes() {
  static const std::vector<Route> all = all_routes();
  return all;
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
  if (std::ranges::equal(authorization.substr(0, kBearer.size()), kBearer, {}, ascii_lower))
    return authorization.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace attune::serve

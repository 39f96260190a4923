// The page in the browser: files that are a part of the binary.

#include <string_view>

#include "attune/serve/routes.h"

namespace attune::serve {

// What is in attune/serve/page.
std::string_view index_html();
std::string_view page_css();
std::string_view icon_svg();
std::string_view page_js();
std::string_view common_js();
std::string_view translate_js();
std::string_view write_js();
std::string_view classify_js();
std::string_view server_js();

namespace {

struct PageFile {
  std::string_view path;
  std::string_view (*content)();
  const char* type;
};

constexpr const char* kScript = "text/javascript; charset=utf-8";
constexpr PageFile kFiles[] = {
    {"/", index_html, "text/html; charset=utf-8"}, {"/page/page.css", page_css, "text/css; charset=utf-8"},
    {"/page/icon.svg", icon_svg, "image/svg+xml"}, {"/page/page.js", page_js, kScript},
    {"/page/common.js", common_js, kScript},       {"/page/translate.js", translate_js, kScript},
    {"/page/write.js", write_js, kScript},         {"/page/classify.js", classify_js, kScript},
    {"/page/server.js", server_js, kScript},
};

// Nothing is loaded from elsewhere, and no text that a model has written can become a script.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace

void answer_page(Service&, const std::shared_ptr<Call>& call) {
  for (const PageFile& file : kFiles)
    if (file.path == call->request().path)
      return call->respond(HttpResponse{.body = std::string(file.content()),
                                        .content_type = file.type,
                                        .headers = {{"Content-Security-Policy", kPolicy},
                                                    {"Referrer-Policy", "no-referrer"},
                                                    {"Cache-Control", "no-cache"}}});
}

}  // namespace attune::serve

#include "attune/serve/page_files.h"
#include "attune/serve/routes/routes.h"

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

// Nothing is loaded from elsewhere, and no text that a model has written can become a script.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace

std::span<const PageFile> page_files() {
  static constexpr PageFile kFiles[] = {{"/", "text/html", index_html},
                                        {"/page/page.css", "text/css", page_css},
                                        {"/page/icon.svg", "image/svg+xml", icon_svg},
                                        {"/page/page.js", "text/javascript", page_js},
                                        {"/page/common.js", "text/javascript", common_js},
                                        {"/page/translate.js", "text/javascript", translate_js},
                                        {"/page/write.js", "text/javascript", write_js},
                                        {"/page/classify.js", "text/javascript", classify_js},
                                        {"/page/server.js", "text/javascript", server_js}};
  return kFiles;
}

void answer_page(Service&, const std::shared_ptr<Call>& call) {
  for (const PageFile& file : page_files())
    if (call->request().path == file.path)
      return call->respond(HttpResponse{.body = std::string(file.content()),
                                        .content_type = std::string(file.type) + "; charset=utf-8",
                                        .headers = {{"Content-Security-Policy", kPolicy},
                                                    {"Referrer-Policy", "no-referrer"},
                                                    {"Cache-Control", "no-cache"}}});
}

}  // namespace attune::serve

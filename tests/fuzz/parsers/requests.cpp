// Requests to small models of every kind: the first byte is the route, the second how the body is written. Every
// request is answered, and what a client sends is never an error of the server.

#include <semaphore>

#include "attune/base/file.h"
#include "attune/serve/routes/routes.h"
#include "attune/serve/service.h"
#include "tests/fuzz/parsers/fuzz_input.h"
#include "tests/support/small_model.h"

namespace attune::serve {
namespace {

std::unique_ptr<Service> make_service() {
  ServeConfig config;
  config.limits = {.texts = 4, .text_bytes = 256, .tokens = 64, .max_tokens = 2, .samples = 2, .beam_size = 3};
  for (const char* name : {"en-de", "lm", "topics", "embed"})
    config.models[name] = {.folder = (fuzz::folder() / name).string(), .threads = 1};
  write_small_model(fuzz::folder() / "en-de");
  write_small_language_model(fuzz::folder() / "lm");
  write_file(fuzz::folder() / "lm" / "chat_template.jinja",
             "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
  write_small_classifier(fuzz::folder() / "topics");
  write_small_embedder(fuzz::folder() / "embed");
  auto service = std::make_unique<Service>(config, nullptr);
  service->load();
  return service;
}

std::vector<std::string> paths_with_bodies() {
  std::vector<std::string> paths;
  for (const Route& route : routes())
    if (route.method == "POST" && route.access != Access::admin) paths.emplace_back(route.path);
  return paths;
}

int status_of(Service& service, const HttpRequest& request) {
  std::binary_semaphore woken(0);
  const auto exchange = std::make_shared<Exchange>(request, [&] { woken.release(); });
  service.handle(exchange);
  int status = 0;
  for (bool ended = false; !ended;) {
    woken.acquire();
    const Exchange::Outgoing out = exchange->take();
    if (out.head) status = out.head->status;
    ended = out.ended;
  }
  return status;
}

}  // namespace
}  // namespace attune::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  if (size < 2) return 0;
  static const std::unique_ptr<serve::Service> service = serve::make_service();
  static const std::vector<std::string> paths = serve::paths_with_bodies();
  const char* types[] = {"application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"};
  const int status =
      serve::status_of(*service, {.method = "POST",
                                  .path = paths[data[0] % paths.size()],
                                  .headers = {{"content-type", types[data[1] % 3]}, {"x-timeout", "0.5"}},
                                  .body = std::string(fuzz::text_of(data + 2, size - 2)),
                                  .client = "127.0.0.1"});
  fuzz::require(status >= 200 && status != 500);
  return 0;
}

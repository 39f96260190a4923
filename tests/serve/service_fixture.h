#pragma once
// A service without sockets, and requests to it.

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/serve/service.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wait.h"

namespace attune::serve {

/// An answer as a client has it: streamed pieces put together.
struct Answer {
  int status = 0;
  HeaderFields headers = {};
  std::string body = {};

  Json json() const { return Json::parse(body); }
  std::string header(const std::string& name) const {
    for (const auto& [key, value] : headers)
      if (key == name) return value;
    return "";
  }
  /// The events of a stream: what stands behind "data: ".
  std::vector<std::string> events() const {
    std::vector<std::string> found;
    for (size_t at = 0; at < body.size();) {
      const size_t end = body.find("\n\n", at);
      found.push_back(body.substr(at + 6, end - at - 6));
      at = end + 2;
    }
    return found;
  }
};

inline Answer wait_for_answer(Exchange& exchange) {
  Answer answer;
  const auto take = [&] {
    Exchange::Outgoing out = exchange.take();
    if (out.head) {
      answer.status = out.head->status;
      answer.headers = out.head->headers;
      answer.body += out.head->body;
    }
    answer.body += out.piece;
    return out.ended;
  };
  becomes(take, 120);
  return answer;
}

inline HttpRequest post_request(const std::string& path, const std::string& body,
                                const std::string& type = "application/json") {
  return {.method = "POST", .path = path, .headers = {{"content-type", type}}, .body = body, .client = "127.0.0.1"};
}

/// Small models, loaded: "en-de" translates, "lm" continues, "topics" classifies.
class TestService {
 public:
  explicit TestService(ServeConfig config = {}, bool load = true) {
    write_small_model(folder_ / "en-de");
    write_small_language_model(folder_ / "lm");
    write_small_classifier(folder_ / "topics");
    for (const char* name : {"en-de", "lm", "topics"}) config.models[name].folder = (folder_ / name).string();
    service = std::make_unique<Service>(config, [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    });
    if (load) service->load();
  }

  std::shared_ptr<Exchange> send(HttpRequest request) {
    auto exchange = std::make_shared<Exchange>(std::move(request));
    service->handle(exchange);
    return exchange;
  }
  Answer ask(HttpRequest request) { return wait_for_answer(*send(std::move(request))); }
  Answer post(const std::string& path, const Json& body) { return ask(post_request(path, body.dump())); }
  Answer get(const std::string& path) { return ask({.method = "GET", .path = path}); }
  /// Until every request is recorded.
  void wait_until_idle() const {
    becomes([&] { return service->open_calls() == 0; }, 60);
  }
  std::filesystem::path folder(const std::string& name) const { return folder_ / name; }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  TemporaryFolder folder_;
  std::mutex mutex_;
  std::vector<std::string> log_;

 public:
  std::unique_ptr<Service> service;  // goes first
};

}  // namespace attune::serve

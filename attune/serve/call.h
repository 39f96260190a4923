#pragma once
// One request on its way through the service.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "attune/base/json.h"
#include "attune/serve/api_keys.h"
#include "attune/serve/http/exchange.h"
#include "attune/serve/service_metrics.h"

namespace attune::serve {

class HttpError;
class ServedModel;

/// How an interface writes its errors.
enum class ErrorForm {
  openai,          // {"error": {"message", "type", "param", "code"}}
  libretranslate,  // {"error": "message"}
  text_embeddings  // {"error": "message", "error_type"}; a wrong request gets 422 in place of 400
};

/// What became of a call, for the log and for metrics.
struct CallRecord {
  std::string id, client, key, method, path, model;
  int status = 0;
  bool cancelled = false;  // the client had gone
  double seconds = 0;
  int64_t tokens_in = 0, tokens_out = 0;
  std::string error = {};  // of a status from 500: the message in full; else the code or the field at fault
};

/// A request with what is known about its client, and the answer to it. Whoever works on the answer shares the call;
/// when the last one lets go of it, it is recorded. Thread-safe where it says so.
class Call {
 public:
  using Clock = std::chrono::steady_clock;
  using Recorder = std::function<void(const CallRecord&)>;

  Call(std::shared_ptr<Exchange> exchange, Recorder recorder);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  /// Answers 503 where nobody has answered.
  ~Call();

  const HttpRequest& request() const { return exchange_->request(); }
  const std::string& id() const { return record_.id; }
  Clock::time_point arrival() const { return arrival_; }

  // Set before the work is shared.
  ErrorForm error_form = ErrorForm::openai;
  Client client = {};
  HeaderFields headers = {};                      // added to every answer
  std::shared_ptr<const ServedModel> model = {};  // the one that works on it
  std::shared_ptr<void> place =
      {};  // its place among the model's requests, see Admission; given back before the answer is sent
  std::optional<Clock::time_point> deadline = {};
  void set_model(const std::string& name) { record_.model = name; }

  /// True once nobody waits for more of the answer: the client has gone, or the call has failed.
  std::shared_ptr<const std::atomic<bool>> unwanted() const { return exchange_->unwanted(); }

  // The answer. These are thread-safe.
  void respond(HttpResponse response);
  void respond(const Json& json);
  /// Answers with an error in the form of the interface; within a stream, as its last event. Does nothing once the call
  /// is answered. `field`: see as_http_error().
  void fail(const std::exception_ptr& error, const std::string& field = "");
  /// Begins a stream of server-sent events (WHATWG HTML, section 9.2) unless it has begun.
  void begin_events();
  void event(const Json& json);
  /// Ends the stream with "data: [DONE]".
  void end_events();

  void count_tokens(int64_t in, int64_t out) {
    tokens_in_ += in;
    tokens_out_ += out;
  }

 private:
  HttpResponse error_response(const HttpError& error) const;

  const std::shared_ptr<Exchange> exchange_;
  const Recorder recorder_;
  const Clock::time_point arrival_ = Clock::now();
  std::atomic<int64_t> tokens_in_{0}, tokens_out_{0};
  std::mutex mutex_;  // of what follows
  CallRecord record_;
  bool streaming_ = false, answered_ = false;
};

/// Returns the client's X-Request-Id if it has 1 to 128 printable characters, else a new id.
std::string request_id(const HttpRequest& request);

}  // namespace attune::serve

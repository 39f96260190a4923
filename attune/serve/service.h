#pragma once
// Everything of the server but its sockets.

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "attune/serve/call.h"
#include "attune/serve/fair_tasks.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/model_registry.h"
#include "attune/serve/routes/request_fields.h"
#include "attune/serve/serve_config.h"
#include "attune/serve/service_metrics.h"
#include "attune/serve/task_pool.h"

namespace attune::serve {

class Service {
 public:
  /// `log` takes a line of JSON for each request, and for what happens to the server; called from several threads at
  /// once. Throws ConfigError, FileError and DeviceError.
  Service(ServeConfig config, std::function<void(const std::string& line)> log);
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  /// Answers a request. Returns at once: other threads form the answer, but for /health, /ready and /metrics, whose
  /// short answers this thread forms.
  void handle(const std::shared_ptr<Exchange>& exchange);

  /// Returns the answer to a request that cannot be handled (too long, not HTTP, ...): an error in the form of its
  /// path, with an id. Writes it to the log too.
  HttpResponse refuse(const HttpRequest& request, const HttpError& why);

  /// Whether a request has a known key in a header, or needs none.
  bool knows_client(const HttpRequest& head) const;

  /// Loads the models; requests get 503 until then.
  void load();
  /// Loads models whose folders have changed, and says so in the log. After drain() none is loaded any more.
  void reload();
  /// Asks whoever runs the service to call reload(): POST /admin/reload.
  void ask_for_reload() { reload_asked_ = true; }
  /// Whether somebody has asked for it since the last call.
  bool reload_asked() { return reload_asked_.exchange(false); }
  /// Refuses new requests with 503.
  void drain() { draining_ = true; }
  /// Ends the requests that are there with what they have.
  void stop();
  /// The number of requests that are not answered. Those that came after drain() do not count.
  int64_t open_calls() const { return open_calls_; }

  const ServeConfig& config() const { return config_; }
  ModelRegistry& models() { return models_; }
  const ModelRegistry& models() const { return models_; }
  ServiceMetrics& metrics() { return metrics_; }
  bool draining() const { return draining_; }

  // For routes.

  /// Sets the call's client, the one with this key. Throws HttpError (401) for a key that is not known.
  void identify(Call& call, std::string_view key) const { call.client = keys_.find(key); }
  bool keys_are_on() const { return keys_.on(); }
  /// Gives the call a model of this kind and a place in its queue. Without a name it is the only model of this kind.
  /// Throws HttpError: 404 if there is no such model, 400 if it is of another kind or several could be meant, 429, 503.
  const ServedModel& enter(Call& call, const std::string& name, ModelKind kind) const;
  void enter(Call& call, std::shared_ptr<const ServedModel> model) const;
  /// Throws HttpError (503) until all models are loaded.
  void check_loaded() const;
  /// Sets when the request ends: after `timeout` seconds, else after those of the header X-Timeout, and at the latest
  /// after limits.request_seconds. Throws HttpError (400) for a header that is no number above 0.
  void set_deadline(Call& call, std::optional<double> timeout) const;
  /// Runs `work`, which forms the call's answer, on a thread beside those of the models; API keys take turns. An error
  /// that it throws is the answer. It is not run for a client that has gone, nor past the deadline: 504.
  void run_aside(const std::shared_ptr<Call>& call, std::function<void()> work);
  /// Writes a line with a warning about a model to the log.
  void warn(const std::string& model, const std::string& warning) const;
  /// Throws HttpError (413) for a text that is longer than limits.text_bytes.
  void check_text_bytes(const char* field, std::string_view text) const;

 private:
  void record(const CallRecord& record);
  void begin_series();
  bool allows_origin(Call& call) const;

  const ServeConfig config_;
  const std::function<void(const std::string&)> log_;
  const ApiKeys keys_;
  ServiceMetrics metrics_;
  std::atomic<bool> draining_{false}, reload_asked_{false};
  std::atomic<int64_t> open_calls_{0};
  ModelRegistry models_;
  FairTasks aside_;
  TaskPool pool_;  // last: it uses the rest
};

}  // namespace attune::serve

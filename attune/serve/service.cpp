#include "attune/serve/service.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "attune/base/cut_text.h"
#include "attune/base/json_fields.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/origin.h"
#include "attune/serve/routes/routes.h"

namespace attune::serve {
namespace {

ServeConfig validated(ServeConfig config) {
  config.validate();
  return config;
}

const char* name_of(ModelKind kind) {
  switch (kind) {
    case ModelKind::translation:
      return "translation model";
    case ModelKind::language_model:
      return "language model";
    case ModelKind::classifier:
      return "classifier";
    case ModelKind::embedder:
      return "model of embeddings";
  }
  return "";
}

// "2026-01-31T23:59:59.123Z"
std::string now_as_text() {
  using namespace std::chrono;
  const auto now = system_clock::now();
  const std::time_t seconds = system_clock::to_time_t(now);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  const auto milli = duration_cast<milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday,
                     utc.tm_hour, utc.tm_min, utc.tm_sec, milli);
}

// The route of a request. Throws HttpError (404; 405, whose answer names the methods of the path).
const Route& route_of(Call& call) {
  const HttpRequest& request = call.request();
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allowed;
  for (const Route& route : routes()) {
    if (!is_path_of(route, request.path)) continue;
    if (route.method == method) return route;
    allowed += (allowed.empty() ? "" : ", ") + std::string(route.method == "GET" ? "GET, HEAD" : route.method);
  }
  if (!allowed.empty()) {
    call.headers.emplace_back("Allow", allowed);
    throw HttpError(405, request.path + " does not take " + cut_text(request.method, 20));
  }
  throw HttpError(404, "there is nothing at this path", "", "not_found");
}

// Whether a route only reads counters: it then does not wait behind requests whose texts are tokenised.
bool is_answered_inline(const Route& route) {
  return route.handle == answer_health || route.handle == answer_ready || route.handle == answer_metrics;
}

// Throws HttpError (403) for a page of another origin: a browser sends the forms of any page, even if it does not show
// the answer to that page.
void check_origin(const HttpRequest& request) {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || is_own_origin(origin, request.header("host"))) return;
  throw HttpError(403, fmt::format("pages of {} may not ask: cors_origins does not name it", cut_text(origin, 200)), "",
                  "origin");
}

// Throws HttpError (403) for a name that is not this server's.
void check_host(const HttpRequest& request, std::span<const std::string> names) {
  const std::string_view host = request.header("host");
  if (host.empty() || is_own_host(host, names)) return;
  throw HttpError(403,
                  fmt::format("this server is not called {}: security.hosts does not name it", cut_text(host, 200)), "",
                  "host");
}

}  // namespace

Service::Service(ServeConfig config, std::function<void(const std::string&)> log)
    : config_(validated(std::move(config))),
      log_(std::move(log)),
      keys_(config_.security.api_keys.empty() ? ApiKeys() : ApiKeys(config_.security.api_keys)),
      models_(config_),
      pool_(2) {}

Service::~Service() {
  stop();
}

void Service::load() {
  models_.load();
  begin_series();
}

// Prometheus computes rates only of series that are there: they begin with 0, before anything is counted.
void Service::begin_series() {
  for (const auto& model : models_.all()) {
    const std::string label = metric_label("model", model->name());
    for (const char* name : {"attune_requests_refused_total", "attune_requests_cancelled_total",
                             "attune_tokens_in_total", "attune_tokens_out_total"})
      metrics_.count(name, label, 0);
    metrics_.begin_seconds("attune_request_seconds", label);
    if (model->generator() == nullptr) continue;
    metrics_.begin_seconds("attune_time_to_first_token_seconds", label);
    metrics_.begin_seconds("attune_time_per_token_seconds", label);
  }
}

void Service::stop() {
  draining_ = true;
  pool_.stop();
  aside_.stop();
  models_.stop();
}

void Service::record(const CallRecord& r) {
  // Paths that nobody serves are one series: clients could make any number of them.
  const auto served = std::ranges::find_if(routes(), [&](const Route& route) { return is_path_of(route, r.path); });
  const std::string_view path = served == routes().end() ? "other" : served->path;
  const std::string labels = metric_label("path", path) + "," + metric_label("status", std::to_string(r.status));
  metrics_.count("attune_requests_total", labels);
  if (r.cancelled) metrics_.count("attune_requests_cancelled_total", metric_label("model", r.model));
  if (!r.cancelled && (r.status == 429 || r.status == 503))
    metrics_.count("attune_requests_refused_total", metric_label("model", r.model));
  if (!r.model.empty()) {
    const std::string model = metric_label("model", r.model);
    metrics_.observe_seconds("attune_request_seconds", model, r.seconds);
    metrics_.count("attune_tokens_in_total", model, static_cast<double>(r.tokens_in));
    metrics_.count("attune_tokens_out_total", model, static_cast<double>(r.tokens_out));
  }
  Json line = {{"time", now_as_text()},     {"id", r.id},       {"client", r.client},
               {"method", r.method},        {"path", r.path},   {"status", r.status},
               {"seconds", r.seconds},      {"model", r.model}, {"tokens_in", r.tokens_in},
               {"tokens_out", r.tokens_out}};
  if (!r.key.empty()) line["key"] = r.key;
  if (r.cancelled) line["cancelled"] = true;
  if (!r.error.empty()) line["error"] = cut_text(r.error, 500);
  if (log_) log_(show(line));
}

// Whether cors_origins names the origin of the page that asks. The answer then says so, and the page may read it.
bool Service::allows_origin(Call& call) const {
  const std::string_view origin = call.request().header("origin");
  const auto& origins = config_.security.cors_origins;
  if (origin.empty() || origins.empty()) return false;
  const bool all = std::find(origins.begin(), origins.end(), "*") != origins.end();
  if (!all && std::find(origins.begin(), origins.end(), origin) == origins.end()) return false;
  call.headers.emplace_back("Access-Control-Allow-Origin", all ? "*" : std::string(origin));
  call.headers.emplace_back("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
  if (!all) call.headers.emplace_back("Vary", "Origin");
  return true;
}

HttpResponse Service::refuse(const HttpRequest& request, const HttpError& why) {
  const auto exchange = std::make_shared<Exchange>(request);
  Call call(exchange, [this](const CallRecord& r) { record(r); });
  allows_origin(call);  // else the browser hides the answer from a page that may ask
  for (const Route& route : routes())
    if (is_path_of(route, request.path)) call.error_form = route.errors;
  call.fail(std::make_exception_ptr(why));
  return std::move(*exchange->take().head);
}

bool Service::knows_client(const HttpRequest& head) const {
  return keys_.know(key_of_headers(head));
}

void Service::handle(const std::shared_ptr<Exchange>& exchange) {
  const bool late = draining_;  // a server that stops waits for what it has, not for what it refuses
  if (!late) ++open_calls_;
  const auto call = std::make_shared<Call>(exchange, [this, late](const CallRecord& r) {
    record(r);
    if (!late) --open_calls_;
  });
  try {
    if (!keys_are_on()) check_host(call->request(), config_.security.hosts);
    const bool origin_is_named = allows_origin(*call);
    if (origin_is_named && call->request().method == "OPTIONS") {
      HttpResponse preflight{.status = 204};
      std::string allowed(call->request().header("access-control-request-headers"));
      if (allowed.empty()) allowed = "Authorization, Content-Type, X-Api-Key, X-Timeout";
      preflight.headers = {{"Access-Control-Allow-Methods", "GET, POST"},
                           {"Access-Control-Allow-Headers", allowed},
                           {"Access-Control-Max-Age", "600"}};
      return call->respond(std::move(preflight));
    }
    const Route& route = route_of(*call);
    call->error_form = route.errors;
    if (!origin_is_named) check_origin(call->request());
    if (route.access == Access::key || route.access == Access::admin) identify(*call, key_of_headers(call->request()));
    if (route.access == Access::admin && !call->client.admin)
      throw HttpError(403, "this API key may not do that", "", "not_admin");
    if (route.access != Access::open && draining_) throw HttpError(503, "the server is stopping", "", "draining");
    if (draining_ || is_answered_inline(route)) return route.handle(*this, call);  // the pool may have ended
    pool_.add([this, call, handler = route.handle] {
      if (*call->unwanted()) return;
      try {
        handler(*this, call);
      } catch (...) {
        call->fail(std::current_exception());
      }
    });
  } catch (...) {
    call->fail(std::current_exception());
  }
}

void Service::reload() {
  for (const std::string& line : models_.reload(draining_))
    if (log_) log_(show(Json{{"time", now_as_text()}, {"reload", line}}));
}

void Service::warn(const std::string& model, const std::string& warning) const {
  if (log_) log_(show(Json{{"time", now_as_text()}, {"model", model}, {"warning", warning}}));
}

const ServedModel& Service::enter(Call& call, const std::string& name, ModelKind kind) const {
  std::shared_ptr<const ServedModel> model;
  if (!name.empty()) {
    model = models_.find(name);
    if (model->kind() != kind) refuse_field("model", "\"" + name + "\" is no " + name_of(kind));
  } else {
    check_loaded();
    for (const auto& candidate : models_.bases()) {
      if (candidate->kind() != kind) continue;
      if (model != nullptr) refuse_field("model", "is missing, and there are several");
      model = candidate;
    }
    if (model == nullptr)
      throw HttpError(404, fmt::format("no {} is served here", name_of(kind)), "model", "model_not_found");
  }
  const ServedModel& entered = *model;
  enter(call, std::move(model));
  return entered;
}

void Service::enter(Call& call, std::shared_ptr<const ServedModel> model) const {
  call.set_model(model->name());
  call.place = model->admission().enter(call.client);
  call.model = std::move(model);
}

void Service::check_loaded() const {
  if (!models_.ready()) throw HttpError(503, "the models are not loaded yet", "", "loading");
}

void Service::set_deadline(Call& call, std::optional<double> timeout) const {
  double seconds = config_.limits.request_seconds;
  if (const std::string_view header = call.request().header("x-timeout"); !timeout && !header.empty()) {
    double given = 0;
    const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), given);
    if (error != std::errc() || end != header.data() + header.size() || !(given > 0))
      throw HttpError(400, "X-Timeout: needs a number of seconds above 0", "X-Timeout");
    timeout = given;
  }
  if (timeout) seconds = std::min(seconds, *timeout);
  call.deadline =
      call.arrival() + std::chrono::duration_cast<Call::Clock::duration>(std::chrono::duration<double>(seconds));
}

void Service::run_aside(const std::shared_ptr<Call>& call, std::function<void()> work) {
  aside_.add(call->client.name, [call, work = std::move(work)] {
    if (*call->unwanted()) return;
    try {
      if (call->deadline && Call::Clock::now() >= *call->deadline) throw deadline_error();
      work();
    } catch (...) {
      call->fail(std::current_exception());
    }
  });
}

void Service::check_text_bytes(const char* field, std::string_view text) const {
  if (text.size() > static_cast<size_t>(config_.limits.text_bytes))
    throw HttpError(
        413, fmt::format("{}: has {} bytes, at most {} are accepted", field, text.size(), config_.limits.text_bytes),
        field);
}

}  // namespace attune::serve

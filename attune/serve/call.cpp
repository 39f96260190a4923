#include "attune/serve/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "attune/base/json_fields.h"
#include "attune/serve/http/http_error.h"

namespace attune::serve {
namespace {

const char* openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* text_embeddings_type(int status) {
  switch (status) {
    case 413:
    case 422:
      return "Validation";
    case 429:
      return "Overloaded";
    case 503:
      return "Unhealthy";
    default:
      return status >= 500 ? "Backend" : "Validation";
  }
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json error_json(const HttpError& error, ErrorForm form, int status) {
  if (form == ErrorForm::libretranslate) return {{"error", error.what()}};
  if (form == ErrorForm::text_embeddings)
    return {{"error", error.what()}, {"error_type", text_embeddings_type(status)}};
  return {{"error",
           {{"message", error.what()},
            {"type", openai_type(status)},
            {"param", or_null(error.field())},
            {"code", or_null(error.code())}}}};
}

// What the log says of a refused request. The message may quote texts of the request, which are never logged; so may
// the name of a field that nobody knows.
std::string cause_of(const HttpError& error) {
  if (!error.code().empty()) return error.code();
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const bool is_name = error.field().size() <= 40 && std::ranges::all_of(error.field(), in_name);
  return is_name && !error.field().empty() ? error.field() : "the request";
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown";
  }
}

}  // namespace

std::string request_id(const HttpRequest& request) {
  constexpr size_t kLongest = 128;
  const std::string_view given = request.header("x-request-id");
  const auto printable = [](char c) { return c > ' ' && c < 127; };
  if (!given.empty() && given.size() <= kLongest && std::all_of(given.begin(), given.end(), printable))
    return std::string(given);
  thread_local std::mt19937_64 random(std::random_device{}());
  return fmt::format("{:016x}{:016x}", random(), random());
}

Call::Call(std::shared_ptr<Exchange> exchange, Recorder recorder)
    : exchange_(std::move(exchange)), recorder_(std::move(recorder)) {
  const HttpRequest& r = exchange_->request();
  record_ = {.id = request_id(r), .client = r.client, .key = {}, .method = r.method, .path = r.path, .model = {}};
  headers = {{"X-Request-Id", record_.id}, {"X-Content-Type-Options", "nosniff"}};
}

Call::~Call() {
  const bool gone = *exchange_->gone();
  if (!answered_) {
    record_.cancelled = gone;
    fail(std::make_exception_ptr(HttpError(503, "the server is stopping")));
  }
  record_.key = client.name;
  record_.seconds = std::chrono::duration<double>(Clock::now() - arrival_).count();
  record_.tokens_in = tokens_in_;
  record_.tokens_out = tokens_out_;
  if (recorder_) recorder_(record_);
}

void Call::respond(HttpResponse response) {
  const std::lock_guard lock(mutex_);
  if (answered_) return;
  answered_ = true;
  record_.cancelled = *exchange_->gone();
  record_.status = response.status;
  if (response.status < 400) place.reset();  // the work is done; after an error some of it may go on
  response.headers.insert(response.headers.end(), headers.begin(), headers.end());
  exchange_->respond(std::move(response));
}

void Call::respond(const Json& json) {
  respond(HttpResponse{.body = show(json)});
}

HttpResponse Call::error_response(const HttpError& error) const {
  int status = error.status();
  if (status == 400 && error_form == ErrorForm::text_embeddings) status = 422;
  HttpResponse response{.status = status, .body = show(error_json(error, error_form, status))};
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", std::to_string(kRetrySeconds));
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

void Call::fail(const std::exception_ptr& error, const std::string& field) {
  const HttpError told = as_http_error(error, field);
  HttpResponse response = error_response(told);
  {
    const std::lock_guard lock(mutex_);
    if (answered_) return;
    exchange_->give_up();
    record_.error = told.status() < 500 ? cause_of(told) : message_of(error);
    if (streaming_) {
      answered_ = true;
      record_.cancelled = *exchange_->gone();
      record_.status = response.status;
      exchange_->write("data: " + response.body + "\n\n");
      exchange_->end();
      return;
    }
  }
  respond(std::move(response));
}

void Call::begin_events() {
  const std::lock_guard lock(mutex_);
  if (answered_ || std::exchange(streaming_, true)) return;
  HttpResponse head{.content_type = "text/event-stream", .headers = headers};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx passes pieces on at once
  exchange_->begin(std::move(head));
}

void Call::event(const Json& json) {
  exchange_->write("data: " + show(json) + "\n\n");
}

void Call::end_events() {
  const std::lock_guard lock(mutex_);
  if (answered_) return;
  answered_ = true;
  record_.cancelled = *exchange_->gone();
  record_.status = 200;
  place.reset();
  exchange_->write("data: [DONE]\n\n");
  exchange_->end();
}

}  // namespace attune::serve

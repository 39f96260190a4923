#include "attune/serve/http/http_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <string_view>

#include "attune/inference/text_limits.h"
#include "attune/tensor/device_error.h"

namespace attune::serve {
namespace {

// The field that a message begins with: "top_p" of "top_p = 0: needs ...", "prefix" of "prefix and required: ..."; ""
// where there is none.
std::string field_of(std::string_view message) {
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  const std::string_view first = message.substr(0, message.find_first_of(" :"));
  const std::string_view rest = message.substr(first.size());
  const bool named = rest.starts_with(": ") || rest.starts_with(" = ") || rest.starts_with(" and ");
  return named && std::ranges::all_of(first, in_name) ? std::string(first) : "";
}

// What is wrong with an option or a text.
HttpError refusal_of(const Error& error, int status, const std::string& field) {
  constexpr std::string_view kWhole = "request: ";  // of the scheduler
  const std::string_view message = error.what();
  if (!field.empty() && message.starts_with(kWhole))
    return {413, fmt::format("{}: the request is too large: {}", field, message.substr(kWhole.size())), field};
  return {status, std::string(message), field_of(message)};
}

}  // namespace

HttpError deadline_error() {
  return {504, "the time for this request is over", "", "timeout"};
}

HttpError as_http_error(const std::exception_ptr& error, const std::string& field) {
  try {
    std::rethrow_exception(error);
  } catch (const HttpError& known) {
    return known;
  } catch (const TooManyTokens& wrong) {
    return refusal_of(wrong, 413, field);
  } catch (const ConfigError& wrong) {
    return refusal_of(wrong, 400, field);
  } catch (const DataError& wrong) {
    return refusal_of(wrong, 400, field);
  } catch (const std::bad_alloc&) {
    return {503, "out of memory"};
  } catch (const DeviceOutOfMemory&) {
    return {503, "out of memory"};
  } catch (const NumericError&) {
    return {500, "the model's numbers are not finite for this text", "", "not_finite"};
  } catch (...) {
    return {500, "internal error"};
  }
}

const char* reason_phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 413:
      return "Payload Too Large";
    case 415:
      return "Unsupported Media Type";
    case 422:
      return "Unprocessable Entity";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Unknown";
  }
}

}  // namespace attune::serve

#include "attune/serve/http/http_error.h"

#include <new>

namespace attune::serve {

HttpError as_http_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const HttpError& known) {
    return known;
  } catch (const ConfigError& wrong) {
    return {400, wrong.what()};
  } catch (const DataError& wrong) {
    return {400, wrong.what()};
  } catch (const std::bad_alloc&) {
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

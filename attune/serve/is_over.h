#pragma once

#include <chrono>

namespace attune::serve {

/// Whether a request of a worker has to end: nobody wants it, or its deadline is over.
template <class Request>
bool is_over(const Request& request) {
  return (request.cancel != nullptr && request.cancel->load()) ||
         (request.deadline && std::chrono::steady_clock::now() >= *request.deadline);
}

}  // namespace attune::serve

#pragma once
// Limits the number of requests.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "attune/serve/api_keys.h"

namespace attune::serve {

/// Counts the requests of a model, waiting and running, and those of each client. Thread-safe.
class Admission : public std::enable_shared_from_this<Admission> {
 public:
  explicit Admission(int64_t most_requests) : most_requests_(most_requests) {}

  /// Takes a place for a request; it is free again when the last copy of the result is gone. Throws HttpError (429) if
  /// the model, or this client, has as many requests as it may have.
  std::shared_ptr<void> enter(const Client& client);
  int64_t requests() const;

 private:
  void leave(const std::string& client);

  const int64_t most_requests_;
  mutable std::mutex mutex_;
  int64_t requests_ = 0;                      // guarded by mutex_
  std::map<std::string, int64_t> of_client_;  // likewise
};

}  // namespace attune::serve

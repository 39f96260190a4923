#include "attune/serve/admission.h"

#include "attune/serve/http/http_error.h"

namespace attune::serve {

std::shared_ptr<void> Admission::enter(const Client& client) {
  {
    const std::lock_guard lock(mutex_);
    if (requests_ >= most_requests_)
      throw HttpError(429, "the model has " + std::to_string(requests_) + " requests, no more are accepted now", "",
                      "queue_full");
    int64_t& own = of_client_[client.name];
    if (client.requests > 0 && own >= client.requests)
      throw HttpError(429, "this API key has " + std::to_string(own) + " requests at work, no more are accepted", "",
                      "key_limit");
    ++own;
    ++requests_;
  }
  const auto leave_at_end = [self = shared_from_this(), name = client.name](void*) { self->leave(name); };
  return {this, leave_at_end};
}

void Admission::leave(const std::string& client) {
  const std::lock_guard lock(mutex_);
  --requests_;
  if (--of_client_[client] == 0) of_client_.erase(client);
}

int64_t Admission::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

}  // namespace attune::serve

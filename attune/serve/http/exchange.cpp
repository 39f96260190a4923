#include "attune/serve/http/exchange.h"

#include <utility>

namespace attune::serve {

Exchange::Exchange(HttpRequest request, std::function<void()> wake, size_t most_unsent,
                   std::unique_ptr<BodyShare> body_share)
    : request_(std::move(request)),
      body_share_(std::move(body_share)),
      most_unsent_(most_unsent),
      wake_(std::move(wake)) {}

void Exchange::respond(HttpResponse response) {
  std::unique_lock lock(mutex_);
  if (begun_) return;
  begun_ = ended_ = true;
  head_ = std::move(response);
  notify(std::move(lock));
}

void Exchange::begin(HttpResponse head) {
  std::unique_lock lock(mutex_);
  if (begun_) return;
  begun_ = streamed_ = true;
  head_ = std::move(head);
  notify(std::move(lock));
}

void Exchange::write(std::string_view piece) {
  std::unique_lock lock(mutex_);
  if (!streamed_ || ended_ || *gone_) return;
  if (!pending_.empty() && pending_.size() + piece.size() > most_unsent_) {
    drop();  // the connection sees that it is over
  } else {
    pending_ += piece;
  }
  notify(std::move(lock));
}

void Exchange::end() {
  std::unique_lock lock(mutex_);
  if (!streamed_ || ended_) return;
  ended_ = true;
  notify(std::move(lock));
}

// Wakes the connection, once until it has taken what is there. Holds the lock, so that it is not woken after abandon().
void Exchange::notify(std::unique_lock<std::mutex>) {
  if (!wake_ || std::exchange(notified_, true)) return;
  wake_();
}

Exchange::Outgoing Exchange::take() {
  const std::lock_guard lock(mutex_);
  notified_ = false;
  Outgoing out{.head = std::exchange(head_, {}), .streamed = streamed_, .piece = std::exchange(pending_, {})};
  out.ended = ended_ && !std::exchange(end_taken_, ended_);
  return out;
}

void Exchange::abandon() {
  const std::lock_guard lock(mutex_);
  wake_ = {};
  drop();
}

void Exchange::drop() {
  *gone_ = *unwanted_ = true;
  std::string().swap(pending_);  // its memory too
}

}  // namespace attune::serve

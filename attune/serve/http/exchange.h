#pragma once
// A request and the answer to it, which may be written by another thread than the one that reads it.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "attune/serve/http/body_share.h"
#include "attune/serve/http/message.h"

namespace attune::serve {

/// Thread-safe. One side answers, whole or piece by piece; the other side is the connection, which sends what is there
/// and says when the client has gone. What is written after that is dropped.
class Exchange {
 public:
  /// `wake` is called, from the answering thread, when there is something to send; empty: never. A client that leaves
  /// more than `most_unsent` bytes of a stream unread counts as gone: nothing else bounds what waits for it.
  /// `body_share` counts the body for as long as this keeps it.
  explicit Exchange(HttpRequest request, std::function<void()> wake = {}, size_t most_unsent = SIZE_MAX,
                    std::unique_ptr<BodyShare> body_share = {});

  const HttpRequest& request() const { return request_; }
  HttpRequest& request() { return request_; }

  /// The whole answer. Does nothing when an answer has begun.
  void respond(HttpResponse response);
  /// An answer whose body comes in pieces until end(). Does nothing when an answer has begun.
  void begin(HttpResponse head);
  void write(std::string_view piece);
  void end();

  /// True once the client has gone.
  std::shared_ptr<const std::atomic<bool>> gone() const { return gone_; }
  /// True once nobody waits for more of the answer: the client has gone, or the answer is an error.
  std::shared_ptr<const std::atomic<bool>> unwanted() const { return unwanted_; }
  /// The answer is an error: work on it may end.
  void give_up() { *unwanted_ = true; }

  /// For the connection.
  struct Outgoing {
    std::optional<HttpResponse> head = {};  // the first time; with the body unless it is streamed
    bool streamed = false;
    std::string piece = {};  // of a streamed body
    bool ended = false;      // nothing follows

    bool empty() const { return !head && piece.empty() && !ended; }
  };
  /// Takes what there is to send since the last call.
  Outgoing take();
  /// The client has gone, or the connection ends: `wake` is not called again.
  void abandon();

 private:
  void notify(std::unique_lock<std::mutex> lock);
  void drop();

  HttpRequest request_;
  const std::unique_ptr<BodyShare> body_share_;
  const size_t most_unsent_;
  const std::shared_ptr<std::atomic<bool>> gone_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<bool>> unwanted_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;  // of what follows
  std::function<void()> wake_;
  bool begun_ = false, ended_ = false, end_taken_ = false, streamed_ = false, notified_ = false;
  std::optional<HttpResponse> head_;
  std::string pending_;
};

}  // namespace attune::serve

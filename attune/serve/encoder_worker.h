#pragma once
// The thread that runs an encoder for many requests at once.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "attune/serve/decoding_worker.h"
#include "attune/serve/fair_queue.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {

/// A text, or two, for an encoder.
struct EncoderRequest {
  Encoding text;
  std::shared_ptr<const std::atomic<bool>> cancel = {};                // once true, nothing is computed
  std::optional<std::chrono::steady_clock::time_point> deadline = {};  // past it, nothing is computed
  /// Called once, on the worker's thread or by stop(): with numbers (a vector, or logits) or with an error. Must not
  /// throw.
  std::function<void(std::vector<float> numbers, std::exception_ptr error)> on_done;
};

/// Puts texts of all requests that wait into batches. Clients take turns, see FairQueue.
class EncoderWorker {
 public:
  /// The numbers of each text of a batch.
  using Encode = std::function<std::vector<std::vector<float>>(std::span<const Encoding> texts)>;
  struct Options {
    int64_t batch_texts = 64;
    int64_t batch_tokens = 8192;
    int64_t threads = 0;  // 0: default_thread_count()
  };
  EncoderWorker(Encode encode, const Options& options);
  EncoderWorker(const EncoderWorker&) = delete;
  EncoderWorker& operator=(const EncoderWorker&) = delete;
  /// As stop().
  ~EncoderWorker();

  /// Ends requests that wait with an HttpError (503). None may follow.
  void stop();

  /// Thread-safe.
  void add(const std::string& key, std::vector<EncoderRequest> requests);
  WorkerLoad load() const;

 private:
  using Queue = FairQueue<EncoderRequest>;
  void run();
  bool next_batch(std::vector<EncoderRequest>& batch);
  void encode(std::span<EncoderRequest> batch);

  const Encode encode_;
  const Options options_;
  mutable std::mutex mutex_;  // of what follows
  std::condition_variable arrived_;
  Queue queue_;
  bool stopping_ = false;
  std::atomic<int64_t> running_{0};
  std::thread thread_;  // last: it uses all of them
};

}  // namespace attune::serve

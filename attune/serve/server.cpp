#include "attune/serve/server.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <thread>

namespace attune::serve {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPause(20);

Clock::time_point after(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Waits until done() is true, but not longer than until `end`.
template <class Done>
void wait_for(Done&& done, Clock::time_point end) {
  while (!done() && Clock::now() < end) std::this_thread::sleep_for(kPause);
}

}  // namespace

Server::Server(const ServeConfig& config, std::function<void(const std::string&)> log)
    : service_(config, std::move(log)),
      http_(
          service_.config().http, [this](const std::shared_ptr<Exchange>& exchange) { service_.handle(exchange); },
          [this](const HttpRequest& request, const HttpError& why) { return service_.refuse(request, why); },
          [this](const HttpRequest& head) { return service_.knows_client(head); }) {}

void Server::run(const std::atomic<bool>& stop, std::atomic<bool>& reload) {
  std::future<void> loading;  // on a thread of its own, so that `stop` is seen meanwhile; the destructor waits for it
  while (!stop) {
    std::this_thread::sleep_for(kPause);
    service_.models().free_replaced();
    if (loading.valid()) {
      if (loading.wait_for(std::chrono::seconds(0)) != std::future_status::ready) continue;
      loading.get();
    }
    const bool asked = service_.reload_asked();
    if (reload.exchange(false) || asked) loading = std::async(std::launch::async, [this] { service_.reload(); });
  }
  constexpr double kLastAnswers = 2;  // seconds
  const Clock::time_point end = after(service_.config().drain_seconds);
  service_.drain();
  http_.drain();
  wait_for([&] { return service_.open_calls() == 0; }, end);
  http_.stop_accepting();
  service_.stop();
  const Clock::time_point last = after(kLastAnswers);
  wait_for([&] { return http_.connections() == 0; }, last);
  wait_for([&] { return http_.answers() == 0; }, std::max(end, last));  // not for half requests
}

}  // namespace attune::serve

#pragma once
// A network with a library of its own that writes down what it is asked for, and does nothing.

#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/dist/network_collectives.h"
#include "attune/dist/transport.h"

namespace attune {

/// The first of two ranks. `calls` outlives it. With `fails`, its all_reduce() throws CommunicationError.
class RecordingTransport final : public Transport, public NetworkCollectives {
 public:
  explicit RecordingTransport(std::vector<std::string>& calls, bool fails = false) : calls_(calls), fails_(fails) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  void exchange(int, std::span<const std::byte>, int, std::span<std::byte>) override {
    calls_.emplace_back("exchange");
  }
  void abort(int) override {}
  NetworkCollectives* collectives() override { return this; }

  void all_reduce(const Numbers&, std::vector<std::byte>&) override {
    if (fails_) fail<CommunicationError>("the library has had enough");
    calls_.emplace_back("all_reduce");
  }
  void reduce_scatter(const Numbers&, std::vector<std::byte>&) override { calls_.emplace_back("reduce_scatter"); }
  void all_gather(const Numbers&) override { calls_.emplace_back("all_gather"); }

 private:
  std::vector<std::string>& calls_;
  bool fails_;
};

}  // namespace attune

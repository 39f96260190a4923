#pragma once
// How many bytes the bodies of the requests in memory have together.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace attune::serve {

/// Bytes of the bodies of clients that are known, and of others. Thread-safe.
struct BodyTotals {
  std::atomic<int64_t> known{0}, unknown{0};
};

/// Counts the bytes of one body in these totals until it is destroyed.
class BodyShare {
 public:
  BodyShare(std::shared_ptr<BodyTotals> totals, bool known) : totals_(std::move(totals)), known_(known) {}
  BodyShare(const BodyShare&) = delete;
  BodyShare& operator=(const BodyShare&) = delete;
  ~BodyShare() { set(0); }

  bool known() const { return known_; }
  void set(size_t bytes) {
    (known_ ? totals_->known : totals_->unknown) += static_cast<int64_t>(bytes) - bytes_;
    bytes_ = static_cast<int64_t>(bytes);
  }

 private:
  const std::shared_ptr<BodyTotals> totals_;
  const bool known_;
  int64_t bytes_ = 0;
};

}  // namespace attune::serve

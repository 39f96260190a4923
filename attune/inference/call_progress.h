#pragma once

#include <cstdint>
#include <functional>

namespace attune {

/// Calls a function, if there is one, each time the number of texts that are done has changed. The function has to
/// outlive this.
class CallProgress {
 public:
  explicit CallProgress(const std::function<void(int64_t done, int64_t total)>& function) : function_(function) {}
  void show(int64_t done, int64_t total) {
    if (!function_ || done == shown_) return;
    shown_ = done;
    function_(done, total);
  }

 private:
  const std::function<void(int64_t done, int64_t total)>& function_;
  int64_t shown_ = 0;
};

}  // namespace attune

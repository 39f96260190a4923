#pragma once

#include "attune/dist/tensor_exchange.h"

namespace attune {

/// Tensors are copied to the host, exchanged by the communicator, and copied back, each time the part that is needed. A
/// tensor on the host is exchanged in place. Sums are those of the communicator with this algorithm, to the bit.
class StagedExchange final : public TensorExchange {
 public:
  /// `text` is what text() returns. The communicator must outlive this.
  explicit StagedExchange(Communicator& communicator, Algorithm algorithm = Algorithm::fixed, std::string text = "")
      : communicator_(communicator), algorithm_(algorithm), text_(std::move(text)) {}

  Pending start_all_reduce(const Tensor& x) override;
  Pending start_reduce_scatter(const Tensor& x) override;
  Pending start_all_gather(const Tensor& x) override;
  void broadcast(const Tensor& x, int root) override;
  /// Nothing is to be done: the communicator notices, and each start has waited for the device.
  void all_started() override {}
  int64_t unit() const override { return 1; }
  int64_t bytes_sent() const override { return 0; }
  std::string text() const override { return text_; }

 private:
  Tensor part_of(const Tensor& x) const;

  Communicator& communicator_;
  Algorithm algorithm_;
  std::string text_;
};

}  // namespace attune

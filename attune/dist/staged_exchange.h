#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attune/dist/tensor_exchange.h"
#include "attune/tensor/staging.h"

namespace attune {

/// Copies tensors to the host, has the communicator exchange them there, and copies them back; only the parts that are
/// needed are copied. On a GPU the copies run beside its work, and the communicator waits for each copy to the host
/// before its operation. The memory on the host is kept for later operations: of each size, as much as was in use at
/// once. A tensor on the host is exchanged in place. Sums have the same bits as the communicator's with this algorithm.
class StagedExchange final : public TensorExchange {
 public:
  /// `text` is what text() returns. The communicator must outlive this.
  explicit StagedExchange(Communicator& communicator, Algorithm algorithm = Algorithm::fixed, std::string text = "")
      : communicator_(communicator), algorithm_(algorithm), text_(std::move(text)) {}

  Pending start_all_reduce(const Tensor& x) override;
  Pending start_reduce_scatter(const Tensor& x) override;
  Pending start_all_gather(const Tensor& x) override;
  void broadcast(const Tensor& x, int root) override;
  /// Waits for what the device computes and for the copies from it; the communicator notices who fails.
  void all_started() override;
  int64_t unit() const override { return 1; }
  int64_t bytes_sent() const override { return 0; }
  std::string text() const override { return text_; }

 private:
  enum class Part { whole, own };  // of a tensor: all of it, or what part_begin() gives this rank

  Tensor part_of(const Tensor& x, Part part) const;
  std::shared_ptr<Staging> staging_for(const Tensor& x);
  /// Starts the copy of the part `fetched` of x to the host, and the operation there; wait() starts the copy of the
  /// part `returned` back. A tensor on the host is given to the operation as it is.
  Pending start(const Tensor& x, Part fetched, Part returned,
                const std::function<Pending(const Tensor& on_host)>& operation);

  Communicator& communicator_;
  Algorithm algorithm_;
  std::string text_;
  std::vector<std::shared_ptr<Staging>> stagings_;  // one that is in use has other owners too
  std::shared_ptr<Staging> fetched_last_;           // the last fetch since all_started()
};

}  // namespace attune

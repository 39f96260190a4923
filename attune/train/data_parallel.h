#pragma once
// One update by several ranks. Each has the gradients of its part of the batches; all apply the sum.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attune/autograd/graph.h"
#include "attune/dist/tensor_exchange.h"
#include "attune/optim/adam.h"

namespace attune {

struct DataParallelOptions {
  bool shard = false;                      // every rank updates only its part of the parameters
  Algorithm algorithm = Algorithm::fixed;  // of sums, and of the gathers of a sharded optimizer
  int64_t bucket_bytes = 0;                // 0: an eighth of all gradients, at least 1 MiB and at most 25 MiB
};

/// What one update cost on this rank.
struct CommunicationCost {
  int64_t bytes_sent = 0;
  double seconds = 0;  // in which gradients, and with a sharded optimizer parameters, were on their way
  double exposed = 0;  // of these, seconds in which this rank did nothing but wait
};

/// What a rank tells the others about an update; after agree(), the sums over all ranks.
struct UpdateTotals {
  double loss = 0, nll = 0, guided_loss = 0, r_drop_loss = 0;  // see UpdateResult
  int64_t failures = 0;                                        // ranks with a loss that is not finite
  int64_t first_failure = -1;                                  // the first of these ranks; -1: none
  double squares = 0;  // of this rank's part of each bucket; the parts of all ranks are the whole gradient
};

/// Gradients are sent in buckets of about `bucket_bytes`, last parameters first, since backward ends with the first
/// ones. A bucket is sent as soon as the gradients in it and in the buckets before it are complete, while backward goes
/// on (Li et al. 2020, "PyTorch Distributed"). The order of all messages is the same on every rank.
///
/// With `shard` every rank updates only its part of each bucket (ZeRO stage 1, Rajbhandari et al. 2020): gradients are
/// reduced and scattered, and the updated parameters gathered. The numbers are the same to the bit, except where NCCL
/// or MPI forms the sums: it may add up in another order then.
class DataParallel {
 public:
  /// The parameters must require gradients and be on one device; communicator and parameters must outlive this. Without
  /// an `exchange`, make_tensor_exchange() makes one for that device and the algorithm of the options.
  DataParallel(Communicator& communicator, std::vector<NamedParameter> parameters,
               const DataParallelOptions& options = {}, std::unique_ptr<TensorExchange> exchange = nullptr);

  Communicator& communicator() const { return communicator_; }
  const TensorExchange& exchange() const { return *exchange_; }
  /// The ranges that this rank's Adam updates; empty: everything.
  std::vector<ElementRange> owned() const;
  /// Gives every rank all parameters that rank 0's model has, trained or not.
  void broadcast_parameters(Module& model) const;

  /// To be called by the last backward() of an update when a gradient is complete.
  void on_complete(const GradientNode& leaf);
  /// Makes every gradient the sum over all ranks; a sharded one is valid only in the ranges of owned(). A rank without
  /// a gradient adds zeros. `meanwhile` is called when all sums are started, before this rank waits for them.
  void reduce(const std::function<void()>& meanwhile = {});
  /// After reduce(): adds the squares of this rank's part of each bucket to sum [1], float64 on the parameters' device.
  /// The parts of all ranks together are the whole gradient.
  void add_squares(const Tensor& sum) const;
  /// Returns the totals of all ranks, the same on each. Clears the gradients of parameters for which no rank has one.
  UpdateTotals agree(const UpdateTotals& mine);
  /// Returns the sum of every rank's numbers, which are equally many.
  std::vector<int64_t> sum(const std::vector<int64_t>& mine) const;
  /// With a sharded optimizer, gives every rank the parts of the parameters that the others own.
  void share_parameters();

  /// Returns Adam's whole states on rank 0, nothing on the others. All ranks call it.
  std::vector<AdamState> gather_states(const Adam& adam) const;

  /// The cost since the last call.
  CommunicationCost take_cost();

 private:
  struct Bucket {
    Tensor flat;                 // [numbers], gradients one after the other, and zeros up to a multiple of unit()
    size_t first = 0, last = 0;  // its parameters are places_[first] to places_[last - 1]
    size_t missing = 0;          // gradients that are not complete
    Pending pending = {};
  };
  struct Place {  // of a parameter
    size_t parameter = 0, bucket = 0;
    int64_t begin = 0;  // in the bucket
    bool complete = false, has_gradient = false;
  };

  void make_buckets(int64_t bucket_bytes);
  const Tensor& parameter(const Place& place) const { return *parameters_[place.parameter].tensor; }
  Tensor view(const Place& place) const;
  void fill(Place& place);
  void start_complete_buckets();
  void wait(Bucket& bucket);
  ElementRange owned_part(const Place& place) const;
  int64_t all_bytes_sent() const { return communicator_.bytes_sent() + exchange_->bytes_sent(); }

  Communicator& communicator_;
  std::vector<NamedParameter> parameters_;
  bool shard_;
  std::vector<Place> places_;  // in the order in which gradients are sent
  std::vector<Bucket> buckets_;
  std::unique_ptr<TensorExchange> exchange_;  // is destroyed before the buckets: it may still be at work on them
  std::unordered_map<const GradientNode*, size_t> place_of_;
  size_t next_ = 0;  // the bucket to be started next
  CommunicationCost cost_;
  int64_t bytes_before_ = 0;
};

}  // namespace attune

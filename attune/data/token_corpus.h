#pragma once
// A corpus as shards of token ids, and the batches of an epoch over it.

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/data/token_shard.h"

namespace attune {

/// A shard as the index describes it.
struct ShardFile {
  std::filesystem::path path;
  int64_t examples = 0, tokens = 0;
  std::string sha256 = {};  // of the file; empty: unknown
};

/// Reads the file. Throws FileError when its SHA-256 is not what it should be. `progress` is called with the bytes that
/// were read since its last call, and may throw to end the work.
void verify_shard(const ShardFile& file, const std::function<void(int64_t bytes)>& progress = {});

/// Shards of one form: a loaded text as one shard in memory, or files that are mapped while they are in use.
class TokenCorpus {
 public:
  TokenCorpus() = default;
  explicit TokenCorpus(TokenShard shard);
  TokenCorpus(std::vector<ShardFile> files, const ShardForm& form);

  int64_t shards() const { return memory_ ? 1 : static_cast<int64_t>(files_.size()); }
  /// Throws FileError when the file is missing, damaged or not as the index describes it.
  std::shared_ptr<const TokenShard> open(int64_t shard) const;
  /// Throws FileError when the content of the file is not what it should be, see verify_shard().
  void verify(int64_t shard) const;
  /// A digest of all shards. For files it is made from the digests that the index gives.
  std::string sha256() const;

 private:
  std::shared_ptr<const TokenShard> memory_;
  std::vector<ShardFile> files_;
  ShardForm form_;
};

/// The order in which an epoch visits the shards, a pure function of its arguments.
std::vector<int64_t> order_of_shards(int64_t shards, uint64_t seed, int64_t epoch);

/// The epoch number that a shard's sampler gets, so that every shard of every epoch has random numbers of its own; for
/// the first shard it is `epoch` itself.
inline int64_t epoch_of_shard(int64_t epoch, int64_t shard) {
  return epoch + (shard << 32);
}

/// The batches of an epoch, a pure function of (corpus, seed, epoch): the shards in random order, and in each the
/// batches that a sampler forms of it. Keeps only the batches of the current shard, and the number of batches of the
/// others.
///
/// A batch is a list of `Index`: an example's index in the shard, or a Window.
template <class Index>
class ShardedBatches {
 public:
  using Batches = std::vector<std::vector<Index>>;
  /// Forms the batches of a shard; the epoch is that of epoch_of_shard(). Called by several threads at once.
  using Sampler = std::function<Batches(const TokenShard&, int64_t epoch)>;

  ShardedBatches(TokenCorpus corpus, uint64_t seed, Sampler sampler)
      : corpus_(std::move(corpus)), seed_(seed), sampler_(std::move(sampler)) {}

  /// Begins an epoch. No other thread may call at() meanwhile. Throws what opening a shard throws. The content of a
  /// shard is verified once, before its first batch, and here only if there is one shard: it takes as long as reading
  /// the file.
  void begin(int64_t epoch) {
    epoch_ = epoch;
    order_ = order_of_shards(corpus_.shards(), seed_, epoch);
    first_.assign(order_.size() + 1, 0);
    at_work_ = nullptr;
    if (order_.size() == 1) {
      at_work_ = open_verified(0);
      first_[1] = static_cast<int64_t>(at_work_->batches.size());
      return;
    }
    parallel_for(corpus_.shards(), 1, [&](int64_t place, int64_t) {
      first_[static_cast<size_t>(place) + 1] = static_cast<int64_t>(open(place)->batches.size());
    });
    for (size_t place = 0; place < order_.size(); ++place) first_[place + 1] += first_[place];
  }

  int64_t size() const { return first_.back(); }  // of the epoch

  struct Batch {
    std::shared_ptr<const TokenShard> shard;
    std::vector<Index> indices;
  };
  /// Any thread may call.
  Batch at(int64_t batch) const {
    const std::lock_guard lock(mutex_);
    if (batch < 0 || batch >= size()) fail<DataError>("batch {} is outside of the {} of the epoch", batch, size());
    const auto place = std::upper_bound(first_.begin(), first_.end(), batch) - first_.begin() - 1;
    if (!at_work_ || at_work_->place != place) {
      at_work_ = nullptr;  // freed before the next one is loaded
      at_work_ = open_verified(place);
    }
    return {at_work_->shard, at_work_->batches.at(static_cast<size_t>(batch - first_[static_cast<size_t>(place)]))};
  }

 private:
  struct AtWork {
    int64_t place;  // in the order of the epoch
    std::shared_ptr<const TokenShard> shard;
    Batches batches;
  };

  std::shared_ptr<const AtWork> open(int64_t place) const {
    const int64_t number = order_[static_cast<size_t>(place)];
    std::shared_ptr<const TokenShard> shard = corpus_.open(number);
    Batches batches = sampler_(*shard, epoch_of_shard(epoch_, number));
    return std::make_shared<const AtWork>(AtWork{place, std::move(shard), std::move(batches)});
  }

  std::shared_ptr<const AtWork> open_verified(int64_t place) const {
    const int64_t number = order_[static_cast<size_t>(place)];
    if (!verified_.contains(number)) corpus_.verify(number);
    verified_.insert(number);
    return open(place);
  }

  TokenCorpus corpus_;
  uint64_t seed_;
  Sampler sampler_;
  int64_t epoch_ = 0;
  std::vector<int64_t> order_;     // [shards]
  std::vector<int64_t> first_{0};  // [shards + 1] batches before each shard, in the order of the epoch
  mutable std::mutex mutex_;       // of what follows
  mutable std::shared_ptr<const AtWork> at_work_;
  mutable std::set<int64_t> verified_;  // shards
};

}  // namespace attune

#include "attune/data/token_corpus.h"

#include <numeric>

#include "attune/base/fail.h"
#include "attune/base/random.h"

namespace attune {
namespace {

constexpr uint64_t kOrderStream = uint64_t{0x73686172} << 32;  // "shar": the shards' batches have other streams

}  // namespace

TokenCorpus::TokenCorpus(TokenShard shard) : memory_(std::make_shared<const TokenShard>(std::move(shard))) {}

TokenCorpus::TokenCorpus(std::vector<ShardFile> files, const ShardForm& form) : files_(std::move(files)), form_(form) {}

std::shared_ptr<const TokenShard> TokenCorpus::open(int64_t shard) const {
  if (memory_) return memory_;
  const ShardFile& file = files_.at(static_cast<size_t>(shard));
  auto opened = std::make_shared<const TokenShard>(file.path, form_);
  if (opened->examples() != file.examples || opened->tokens() != file.tokens)
    fail<FileError>("{}: has {} examples and {} tokens, the index says {} and {}", opened->name(), opened->examples(),
                    opened->tokens(), file.examples, file.tokens);
  return opened;
}

std::vector<int64_t> order_of_shards(int64_t shards, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(shards));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(seed, kOrderStream + static_cast<uint64_t>(epoch));
  random.shuffle(order);
  return order;
}

}  // namespace attune

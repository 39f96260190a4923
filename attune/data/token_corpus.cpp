#include "attune/data/token_corpus.h"

#include <numeric>

#include "attune/base/fail.h"
#include "attune/base/random.h"
#include "attune/base/sha256.h"

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

void TokenCorpus::verify(int64_t shard) const {
  if (!memory_) verify_shard(files_.at(static_cast<size_t>(shard)));
}

std::string TokenCorpus::sha256() const {
  if (memory_) return memory_->sha256();
  Sha256 hash;
  for (const ShardFile& file : files_) hash.update(file.sha256);
  return hash.hex();
}

void verify_shard(const ShardFile& shard, const std::function<void(int64_t bytes)>& progress) {
  constexpr size_t kBlock = size_t{1} << 20;
  if (shard.sha256.empty()) return;
  const MappedFile file(shard.path);
  Sha256 hash;
  for (std::span<const std::byte> rest = file.bytes(); !rest.empty();) {
    const auto block = rest.first(std::min(kBlock, rest.size()));
    hash.update(block.data(), block.size());
    rest = rest.subspan(block.size());
    if (progress) progress(static_cast<int64_t>(block.size()));
  }
  if (hash.hex() != shard.sha256)
    fail<FileError>("{}: sha256 is not what the index says: the file was changed", shard.path.string());
}

std::vector<int64_t> order_of_shards(int64_t shards, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(shards));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(seed, kOrderStream + static_cast<uint64_t>(epoch));
  random.shuffle(order);
  return order;
}

}  // namespace attune

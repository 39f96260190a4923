// A shard of a prepared text; what is accepted makes batches.

#include "attune/data/token_corpus.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto path = fuzz::file("x", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const auto shard = std::make_shared<const TokenShard>(path, ShardForm{.sides = 2, .vocab = {20, 20}});
    for (const auto& batch : BatchSampler(shard->lengths(), {.max_tokens = 8}).epoch(0))
      for (const int32_t id : pack_pairs(*shard, batch, 2).source) fuzz::require(id >= 0 && id < 20);
  });
}

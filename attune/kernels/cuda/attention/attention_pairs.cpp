#include "attune/kernels/cuda/attention/attention_pairs.h"

namespace attune::cuda {
namespace {

using Kind = AttentionPass::Kind;

std::vector<AttentionPass> passes_of(const FullAttention&, bool causal, int64_t) {
  return {{Kind::all, 1, 1, causal}};
}
std::vector<AttentionPass> passes_of(const SlidingWindow& p, bool causal, int64_t longest) {
  return {{Kind::window, static_cast<int>(std::min(p.size, longest)), 1, causal}};
}
std::vector<AttentionPass> passes_of(const StridedAttention& p, bool causal, int64_t longest) {
  const int stride = static_cast<int>(std::min(p.stride, longest));
  std::vector<AttentionPass> passes{{Kind::window, stride, 1, causal}};
  if (p.stride < longest) passes.push_back({Kind::residues, stride, 1, causal});
  return passes;
}
std::vector<AttentionPass> passes_of(const FixedAttention& p, bool causal, int64_t longest) {
  const int stride = static_cast<int>(std::min(p.stride, longest));
  std::vector<AttentionPass> passes{{Kind::own_block, stride, 1, causal}};
  if (p.stride < longest) passes.push_back({Kind::summaries, stride, static_cast<int>(p.summary), causal});
  return passes;
}

void append_tiles(int32_t sequence, int32_t residue, NumberRange range, std::vector<TileOfSequence>& tiles) {
  for (int first = range.begin; first < range.end; first += static_cast<int>(kAttentionTile))
    tiles.push_back({sequence, residue, first});
}

}  // namespace

std::vector<AttentionPass> attention_passes(const AttentionPattern& pattern, bool causal, int64_t longest) {
  return std::visit([&](const auto& p) { return passes_of(p, causal, std::max<int64_t>(longest, 1)); }, pattern);
}

PassTiles attention_tiles(const AttentionPass& pass, std::span<const int32_t> query_offsets,
                          std::span<const int32_t> key_offsets) {
  PassTiles tiles;
  for (size_t s = 0; s + 1 < query_offsets.size(); ++s) {
    const int queries = query_offsets[s + 1] - query_offsets[s], keys = key_offsets[s + 1] - key_offsets[s];
    if (pass.gathers() && pass.size >= keys) continue;  // no pairs
    // From residue keys - size on, a class has one member, which sees itself in the first pass.
    const int residues = pass.kind == Kind::residues ? std::min(pass.size, keys - pass.size) : 1;
    for (int residue = 0; residue < residues; ++residue) {
      const AttentionPairs pairs(pass, queries, keys, residue);
      append_tiles(static_cast<int32_t>(s), residue, pairs.queries(), tiles.queries);
      append_tiles(static_cast<int32_t>(s), residue, pairs.keys(), tiles.keys);
    }
  }
  return tiles;
}

}  // namespace attune::cuda

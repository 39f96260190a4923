#pragma once
// Which pairs of queries and keys a pattern allows, as tiles of kAttentionTile queries by as many keys. The work is
// done in one pass or in two, as for_each_block (attune/kernels/attention/attention_plan.h) has it: first runs of
// adjacent keys around runs of adjacent queries; then, for the patterns that gather keys, the gathered ones.
//
// In a pass, the queries and keys of a sequence (with residue classes: those of one class) are numbered without gaps. a
// is such a number of a query and b that of a key; query() and key() give the index within the sequence.

#include <algorithm>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "attune/kernels/attention/attention_pattern.h"
#include "attune/kernels/attention/attention_plan.h"
#include "attune/kernels/cuda/runtime/platform.h"

namespace attune::cuda {

struct AttentionPass {
  enum class Kind {
    all,        // every key
    window,     // |i - j| < size
    own_block,  // those of the query's block of `size` positions
    residues,   // those whose distance is a multiple of size, but not 0
    summaries,  // the last `summary` positions of each other block
  };
  Kind kind;
  int size, summary;
  bool causal;

  bool gathers() const { return kind == Kind::residues || kind == Kind::summaries; }
};

/// Some queries, or some keys, of one sequence: numbers first ... first + kAttentionTile - 1, where they exist.
struct TileOfSequence {
  int32_t sequence, residue, first;
};

struct NumberRange {
  int begin, end;
};

class AttentionPairs {
 public:
  ATTUNE_HOST_DEVICE AttentionPairs(const AttentionPass& pass, int queries, int keys, int residue)
      : pass_(pass), queries_(queries), keys_(keys), shift_(keys - queries), residue_(residue) {}

  /// The position of a query among the keys, and the indices of a query and of a key within the sequence.
  ATTUNE_HOST_DEVICE int position(int a) const { return is_residues() ? residue_ + a * pass_.size : a + shift_; }
  ATTUNE_HOST_DEVICE int query(int a) const { return is_residues() ? position(a) - shift_ : a; }
  ATTUNE_HOST_DEVICE int key(int b) const {
    if (is_residues()) return residue_ + b * pass_.size;
    if (!is_summaries()) return b;
    return b / pass_.summary * pass_.size + pass_.size - pass_.summary + b % pass_.summary;
  }

  /// All queries, and all keys.
  ATTUNE_HOST_DEVICE NumberRange queries() const {
    if (!is_residues()) return {0, queries_};
    return {shift_ > residue_ ? (shift_ - residue_ + pass_.size - 1) / pass_.size : 0, members()};
  }
  ATTUNE_HOST_DEVICE NumberRange keys() const {
    if (is_residues()) return {0, members()};
    if (!is_summaries()) return {0, keys_};
    const int rest = keys_ % pass_.size - (pass_.size - pass_.summary);
    return {0, keys_ / pass_.size * pass_.summary + (rest > 0 ? rest : 0)};
  }

  /// The keys that queries of a range may see; the result begins at a multiple of kAttentionTile.
  ATTUNE_DEVICE NumberRange keys_of(NumberRange a) const {
    const int first = position(a.begin), last = position(a.end - 1);
    NumberRange seen = keys();
    if (is_residues()) return {0, pass_.causal ? least(seen.end, a.end - 1) : seen.end};
    if (is_summaries()) return {0, pass_.causal ? least(seen.end, last / pass_.size * pass_.summary) : seen.end};
    if (pass_.kind == AttentionPass::Kind::window)
      seen = {most(first - pass_.size + 1, 0), least(last + pass_.size, keys_)};
    if (pass_.kind == AttentionPass::Kind::own_block)
      seen = {first / pass_.size * pass_.size, least((last / pass_.size + 1) * pass_.size, keys_)};
    return {seen.begin / kTile * kTile, pass_.causal ? least(seen.end, last + 1) : seen.end};
  }

  /// The queries that may see keys of a range.
  ATTUNE_DEVICE NumberRange queries_of(NumberRange b) const {
    const NumberRange all = queries();
    const int first = b.begin, last = b.end - 1;
    if (is_residues()) return {pass_.causal ? most(all.begin, first + 1) : all.begin, all.end};
    if (is_summaries()) return {pass_.causal ? most((first / pass_.summary + 1) * pass_.size - shift_, 0) : 0, all.end};
    NumberRange positions{shift_, keys_};
    if (pass_.kind == AttentionPass::Kind::window)
      positions = {most(first - pass_.size + 1, shift_), least(last + pass_.size, keys_)};
    if (pass_.kind == AttentionPass::Kind::own_block)
      positions = {most(first / pass_.size * pass_.size, shift_), least((last / pass_.size + 1) * pass_.size, keys_)};
    if (pass_.causal) positions.begin = most(positions.begin, first);
    return {positions.begin - shift_, positions.end - shift_};
  }

  /// Whether pattern and causality allow this pair, and it belongs to this pass.
  ATTUNE_DEVICE bool allows(int a, int b) const {
    const int i = position(a);
    switch (pass_.kind) {
      case AttentionPass::Kind::residues:
        return pass_.causal ? b < a : b != a;
      case AttentionPass::Kind::summaries: {
        const int own = i / pass_.size * pass_.summary;
        return b < own || (!pass_.causal && b >= own + pass_.summary);
      }
      case AttentionPass::Kind::window:
        if (b <= i - pass_.size || b >= i + pass_.size) return false;
        break;
      case AttentionPass::Kind::own_block:
        if (b / pass_.size != i / pass_.size) return false;
        break;
      case AttentionPass::Kind::all:
        break;
    }
    return !pass_.causal || b <= i;
  }

  /// The same for passes of the kinds `all` and `window`.
  ATTUNE_DEVICE bool allows_in_run(int a, int b) const {
    const int i = a + shift_;
    if (pass_.kind == AttentionPass::Kind::window && (b <= i - pass_.size || b >= i + pass_.size)) return false;
    return !pass_.causal || b <= i;
  }
  /// Whether these passes allow every pair of two ranges.
  ATTUNE_DEVICE bool allows_all_in_run(NumberRange a, NumberRange b) const {
    const int first = a.begin + shift_, last = a.end - 1 + shift_;
    if (pass_.kind == AttentionPass::Kind::window && (b.begin <= last - pass_.size || b.end > first + pass_.size))
      return false;
    return !pass_.causal || b.end - 1 <= first;
  }

  /// The first quad of columns of dropout's mask (dropout_bits.h) for the tile that begins with key b.
  ATTUNE_DEVICE int64_t first_quad(int b) const {
    const int64_t first_group = is_residues() || is_summaries() ? kGatheredGroup : 0;
    return (first_group + b / kTile) * 16;
  }

 private:
  static constexpr int kTile = static_cast<int>(kAttentionTile);

  ATTUNE_HOST_DEVICE bool is_residues() const { return pass_.kind == AttentionPass::Kind::residues; }
  ATTUNE_HOST_DEVICE bool is_summaries() const { return pass_.kind == AttentionPass::Kind::summaries; }
  ATTUNE_HOST_DEVICE int members() const { return (keys_ - residue_ + pass_.size - 1) / pass_.size; }
  ATTUNE_HOST_DEVICE static int least(int x, int y) { return x < y ? x : y; }
  ATTUNE_HOST_DEVICE static int most(int x, int y) { return x < y ? y : x; }

  AttentionPass pass_;
  int queries_, keys_, shift_, residue_;
};

/// The passes of a pattern. Sizes are limited to `longest`, the most keys of a sequence, which changes no pair.
std::vector<AttentionPass> attention_passes(const AttentionPattern& pattern, bool causal, int64_t longest);

/// Tiles that contain each query, and each key, that the pass may touch.
struct PassTiles {
  std::vector<TileOfSequence> queries, keys;
};
PassTiles attention_tiles(const AttentionPass& pass, std::span<const int32_t> query_offsets,
                          std::span<const int32_t> key_offsets);

}  // namespace attune::cuda

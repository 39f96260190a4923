#pragma once
// What the attention kernels do with a tile of queries of one head and a tile of keys of its sequence. With
// Tiles::kPlain it is known at compile time that a score is a product times the scale, that a query sees one run of
// keys (all, or a window of them), and that there is no mask and no table. Such a kernel has a quarter of the
// instructions of the general one, whose speed they limit.

#include <variant>

#include "attune/kernels/cuda/attention/attention_tiles.h"
#include "attune/kernels/cuda/attention/attention_view.h"
#include "attune/kernels/cuda/numbers.h"

namespace attune::cuda {

/// Attention of one sequence in one pass. a and b are numbers of queries and of keys (attention_pairs.h).
template <class Tiles>
struct AttentionSequence {
  const AttentionView<Tiles>& in;
  AttentionPairs pairs;
  int sequence;
  int64_t first_query, first_key;  // rows of q, and of k and v

  ATTUNE_DEVICE AttentionSequence(const AttentionView<Tiles>& view, const AttentionPass& pass,
                                  const TileOfSequence& tile, const int32_t* query_offsets, const int32_t* key_offsets)
      : in(view),
        pairs(pass, query_offsets[tile.sequence + 1] - query_offsets[tile.sequence],
              key_offsets[tile.sequence + 1] - key_offsets[tile.sequence], tile.residue),
        sequence(tile.sequence),
        first_query(query_offsets[tile.sequence]),
        first_key(key_offsets[tile.sequence]) {}

  ATTUNE_DEVICE int64_t query_row(int a) const { return first_query + (Tiles::kPlain ? a : pairs.query(a)); }
  ATTUNE_DEVICE int64_t key_row(int b) const { return first_key + (Tiles::kPlain ? b : pairs.key(b)); }
  /// The row of out and of dropout's mask.
  ATTUNE_DEVICE int64_t out_row(int a, int head) const { return query_row(a) * in.heads + head; }
  ATTUNE_DEVICE int distance(int a, int b) const { return pairs.key(b) - pairs.position(a); }
  ATTUNE_DEVICE bool sees(int a, int b) const {
    if constexpr (Tiles::kPlain) return pairs.allows_in_run(a, b);
    return pairs.allows(a, b) && !in.masked(sequence, pairs.query(a), pairs.key(b));
  }
};

/// Numbers first ... first + count - 1 of queries, or of keys: at most kTile.
struct TileRange {
  int first, count;
  ATTUNE_DEVICE TileRange(int begin, int end) : first(begin), count(end - begin < kTile ? end - begin : kTile) {}
};

/// A tile of queries of one head against a tile of keys. The rows of products are queries, the columns keys.
template <class Tiles>
struct AttentionBlockOf {
  using T = typename Tiles::Sum;
  using Source = typename Tiles::Source;
  const AttentionSequence<Tiles>& of;
  int head;
  TileRange queries, keys;

  ATTUNE_DEVICE int query(const Thread& thread, int i) const { return queries.first + Tiles::row(thread, i); }
  ATTUNE_DEVICE int key(const Thread& thread, int j) const { return keys.first + Tiles::column(thread, j); }
  ATTUNE_DEVICE bool has_query(const Thread& thread, int i) const { return Tiles::row(thread, i) < queries.count; }
  ATTUNE_DEVICE bool has_key(const Thread& thread, int j) const { return Tiles::column(thread, j) < keys.count; }
  ATTUNE_DEVICE bool has_relative_keys() const { return !Tiles::kPlain && of.in.terms.relative_keys != nullptr; }
  ATTUNE_DEVICE bool has_relative_values() const { return !Tiles::kPlain && of.in.terms.relative_values != nullptr; }
  ATTUNE_DEVICE int key_head() const { return of.in.group == 1 ? head : head / of.in.group; }

  // Where rows r of the tiles of queries and of keys begin. Those of plain kernels follow each other in memory.
  ATTUNE_DEVICE auto rows_of_q() const {
    if constexpr (Tiles::kPlain) {
      return
          [first = of.in.q.at(of.query_row(queries.first), head), row = of.in.q.row](int r) { return first + r * row; };
    } else {
      return [this](int r) { return of.in.q.at(of.query_row(queries.first + r), head); };
    }
  }
  ATTUNE_DEVICE auto rows_of_keys(const HeadsView<Source>& x) const {
    if constexpr (Tiles::kPlain) {
      return [first = x.at(of.key_row(keys.first), key_head()), row = x.row](int r) { return first + r * row; };
    } else {
      return [this, &x](int r) { return x.at(of.key_row(keys.first + r), key_head()); };
    }
  }
  // Of x [rows of out, d_v].
  ATTUNE_DEVICE auto rows_of_out(const Source* x) const {
    if constexpr (Tiles::kPlain) {
      return [first = x + of.out_row(queries.first, head) * of.in.v.d, row = int64_t{of.in.heads} * of.in.v.d](int r) {
        return first + r * row;
      };
    } else {
      return [this, x](int r) { return x + of.out_row(queries.first + r, head) * of.in.v.d; };
    }
  }

  ATTUNE_DEVICE void load_q(Thread& thread, int chunk, SharedTile<Tiles>& tile) const {
    tile.load(thread, queries.count, of.in.q.d, chunk, of.in.q.aligned, rows_of_q());
  }
  ATTUNE_DEVICE void load_k(Thread& thread, int chunk, SharedTile<Tiles>& tile) const {
    tile.load(thread, keys.count, of.in.k.d, chunk, of.in.k.aligned, rows_of_keys(of.in.k));
  }
  ATTUNE_DEVICE void load_v(Thread& thread, int chunk, SharedTile<Tiles>& tile) const {
    tile.load(thread, keys.count, of.in.v.d, chunk, of.in.v.aligned, rows_of_keys(of.in.v));
  }
  ATTUNE_DEVICE void load_out(Thread& thread, const Source* x, int chunk, SharedTile<Tiles>& tile) const {
    tile.load(thread, queries.count, of.in.v.d, chunk, is_aligned(x, of.in.v.d), rows_of_out(x));
  }

  /// Starts to read the tiles of keys and values, see SharedTile::start().
  ATTUNE_DEVICE void start_keys(const Thread& thread, SharedTile<Tiles>& k, SharedTile<Tiles>& v) const {
    k.start(thread, keys.count, of.in.k.d, of.in.k.aligned, rows_of_keys(of.in.k));
    v.start(thread, keys.count, of.in.v.d, of.in.v.aligned, rows_of_keys(of.in.v));
  }
  /// The same of queries and of x [rows of out, d_v].
  ATTUNE_DEVICE void start_queries(const Thread& thread, const Source* x, SharedTile<Tiles>& q,
                                   SharedTile<Tiles>& out) const {
    q.start(thread, queries.count, of.in.q.d, of.in.q.aligned, rows_of_q());
    out.start(thread, queries.count, of.in.v.d, is_aligned(x, of.in.v.d), rows_of_out(x));
  }

  /// part(query, key) += the sum over the columns c of a chunk of tile[query][c] * table[distance of the key][c]; rows
  /// of the table have d columns.
  ATTUNE_DEVICE void add_table_products(const Thread& thread, const SharedArray<typename Tiles::Stored>& tile,
                                        const T* table, int d, int chunk, TilePart<Tiles>& part) const {
    const int width = SharedTile<Tiles>::width_of(d, chunk);
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) {
        if (!has_query(thread, i) || !has_key(thread, j)) continue;
        const int row = AttentionTerms<T>::table_row(of.distance(query(thread, i), key(thread, j)), of.in.terms.clip);
        const T* const from = table + int64_t{row} * d + chunk * kTile;
        T sum = 0;
        for (int c = 0; c < width; ++c)
          sum += static_cast<T>(tile[Tiles::row(thread, i) * Tiles::kPitch + c]) * from[c];
        part.value[i][j] += sum;
      }
    }
  }

  /// part(query, column) += the sum over the keys of tile[query][key] * table[distance of the key][column]; the columns
  /// are those of a chunk.
  ATTUNE_DEVICE void add_table_rows(const Thread& thread, const SharedArray<typename Tiles::Stored>& tile,
                                    const T* table, int d, int chunk, TilePart<Tiles>& part) const {
    const int width = SharedTile<Tiles>::width_of(d, chunk);
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      if (!has_query(thread, i)) continue;
      for (int u = 0; u < keys.count; ++u) {
        const int row = AttentionTerms<T>::table_row(of.distance(query(thread, i), keys.first + u), of.in.terms.clip);
        const T* const from = table + int64_t{row} * d + chunk * kTile;
        const T factor = static_cast<T>(tile[Tiles::row(thread, i) * Tiles::kPitch + u]);
        ATTUNE_UNROLL
        for (int j = 0; j < Tiles::kColumns; ++j)
          if (Tiles::column(thread, j) < width) part.value[i][j] += factor * from[Tiles::column(thread, j)];
      }
    }
  }

  /// q . (k + relative key) of all pairs.
  ATTUNE_DEVICE TilePart<Tiles> key_products(Thread& thread, SharedTile<Tiles>& q, SharedTile<Tiles>& k) const {
    TilePart<Tiles> part;
    const int d = of.in.q.d;
    for (int chunk = 0; chunk * kTile < d; ++chunk) {
      load_q(thread, chunk, q);
      load_k(thread, chunk, k);
      Tiles::template multiply<false, true>(thread, q.data(), k.data(), SharedTile<Tiles>::width_of(d, chunk), part);
      if (has_relative_keys()) add_table_products(thread, q.data(), of.in.terms.relative_keys, d, chunk, part);
    }
    return part;
  }

  /// dy . (v + relative value) of all pairs.
  ATTUNE_DEVICE TilePart<Tiles> value_products(Thread& thread, const Source* d_out, SharedTile<Tiles>& dy,
                                               SharedTile<Tiles>& v) const {
    TilePart<Tiles> part;
    const int d = of.in.v.d;
    for (int chunk = 0; chunk * kTile < d; ++chunk) {
      load_out(thread, d_out, chunk, dy);
      load_v(thread, chunk, v);
      Tiles::template multiply<false, true>(thread, dy.data(), v.data(), SharedTile<Tiles>::width_of(d, chunk), part);
      if (has_relative_values()) add_table_products(thread, dy.data(), of.in.terms.relative_values, d, chunk, part);
    }
    return part;
  }

  /// True only if each query sees each key; may be false even then.
  ATTUNE_DEVICE bool sees_all() const {
    return Tiles::kPlain && queries.count == kTile && keys.count == kTile &&
           of.pairs.allows_all_in_run({queries.first, queries.first + kTile}, {keys.first, keys.first + kTile});
  }
  /// Whether the query of row i and the key of column j exist, and the query sees the key.
  ATTUNE_DEVICE bool sees(const Thread& thread, int i, int j) const {
    return has_query(thread, i) && has_key(thread, j) && of.sees(query(thread, i), key(thread, j));
  }
  ATTUNE_DEVICE typename AttentionTerms<T>::Score score(const Thread& thread, T product, int i, int j) const {
    if constexpr (Tiles::kPlain) return {product * of.in.terms.scale, 1};
    return of.in.terms.score(product, head, of.distance(query(thread, i), key(thread, j)));
  }

  /// Products become scores; -infinity where a query does not see a key.
  ATTUNE_DEVICE void form_scores(const Thread& thread, TilePart<Tiles>& part) const {
    const bool all = sees_all();
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) {
        T& value = part.value[i][j];
        value = all || sees(thread, i, j) ? score(thread, value, i, j).value : -infinity<T>();
      }
    }
  }

  /// Dropout's factors for the weights of a row; [j] is that of element j.
  struct DropoutRow {
    static constexpr int kQuads = Tiles::kColumns / kQuad;
    unsigned bits[kQuads];
    T scale;
    bool drops;
    /// Whether there are factors other than 1.
    ATTUNE_DEVICE bool active() const { return drops; }
    ATTUNE_DEVICE T operator[](int j) const {
      return !drops ? T{1} : (bits[j % kQuads] >> (j / kQuads) & 1u) != 0 ? scale : T{0};
    }
  };
  ATTUNE_DEVICE DropoutRow dropout_row(const Thread& thread, int i) const {
    DropoutRow row;
    row.scale = static_cast<T>(of.in.dropout.scale());
    row.drops = of.in.dropout.active();
    if (!row.drops) return row;
    ATTUNE_UNROLL
    for (int n = 0; n < DropoutRow::kQuads; ++n)
      row.bits[n] = has_query(thread, i)
                        ? of.in.dropout.quad(of.out_row(query(thread, i), head),
                                             of.pairs.first_quad(keys.first) + Tiles::column(thread, n))
                        : 0u;
    return row;
  }
};

/// Waits for the rows that were started, and calls next_rows() of both tiles.
template <class Tiles>
ATTUNE_DEVICE void next_rows(Thread& thread, SharedTile<Tiles>& a, SharedTile<Tiles>& b) {
  if (a.has_started() || b.has_started()) thread.wait_for_copies();
  a.next_rows();
  b.next_rows();
}

/// Whether kernels with Tiles::kPlain can compute this.
inline bool is_plain(const AttentionInputs& in) {
  const bool run =
      std::holds_alternative<FullAttention>(in.pattern) || std::holds_alternative<SlidingWindow>(in.pattern);
  return run && !in.mask.defined() && in.slopes.empty() && !in.relative_keys.defined() &&
         !in.relative_values.defined() && !in.distance_bias.defined() && in.soft_cap == 0;
}

/// Calls f with the type of the tiles.
template <bool kPlain, class F>
void for_attention_tiles(const AttentionInputs& in, F&& f) {
  const DType dtype = in.q.x.dtype();
  if (dtype == DType::bf16) return f.template operator()<TensorTiles<bfloat16, kPlain>>();
  if (in.bfloat16_products && dtype == DType::f32) return f.template operator()<TensorTiles<float, kPlain>>();
  dispatch_floating("attention", dtype, [&]<class T>(T) {  // float64 is for gradient checks
    f.template operator()<ScalarTiles<T, kPlain && std::is_same_v<T, float>>>();
  });
}
template <class F>
void for_attention_tiles(const AttentionInputs& in, F&& f) {
  is_plain(in) ? for_attention_tiles<true>(in, f) : for_attention_tiles<false>(in, f);
}

}  // namespace attune::cuda

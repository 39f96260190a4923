#include <algorithm>

#include "attune/base/rounding.h"
#include "attune/kernels/attention/attention.h"
#include "attune/kernels/cuda/attention/attention_gradients.h"
#include "attune/kernels/cuda/attention/attention_tables.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/runtime/launch.h"

namespace attune {
namespace {

// d_out . out of each row and head: 2^log_group threads for each, up to a warp.
template <class T, class Source>
struct OutProducts {
  static constexpr int kThreads = 256;
  const Source* out;
  const Source* d_out;
  T* products;
  int64_t rows;
  int d;
  bool fours;  // whether the rows are read as Fours
  int log_group;

  OutProducts(const Tensor& of_out, const Tensor& of_d_out, const Tensor& to, int64_t width)
      : out(of_out.data<Source>()),
        d_out(of_d_out.data<Source>()),
        products(to.data<T>()),
        rows(to.numel()),
        d(static_cast<int>(width)),
        fours(d % 4 == 0 && cuda::has_fours(out) && cuda::has_fours(d_out)),
        log_group(5) {
    static_assert(cuda::kWarp == 1 << 5);
    while (fours && log_group > 0 && 4 << (log_group - 1) >= d) --log_group;
  }
  int64_t blocks() const { return divide_up(rows << log_group, kThreads); }

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int group = 1 << log_group, member = thread.index() & (group - 1);
    const int64_t row = (thread.block() * kThreads + thread.index()) >> log_group;
    T sum = 0;
    if (row < rows) {
      const Source* const y = out + row * d;
      const Source* const dy = d_out + row * d;
      if (fours) {
        for (int c = 4 * member; c < d; c += 4 * group) {
          const cuda::Four<Source> a = cuda::read_four(y, c), b = cuda::read_four(dy, c);
          ATTUNE_UNROLL
          for (int n = 0; n < 4; ++n) sum += static_cast<T>(a.value[n]) * static_cast<T>(b.value[n]);
        }
      } else {
        for (int c = member; c < d; c += group) sum += static_cast<T>(y[c]) * static_cast<T>(dy[c]);
      }
    }
    for (int mask = 1; mask < group; mask *= 2) sum += thread.shuffle_xor(sum, mask);
    if (row < rows && member == 0) products[row] = sum;
  }
};

// What one block writes of the gradients of a head: a chunk of the columns of `count` rows.
template <class Tiles>
struct GradientTile {
  using T = typename Tiles::Sum;
  using Source = typename Tiles::Source;
  cuda::HeadsView<Source> gradients;
  int head, count, chunk;
  bool adds;

  // Writes factor * part, or adds it; row r of the part is row row_of(r) of the gradients.
  template <class RowOf>
  ATTUNE_DEVICE void write(const cuda::Thread& thread, const cuda::TilePart<Tiles>& part, T factor,
                           RowOf row_of) const {
    ATTUNE_UNROLL
    for (int i = 0; i < Tiles::kRows; ++i) {
      const int r = Tiles::row(thread, i);
      if (r >= count) continue;
      Source* const row = gradients.at(row_of(r), head) + chunk * cuda::kTile;
      ATTUNE_UNROLL
      for (int j = 0; j < Tiles::kColumns; ++j) {
        const int c = Tiles::column(thread, j);
        if (chunk * cuda::kTile + c >= gradients.d) continue;
        const T value = part.value[i][j] * factor;
        row[c] = static_cast<Source>(adds ? static_cast<T>(row[c]) + value : value);
      }
    }
  }
};

constexpr int chunks_of(int d) {
  return (d + cuda::kTile - 1) / cuda::kTile;
}

// One block for a tile of queries of one head and a chunk of their columns.
template <class Tiles>
struct QueryGradients {
  using T = typename Tiles::Sum;
  static constexpr int kThreads = Tiles::kThreads;
  cuda::AttentionBackwardView<Tiles> view;
  cuda::HeadsView<typename Tiles::Source> dq;
  int chunks;
  bool adds;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t job = thread.block() / chunks;
    const int chunk = static_cast<int>(thread.block() % chunks), head = static_cast<int>(job % view.in.heads);
    const cuda::TileOfSequence tile = view.tiles[job / view.in.heads];
    const cuda::AttentionSequence<Tiles> of(view.in, view.pass, tile, view.query_offsets, view.key_offsets);
    const cuda::TileRange queries(tile.first, of.pairs.queries().end);
    cuda::BackwardTiles<Tiles> tiles(thread);

    cuda::TilePart<Tiles> sum;
    const cuda::NumberRange seen = of.pairs.keys_of({queries.first, queries.first + queries.count});
    const auto block_of = [&](int b) { return cuda::AttentionBlockOf<Tiles>{of, head, queries, {b, seen.end}}; };
    const auto start = [&](int b) {
      if (b < seen.end) block_of(b).start_keys(thread, tiles.k, tiles.v);
    };
    start(seen.begin);
    for (int b = seen.begin; b < seen.end; b += cuda::kTile) {
      const cuda::AttentionBlockOf<Tiles> block = block_of(b);
      tiles.next_keys(thread);
      start(b + cuda::kTile);
      const cuda::PairGradients<Tiles> pairs = form_gradients(thread, view, block, tiles);
      block.load_k(thread, chunk, tiles.k);
      multiply_part(thread, pairs.d_scores, tiles.factors, tiles.k, block.keys.count, sum);
      if (!block.has_relative_keys()) continue;
      tiles.factors.store(thread, pairs.d_scores);
      block.add_table_rows(thread, tiles.factors.data(), view.in.terms.relative_keys, view.in.q.d, chunk, sum);
    }
    const GradientTile<Tiles> to{dq, head, queries.count, chunk, adds};
    to.write(thread, sum, view.in.terms.scale, [&](int r) { return of.query_row(queries.first + r); });
  }
};

// One block for a tile of keys of one key head and a chunk of the columns of keys and values. It walks over the heads
// that share the key head and over their queries.
template <class Tiles>
struct KeyGradients {
  using T = typename Tiles::Sum;
  static constexpr int kThreads = Tiles::kThreads;
  cuda::AttentionBackwardView<Tiles> view;
  cuda::HeadsView<typename Tiles::Source> dk, dv;
  int chunks;
  bool adds;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int key_heads = view.in.heads / view.in.group;
    const int64_t job = thread.block() / chunks;
    const int chunk = static_cast<int>(thread.block() % chunks), key_head = static_cast<int>(job % key_heads);
    const cuda::TileOfSequence tile = view.tiles[job / key_heads];
    const cuda::AttentionSequence<Tiles> of(view.in, view.pass, tile, view.query_offsets, view.key_offsets);
    const cuda::TileRange keys(tile.first, of.pairs.keys().end);
    cuda::BackwardTiles<Tiles> tiles(thread);

    cuda::TilePart<Tiles> key_sum, value_sum;
    const cuda::NumberRange seers = of.pairs.queries_of({keys.first, keys.first + keys.count});
    const int first_head = key_head * view.in.group, end_head = first_head + view.in.group;
    const auto block_of = [&](int head, int a) {
      return cuda::AttentionBlockOf<Tiles>{of, head, {a, seers.end}, keys};
    };
    const auto start = [&](int head, int a) {
      if (head < end_head && a < seers.end) block_of(head, a).start_queries(thread, view.d_out, tiles.q, tiles.dy);
    };
    start(first_head, seers.begin);
    for (int head = first_head; head < end_head; ++head) {
      for (int a = seers.begin; a < seers.end; a += cuda::kTile) {
        const cuda::AttentionBlockOf<Tiles> block = block_of(head, a);
        tiles.next_queries(thread);
        const bool last = a + cuda::kTile >= seers.end;
        start(last ? head + 1 : head, last ? seers.begin : a + cuda::kTile);
        const cuda::PairGradients<Tiles> pairs = form_gradients(thread, view, block, tiles);
        if (chunk * cuda::kTile < view.in.v.d) {
          tiles.factors.store(thread, pairs.weights);
          block.load_out(thread, view.d_out, chunk, tiles.dy);
          Tiles::template multiply<true, false>(thread, tiles.factors.data(), tiles.dy.data(), block.queries.count,
                                                value_sum);
        }
        if (chunk * cuda::kTile < view.in.k.d) {
          tiles.factors.store(thread, pairs.d_scores);
          block.load_q(thread, chunk, tiles.q);
          Tiles::template multiply<true, false>(thread, tiles.factors.data(), tiles.q.data(), block.queries.count,
                                                key_sum);
        }
      }
    }
    const auto row_of = [&](int r) { return of.key_row(keys.first + r); };
    const GradientTile<Tiles> to_keys{dk, key_head, keys.count, chunk, adds};
    const GradientTile<Tiles> to_values{dv, key_head, keys.count, chunk, adds};
    to_keys.write(thread, key_sum, view.in.terms.scale, row_of);
    to_values.write(thread, value_sum, T{1}, row_of);
  }
};

template <class Tiles>
void backward(Cuda device, const AttentionInputs& in, cuda::AttentionBackwardView<Tiles> view,
              const cuda::AttentionCall<Tiles>& call, const AttentionGradients& gradients) {
  const size_t shared = cuda::BackwardTiles<Tiles>::kBytes;
  const int query_chunks = chunks_of(view.in.q.d), key_chunks = chunks_of(std::max(view.in.k.d, view.in.v.d));
  cuda::TableGradients<Tiles> tables(device, in, gradients);
  for (const auto& pass : call.passes()) {
    const bool adds = &pass != &call.passes().front();
    view.pass = pass.pass;
    view.tiles = pass.queries;
    cuda::launch(
        device, "attention gradient",
        {.blocks = pass.query_count * in.q.heads * query_chunks, .threads = Tiles::kThreads, .shared_bytes = shared},
        QueryGradients<Tiles>{view, gradients.dq, query_chunks, adds});
    tables.add(view, pass.query_count);
    view.tiles = pass.keys;
    cuda::launch(
        device, "attention gradient",
        {.blocks = pass.key_count * in.k.heads * key_chunks, .threads = Tiles::kThreads, .shared_bytes = shared},
        KeyGradients<Tiles>{view, gradients.dk, gradients.dv, key_chunks, adds});
  }
  tables.write();
}

}  // namespace

void attention_backward(Cuda device, const AttentionInputs& in, const Tensor& out, const Tensor& log_sum_exp,
                        const Tensor& d_out, const AttentionGradients& gradients) {
  const Tensor products = Tensor::empty_like(log_sum_exp);
  cuda::for_attention_tiles(in, [&]<class Tiles>() {
    using T = typename Tiles::Sum;
    using Source = typename Tiles::Source;
    const OutProducts<T, Source> sums(out, d_out, products, in.v.d);
    cuda::launch(device, "attention gradient", {.blocks = sums.blocks(), .threads = sums.kThreads}, sums);
    const cuda::AttentionCall<Tiles> call(device, in);
    backward<Tiles>(device, in,
                    {.in = call.view(),
                     .pass = {},
                     .query_offsets = call.query_offsets(),
                     .key_offsets = call.key_offsets(),
                     .tiles = nullptr,
                     .log_sum_exp = log_sum_exp.data<T>(),
                     .d_out = d_out.data<Source>(),
                     .products = products.data<T>()},
                    call, gradients);
  });
}

}  // namespace attune

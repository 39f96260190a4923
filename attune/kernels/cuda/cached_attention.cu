#include "attune/kernels/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <variant>
#include <vector>

#include "attune/kernels/cuda/attention_terms.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

constexpr int kMostKeys = 256;  // of a piece
constexpr int kKeyThreads = 8;  // that form one product of a query and a key
constexpr int kAtOnce = 4;      // rows of the cache that a thread reads before it computes with them

// Keys of a piece of a row that sees so many. Pieces are worked on at the same time: those of short rows are small, so
// that one sequence alone has work for the whole GPU. This follows from the row alone, as its result has to.
ATTUNE_HOST_DEVICE int piece_size(int visible) {
  return visible <= 1024 ? 64 : visible <= 4096 ? 128 : kMostKeys;
}

// The keys that the last position of a sequence sees, numbered without gaps in ascending order: first the gathered
// ones, then a run that ends with the position itself.
struct CachedPattern {
  enum class Kind { run, strided, fixed };
  Kind kind;
  int size, summary;
};

class VisibleKeys {
 public:
  ATTUNE_HOST_DEVICE VisibleKeys(const CachedPattern& pattern, int length) : pattern_(pattern) {
    if (length == 0) return;
    const int position = length - 1;
    const int blocks = position / pattern.size;
    run_ = pattern.kind == CachedPattern::Kind::fixed ? blocks * pattern.size
           : length > pattern.size                    ? length - pattern.size
                                                      : 0;
    if (pattern.kind == CachedPattern::Kind::strided) gathered_ = blocks;
    if (pattern.kind == CachedPattern::Kind::fixed) gathered_ = blocks * pattern.summary;
    residue_ = position % pattern.size;
    count_ = gathered_ + length - run_;
  }

  ATTUNE_HOST_DEVICE int count() const { return count_; }
  ATTUNE_HOST_DEVICE int position(int i) const {
    if (i >= gathered_) return run_ + i - gathered_;
    if (pattern_.kind == CachedPattern::Kind::strided) return residue_ + i * pattern_.size;
    return i / pattern_.summary * pattern_.size + pattern_.size - pattern_.summary + i % pattern_.summary;
  }

 private:
  CachedPattern pattern_;
  int run_ = 0, gathered_ = 0, residue_ = 0, count_ = 0;
};

// Sizes are limited to the longest list, which changes nothing.
int limited(int64_t size, int64_t longest) {
  return static_cast<int>(std::min(size, std::max<int64_t>(longest, 1)));
}
CachedPattern cached(const FullAttention&, int64_t longest) {
  return {CachedPattern::Kind::run, limited(longest, longest), 1};
}
CachedPattern cached(const SlidingWindow& p, int64_t longest) {
  return {CachedPattern::Kind::run, limited(p.size, longest), 1};
}
CachedPattern cached(const StridedAttention& p, int64_t longest) {
  return {CachedPattern::Kind::strided, limited(p.stride, longest), 1};
}
CachedPattern cached(const FixedAttention& p, int64_t longest) {
  return {CachedPattern::Kind::fixed, limited(p.stride, longest), limited(p.summary, longest)};
}
CachedPattern pattern_of(const AttentionPattern& pattern, int64_t longest) {
  return std::visit([&](const auto& p) { return cached(p, longest); }, pattern);
}

// The slots of a query row, and its pieces.
struct CachedRow {
  int32_t first_slot, length;
  int32_t first_piece, pieces;
};

// Visible keys first ... first + count - 1 of a row.
struct CachedPiece {
  int32_t row, first, count;
};

// Columns of the rows of a cache.
template <class T>
struct PagesView {
  const T* const* blocks;
  int64_t width, head_width;
  ATTUNE_DEVICE const T* row(int slot, int head) const {
    return blocks[slot / Pages::kBlockRows] + slot % Pages::kBlockRows * width + head * head_width;
  }
};

// What both kernels read and write. Partial results are [pieces, heads, ...].
template <class T>
struct CachedView {
  cuda::AttentionTerms<T> terms;
  CachedPattern pattern;
  int group, kv_heads, d_k, d_v;
  const T* q;
  PagesView<T> keys, values;
  const int32_t* slots;
  const CachedRow* rows;
  const CachedPiece* pieces;
  T* largest;  // score of a piece; then the factor that makes its sums those of the row
  T* sums;     // of exp(score - largest)
  T* partial;  // sums of values, weighed the same way
  T* weights;  // [rows, heads, most_keys], or null
  int64_t most_keys;
  T* out;
};

// One block for a piece of a row and at most kHeads query heads that share a key head. Threads read kWide neighbouring
// columns at once, one or four.
template <class T, int kWide, int kHeads>
struct AttendPiece {
  static constexpr int kThreads = 128;
  static constexpr int kBlocks = sizeof(T) == sizeof(float) ? 4 : 1;  // at once on a multiprocessor
  static constexpr size_t kSharedBytes =
      cuda::shared_bytes_of<int>(kMostKeys) + 2 * cuda::shared_bytes_of<const T*>(kMostKeys) +
      cuda::shared_bytes_of<T>(kMostKeys * kHeads) + cuda::shared_bytes_of<T>(kThreads * kHeads * kWide);
  CachedView<T> in;

  static int64_t blocks_of_piece(const CachedView<T>& view) {
    return int64_t{view.kv_heads} * parts_of_group(view.group);
  }

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int parts = parts_of_group(in.group), part = static_cast<int>(thread.block() % parts);
    const int64_t job = thread.block() / parts, number = job / in.kv_heads;
    const int key_head = static_cast<int>(job % in.kv_heads), left = in.group - part * kHeads;
    const CachedPiece piece = in.pieces[number];
    const CachedRow row = in.rows[piece.row];
    const Piece work{.number = number,
                     .row = piece.row,
                     .count = piece.count,
                     .position = row.length - 1,
                     .head = key_head * in.group + part * kHeads,
                     .heads = left < kHeads ? left : kHeads,
                     .distances = thread.shared<int>(kMostKeys),
                     .keys = {thread.shared<const T*>(kMostKeys), in.d_k, in.terms.relative_keys},
                     .values = {thread.shared<const T*>(kMostKeys), in.d_v, in.terms.relative_values},
                     .weights = thread.shared<T>(kMostKeys * kHeads),
                     .sums = thread.shared<T>(kThreads * kHeads * kWide)};
    const VisibleKeys visible(in.pattern, row.length);
    for (int u = thread.index(); u < work.count; u += thread.count()) {
      const int position = visible.position(piece.first + u), slot = in.slots[row.first_slot + position];
      work.distances[u] = position - work.position;
      work.keys.first[u] = in.keys.row(slot, key_head);
      work.values.first[u] = in.values.row(slot, key_head);
    }
    thread.barrier();
    form_products(thread, work);
    thread.barrier();
    for (int h = thread.warp(); h < work.heads; h += thread.warps()) weigh(thread, work, h);
    thread.barrier();
    add_values(thread, work);
  }

 private:
  using Columns = std::conditional_t<kWide == 4, cuda::Four<T>, cuda::One<T>>;
  struct Batch {
    Columns of[kAtOnce];
  };

  // The rows of the piece in the cache.
  struct Rows {
    cuda::SharedArray<const T*> first;  // where each begins
    int width;
    const T* relative;  // added by distance; or null
  };

  // What the block works on, and what its threads share.
  struct Piece {
    int64_t number;
    int row, count;   // count: of visible keys
    int position;     // of the query
    int head, heads;  // of queries
    cuda::SharedArray<int> distances;
    Rows keys, values;
    cuda::SharedArray<T> weights;  // [count, kHeads]; products of queries and keys before
    cuda::SharedArray<T> sums;     // of values, by group of threads

    ATTUNE_DEVICE int key(int u) const { return u < count ? u : count - 1; }
  };

  ATTUNE_HOST_DEVICE static int parts_of_group(int group) { return (group + kHeads - 1) / kHeads; }

  ATTUNE_DEVICE static Columns read(const T* row, int c) { return cuda::read_group<Columns>(row, c); }

  // Columns c ... c + kWide - 1 of rows u, u + step, ...; of the last row in place of those behind it.
  ATTUNE_DEVICE Batch read(const Piece& work, const Rows& rows, int u, int step, int c) const {
    Batch batch;
    ATTUNE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) batch.of[j] = read(rows.first[work.key(u + j * step)], c);
    if (rows.relative == nullptr) return batch;
    ATTUNE_UNROLL
    for (int j = 0; j < kAtOnce; ++j) {
      const int row = cuda::AttentionTerms<T>::table_row(work.distances[work.key(u + j * step)], in.terms.clip);
      const Columns added = read(rows.relative + int64_t{row} * rows.width, c);
      ATTUNE_UNROLL
      for (int e = 0; e < kWide; ++e) batch.of[j].value[e] += added.value[e];
    }
    return batch;
  }

  ATTUNE_DEVICE void form_products(cuda::Thread& thread, const Piece& work) const {
    const int step = thread.count() / kKeyThreads, first_column = thread.index() % kKeyThreads * kWide;
    const T* const queries = in.q + (int64_t{work.row} * in.terms.heads + work.head) * in.d_k;
    for (int first = 0; first < work.count; first += kAtOnce * step) {
      const int u = first + thread.index() / kKeyThreads;
      T sums[kAtOnce][static_cast<size_t>(kHeads)] = {};
      for (int c = first_column; c < in.d_k; c += kKeyThreads * kWide) {
        const Batch keys = read(work, work.keys, u, step, c);
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          const Columns query = read(queries + (h < work.heads ? h : 0) * in.d_k, c);
          ATTUNE_UNROLL
          for (int j = 0; j < kAtOnce; ++j) {
            ATTUNE_UNROLL
            for (int e = 0; e < kWide; ++e) sums[j][h] += query.value[e] * keys.of[j].value[e];
          }
        }
      }
      ATTUNE_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          T sum = sums[j][h];
          ATTUNE_UNROLL
          for (int mask = 1; mask < kKeyThreads; mask *= 2) sum += thread.shuffle_xor(sum, mask);
          if (first_column == 0 && u + j * step < work.count) work.weights[(u + j * step) * kHeads + h] = sum;
        }
      }
    }
  }

  // The products of head h become weights relative to the largest.
  ATTUNE_DEVICE void weigh(cuda::Thread& thread, const Piece& work, int h) const {
    const int64_t head = work.head + h, place = work.number * in.terms.heads + head;
    T largest = -cuda::infinity<T>(), sum = 0;
    for (int u = thread.lane(); u < work.count; u += cuda::kWarp) {
      T& score = work.weights[u * kHeads + h];
      score = in.terms.score(score, work.head + h, work.distances[u]).value;
      largest = cuda::Largest{}(largest, score);
    }
    largest = thread.warp_reduce(largest, cuda::Largest{});
    T* const kept =
        in.weights == nullptr ? nullptr : in.weights + (int64_t{work.row} * in.terms.heads + head) * in.most_keys;
    for (int u = thread.lane(); u < work.count; u += cuda::kWarp) {
      T& weight = work.weights[u * kHeads + h];
      weight = std::exp(weight - largest);
      sum += weight;
      if (kept != nullptr) kept[work.position + work.distances[u]] = weight;
    }
    sum = thread.warp_reduce(sum, cuda::Sum{});
    if (thread.lane() != 0) return;
    in.largest[place] = largest;
    in.sums[place] = sum;
  }

  // As many columns at a time as there are threads for. Where these are few, groups of threads divide the keys.
  ATTUNE_DEVICE void add_values(cuda::Thread& thread, const Piece& work) const {
    for (int first = 0; first < in.d_v; first += thread.count() * kWide) {
      const int left = (in.d_v - first) / kWide, of_group = left < thread.count() ? left : thread.count();
      const int width = of_group * kWide, groups = thread.count() / of_group;
      const int group = thread.index() / of_group, c = thread.index() % of_group * kWide;
      if (group < groups) {
        Columns sums[static_cast<size_t>(kHeads)] = {};
        for (int u = group; u < work.count; u += kAtOnce * groups) {
          const Batch values = read(work, work.values, u, groups, first + c);
          ATTUNE_UNROLL
          for (int j = 0; j < kAtOnce; ++j) {
            const bool exists = u + j * groups < work.count;
            ATTUNE_UNROLL
            for (int h = 0; h < kHeads; ++h) {
              const T weight = work.weights[work.key(u + j * groups) * kHeads + h];
              ATTUNE_UNROLL
              for (int e = 0; e < kWide; ++e) sums[h].value[e] += weight * (exists ? values.of[j].value[e] : T{0});
            }
          }
        }
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h) {
          ATTUNE_UNROLL
          for (int e = 0; e < kWide; ++e) work.sums[(group * kHeads + h) * width + c + e] = sums[h].value[e];
        }
      }
      thread.barrier();
      for (int i = thread.index(); i < work.heads * width; i += thread.count()) {
        T sum = 0;
        for (int g = 0; g < groups; ++g) sum += work.sums[g * kHeads * width + i];
        const int64_t place = work.number * in.terms.heads + work.head + i / width;
        in.partial[place * in.d_v + first + i % width] = sum;
      }
      thread.barrier();
    }
  }
};

// One block for a row and a head: its pieces, in their order.
template <class T>
struct CombinePieces {
  static constexpr int kThreads = 512;
  CachedView<T> in;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t head = thread.block() % in.terms.heads;
    const CachedRow row = in.rows[thread.block() / in.terms.heads];
    T largest = -cuda::infinity<T>(), sum = 0;
    for (int p = thread.index(); p < row.pieces; p += thread.count())
      largest = cuda::Largest{}(largest, in.largest[place(row, p, head)]);
    largest = thread.reduce(largest, cuda::Largest{});
    for (int p = thread.index(); p < row.pieces; p += thread.count()) {
      T& factor = in.largest[place(row, p, head)];
      factor = std::exp(factor - largest);
      sum += in.sums[place(row, p, head)] * factor;
    }
    sum = thread.reduce(sum, cuda::Sum{});
    thread.barrier();  // now all factors are there
    for (int c = thread.index(); c < in.d_v; c += thread.count()) {
      T value = 0;
      for (int p = 0; p < row.pieces; ++p)
        value += in.partial[place(row, p, head) * in.d_v + c] * in.largest[place(row, p, head)];
      in.out[thread.block() * in.d_v + c] = row.pieces == 0 ? T{0} : value / sum;
    }
    if (in.weights == nullptr) return;
    const VisibleKeys visible(in.pattern, row.length);
    const int size = piece_size(visible.count());
    for (int i = thread.index(); i < visible.count(); i += thread.count())
      in.weights[thread.block() * in.most_keys + visible.position(i)] *= in.largest[place(row, i / size, head)] / sum;
  }

 private:
  ATTUNE_DEVICE int64_t place(const CachedRow& row, int piece, int64_t head) const {
    return int64_t{row.first_piece + piece} * in.terms.heads + head;
  }
};

// What the host describes: the slots in use, the rows and their pieces, which follow from the row alone.
struct CachedWork {
  std::span<const int32_t> slots;
  std::vector<CachedRow> rows;
  std::vector<CachedPiece> pieces;
  CachedPattern pattern;

  explicit CachedWork(const CachedAttention& a) {
    int32_t begin = 0, end = 0, longest = 0;
    for (size_t r = 0; r < a.begin.size(); ++r) {
      if (a.end[r] == a.begin[r]) continue;
      begin = end == 0 ? a.begin[r] : std::min(begin, a.begin[r]);
      end = std::max(end, a.end[r]);
      longest = std::max(longest, a.end[r] - a.begin[r]);
    }
    slots = a.slots.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    pattern = pattern_of(a.pattern, longest);
    for (size_t r = 0; r < a.begin.size(); ++r) {
      const int32_t length = a.end[r] - a.begin[r];
      const auto first = static_cast<int32_t>(pieces.size());
      const int count = VisibleKeys(pattern, length).count();
      const int size = piece_size(count);
      for (int i = 0; i < count; i += size) pieces.push_back({static_cast<int32_t>(r), i, std::min(size, count - i)});
      rows.push_back({a.begin[r] - begin, length, first, static_cast<int32_t>(pieces.size()) - first});
    }
  }
};

// Where the blocks of the pages begin.
template <class T>
std::vector<const T*> blocks_of(const Pages& pages) {
  std::vector<const T*> blocks;
  for (int64_t slot = 0; slot < pages.capacity(); slot += Pages::kBlockRows) blocks.push_back(pages.row<T>(slot));
  return blocks;
}

// Whether all rows can be read in fours.
template <class T>
bool has_fours(const CachedView<T>& view, const std::vector<const T*>& key_blocks,
               const std::vector<const T*>& value_blocks) {
  const auto all = [](const std::vector<const T*>& starts) {
    return std::ranges::all_of(starts, [](const T* x) { return cuda::has_fours(x); });
  };
  return view.d_k % 4 == 0 && view.d_v % 4 == 0 && view.values.head_width % 4 == 0 && all(key_blocks) &&
         all(value_blocks) && all({view.q, view.terms.relative_keys, view.terms.relative_values});
}

template <class Attend, class T>
void attend_pieces(Cuda device, const CachedView<T>& view, int64_t pieces) {
  cuda::launch(device, "cached_attention",
               {.blocks = pieces * Attend::blocks_of_piece(view),
                .threads = Attend::kThreads,
                .shared_bytes = Attend::kSharedBytes},
               Attend{view});
}

template <class T>
void attend(Cuda device, const CachedAttention& a, const CachedWork& work) {
  const int64_t heads = a.q.size(1), d_v = a.out.size(2), pieces = static_cast<int64_t>(work.pieces.size());
  const std::vector<const T*> key_blocks = blocks_of<T>(a.keys), value_blocks = blocks_of<T>(a.values);
  cuda::PackedTables tables;
  const size_t keys = tables.add<const T*>(key_blocks), values = tables.add<const T*>(value_blocks);
  const size_t rows = tables.add<CachedRow>(work.rows), list = tables.add<CachedPiece>(work.pieces);
  const size_t slots = tables.add<int32_t>(work.slots);
  tables.copy_to(device);
  const Tensor slopes = cuda::slopes_on<T>(device, a.slopes);
  const TensorOptions options{a.q.dtype(), a.q.device()};
  const Tensor largest = Tensor::empty({pieces, heads}, options), sums = Tensor::empty({pieces, heads}, options);
  const Tensor partial = Tensor::empty({pieces, heads, d_v}, options);
  const CachedView<T> view{.terms = cuda::terms_of<T>(a, heads, slopes),
                           .pattern = work.pattern,
                           .group = static_cast<int>(heads / a.kv_heads),
                           .kv_heads = static_cast<int>(a.kv_heads),
                           .d_k = static_cast<int>(a.q.size(2)),
                           .d_v = static_cast<int>(d_v),
                           .q = a.q.data<T>(),
                           .keys = {tables.at<const T*>(keys), a.keys.width(), a.q.size(2)},
                           .values = {tables.at<const T*>(values), a.values.width(), a.values.width() / a.kv_heads},
                           .slots = tables.at<int32_t>(slots),
                           .rows = tables.at<CachedRow>(rows),
                           .pieces = tables.at<CachedPiece>(list),
                           .largest = largest.data<T>(),
                           .sums = sums.data<T>(),
                           .partial = partial.data<T>(),
                           .weights = data_or_null<T>(a.weights),
                           .most_keys = a.weights.defined() ? a.weights.size(2) : 0,
                           .out = a.out.data<T>()};
  if (!has_fours(view, key_blocks, value_blocks)) {
    attend_pieces<AttendPiece<T, 1, 8>>(device, view, pieces);
  } else if (view.group == 1) {
    attend_pieces<AttendPiece<T, 4, 1>>(device, view, pieces);
  } else {
    attend_pieces<AttendPiece<T, 4, 8>>(device, view, pieces);
  }
  using Combine = CombinePieces<T>;
  cuda::launch(device, "cached_attention",
               {.blocks = a.q.size(0) * heads, .threads = cuda::threads_for(d_v, Combine::kThreads)}, Combine{view});
}

}  // namespace

void cached_attention_forward(Cuda device, const CachedAttention& a) {
  const CachedWork work(a);
  dispatch_floating("cached_attention", a.q.dtype(), [&]<class T>(T) { attend<T>(device, a, work); });
}

}  // namespace attune

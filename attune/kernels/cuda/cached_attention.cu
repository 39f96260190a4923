#include "attune/kernels/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "attune/kernels/cuda/attention_terms.h"
#include "attune/kernels/cuda/launch.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

constexpr int kPiece = 256;     // the most keys of a piece: pieces are worked on at the same time
constexpr int kHeads = 8;       // the most query heads of a block, which share a key head
constexpr int kKeyThreads = 8;  // that form one product of a query and a key
constexpr int kThreadCount = 128;

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

// Visible keys first ... first + kPiece - 1 of a row, where they exist.
struct CachedPiece {
  int32_t row, first;
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
  T* largest;  // score of a piece
  T* sums;     // of exp(score - largest)
  T* partial;  // sums of values, weighed the same way
  T* weights;  // [rows, heads, most_keys], or null
  int64_t most_keys;
  T* out;
};

// One block for a piece of a row and at most kHeads heads that share a key head.
template <class T>
struct AttendPiece {
  static constexpr int kThreads = kThreadCount;
  CachedView<T> in;

  // What the block works on.
  struct Piece {
    int64_t number;
    int row, first, count;  // visible keys
    int length;             // of the row
    int head, heads, key_head;
    VisibleKeys visible;
  };

  ATTUNE_HOST_DEVICE static int head_blocks(int group) { return (group + kHeads - 1) / kHeads; }

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int parts = head_blocks(in.group);
    const int64_t job = thread.block() / parts;
    const int part = static_cast<int>(thread.block() % parts), key_head = static_cast<int>(job % in.kv_heads);
    const CachedPiece piece = in.pieces[job / in.kv_heads];
    const CachedRow row = in.rows[piece.row];
    const VisibleKeys visible(in.pattern, row.length);
    const int left = visible.count() - piece.first, left_heads = in.group - part * kHeads;
    const Piece work{job / in.kv_heads,
                     piece.row,
                     piece.first,
                     left < kPiece ? left : kPiece,
                     row.length,
                     key_head * in.group + part * kHeads,
                     left_heads < kHeads ? left_heads : kHeads,
                     key_head,
                     visible};
    const cuda::SharedArray<T> scores = thread.shared<T>(kHeads * kPiece);
    const cuda::SharedArray<int> slots = thread.shared<int>(kPiece), positions = thread.shared<int>(kPiece);
    for (int u = thread.index(); u < work.count; u += thread.count()) {
      positions[u] = visible.position(piece.first + u);
      slots[u] = in.slots[row.first_slot + positions[u]];
    }
    thread.barrier();
    form_scores(thread, work, slots, positions, scores);
    thread.barrier();
    for (int h = thread.warp(); h < work.heads; h += thread.warps()) weigh(thread, work, h, positions, scores);
    thread.barrier();
    add_values(thread, work, slots, positions, scores);
  }

 private:
  ATTUNE_DEVICE void form_scores(cuda::Thread& thread, const Piece& work, const cuda::SharedArray<int>& slots,
                                 const cuda::SharedArray<int>& positions, const cuda::SharedArray<T>& scores) const {
    const int at_once = thread.count() / kKeyThreads, first_column = thread.index() % kKeyThreads;
    for (int first = 0; first < work.count; first += at_once) {
      const int u = first + thread.index() / kKeyThreads;
      const bool exists = u < work.count;
      const int distance = exists ? positions[u] - (work.length - 1) : 0;
      const T* const key = in.keys.row(exists ? slots[u] : slots[0], work.key_head);
      const T* const relative =
          in.terms.relative_keys == nullptr
              ? nullptr
              : in.terms.relative_keys + int64_t{cuda::AttentionTerms<T>::table_row(distance, in.terms.clip)} * in.d_k;
      for (int h = 0; h < work.heads; ++h) {
        const T* const query = in.q + (int64_t{work.row} * in.terms.heads + work.head + h) * in.d_k;
        T sum = 0;
        for (int c = first_column; c < in.d_k; c += kKeyThreads)
          sum += query[c] * (relative == nullptr ? key[c] : key[c] + relative[c]);
        for (int mask = 1; mask < kKeyThreads; mask *= 2) sum += thread.shuffle_xor(sum, mask);
        if (exists && first_column == 0) scores[h * kPiece + u] = in.terms.score(sum, work.head + h, distance).value;
      }
    }
  }

  // The scores of head h become weights relative to the largest.
  ATTUNE_DEVICE void weigh(cuda::Thread& thread, const Piece& work, int h, const cuda::SharedArray<int>& positions,
                           const cuda::SharedArray<T>& scores) const {
    T largest = -cuda::infinity<T>(), sum = 0;
    for (int u = thread.lane(); u < work.count; u += cuda::kWarp)
      largest = cuda::Largest{}(largest, scores[h * kPiece + u]);
    largest = thread.warp_reduce(largest, cuda::Largest{});
    T* const kept = in.weights == nullptr
                        ? nullptr
                        : in.weights + (int64_t{work.row} * in.terms.heads + work.head + h) * in.most_keys;
    for (int u = thread.lane(); u < work.count; u += cuda::kWarp) {
      const T weight = std::exp(scores[h * kPiece + u] - largest);
      scores[h * kPiece + u] = weight;
      sum += weight;
      if (kept != nullptr) kept[positions[u]] = weight;
    }
    sum = thread.warp_reduce(sum, cuda::Sum{});
    if (thread.lane() != 0) return;
    in.largest[work.number * in.terms.heads + work.head + h] = largest;
    in.sums[work.number * in.terms.heads + work.head + h] = sum;
  }

  ATTUNE_DEVICE void add_values(const cuda::Thread& thread, const Piece& work, const cuda::SharedArray<int>& slots,
                                const cuda::SharedArray<int>& positions, const cuda::SharedArray<T>& weights) const {
    for (int c = thread.index(); c < in.d_v; c += thread.count()) {
      T sums[kHeads] = {};
      for (int u = 0; u < work.count; ++u) {
        T value = in.values.row(slots[u], work.key_head)[c];
        if (in.terms.relative_values != nullptr) {
          const int row = cuda::AttentionTerms<T>::table_row(positions[u] - (work.length - 1), in.terms.clip);
          value += in.terms.relative_values[int64_t{row} * in.d_v + c];
        }
        ATTUNE_UNROLL
        for (int h = 0; h < kHeads; ++h)
          if (h < work.heads) sums[h] += weights[h * kPiece + u] * value;
      }
      ATTUNE_UNROLL
      for (int h = 0; h < kHeads; ++h)
        if (h < work.heads) in.partial[(work.number * in.terms.heads + work.head + h) * in.d_v + c] = sums[h];
    }
  }
};

// One block for a row and a head: its pieces, in their order.
template <class T>
struct CombinePieces {
  static constexpr int kThreads = kThreadCount;
  CachedView<T> in;

  ATTUNE_DEVICE void operator()(cuda::Thread& thread) const {
    const int64_t row_number = thread.block() / in.terms.heads, head = thread.block() % in.terms.heads;
    const CachedRow row = in.rows[row_number];
    T largest = -cuda::infinity<T>(), sum = 0;
    for (int p = 0; p < row.pieces; ++p) largest = cuda::Largest{}(largest, in.largest[place(row, p, head)]);
    for (int p = 0; p < row.pieces; ++p) sum += in.sums[place(row, p, head)] * factor(row, p, head, largest);
    for (int c = thread.index(); c < in.d_v; c += thread.count()) {
      T value = 0;
      for (int p = 0; p < row.pieces; ++p)
        value += in.partial[place(row, p, head) * in.d_v + c] * factor(row, p, head, largest);
      in.out[thread.block() * in.d_v + c] = row.pieces == 0 ? T{0} : value / sum;
    }
    if (in.weights == nullptr) return;
    const VisibleKeys visible(in.pattern, row.length);
    for (int i = thread.index(); i < visible.count(); i += thread.count())
      in.weights[thread.block() * in.most_keys + visible.position(i)] *= factor(row, i / kPiece, head, largest) / sum;
  }

 private:
  ATTUNE_DEVICE int64_t place(const CachedRow& row, int piece, int64_t head) const {
    return int64_t{row.first_piece + piece} * in.terms.heads + head;
  }
  ATTUNE_DEVICE T factor(const CachedRow& row, int piece, int64_t head, T largest) const {
    return std::exp(in.largest[place(row, piece, head)] - largest);
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
      for (int i = 0; i < count; i += kPiece) pieces.push_back({static_cast<int32_t>(r), i});
      rows.push_back({a.begin[r] - begin, length, first, static_cast<int32_t>(pieces.size()) - first});
    }
  }
};

// Where the blocks of the pages begin.
template <class T>
Tensor blocks_of(Cuda device, const Pages& pages) {
  std::vector<const T*> blocks;
  for (int64_t slot = 0; slot < pages.capacity(); slot += Pages::kBlockRows) blocks.push_back(pages.row<T>(slot));
  return cuda::structs_on_device<const T*>(device, blocks);
}

template <class T>
void attend(Cuda device, const CachedAttention& a, const CachedWork& work) {
  const int64_t heads = a.q.size(1), d_v = a.out.size(2), pieces = static_cast<int64_t>(work.pieces.size());
  const Tensor key_blocks = blocks_of<T>(device, a.keys), value_blocks = blocks_of<T>(device, a.values);
  const Tensor slots = cuda::on_device(device, work.slots), slopes = cuda::slopes_on<T>(device, a.slopes);
  const Tensor rows = cuda::structs_on_device<CachedRow>(device, work.rows);
  const Tensor list = cuda::structs_on_device<CachedPiece>(device, work.pieces);
  const TensorOptions options{a.q.dtype(), a.q.device()};
  const Tensor largest = Tensor::empty({pieces, heads}, options), sums = Tensor::empty({pieces, heads}, options);
  const Tensor partial = Tensor::empty({pieces, heads, d_v}, options);
  const CachedView<T> view{
      .terms = cuda::terms_of<T>(a, heads, slopes),
      .pattern = work.pattern,
      .group = static_cast<int>(heads / a.kv_heads),
      .kv_heads = static_cast<int>(a.kv_heads),
      .d_k = static_cast<int>(a.q.size(2)),
      .d_v = static_cast<int>(d_v),
      .q = a.q.data<T>(),
      .keys = {static_cast<const T* const*>(key_blocks.raw()), a.keys.width(), a.q.size(2)},
      .values = {static_cast<const T* const*>(value_blocks.raw()), a.values.width(), a.values.width() / a.kv_heads},
      .slots = slots.data<int32_t>(),
      .rows = static_cast<const CachedRow*>(rows.raw()),
      .pieces = static_cast<const CachedPiece*>(list.raw()),
      .largest = largest.data<T>(),
      .sums = sums.data<T>(),
      .partial = partial.data<T>(),
      .weights = data_or_null<T>(a.weights),
      .most_keys = a.weights.defined() ? a.weights.size(2) : 0,
      .out = a.out.data<T>()};
  using Attend = AttendPiece<T>;
  cuda::launch(device, "cached_attention",
               {.blocks = pieces * a.kv_heads * Attend::head_blocks(view.group),
                .threads = Attend::kThreads,
                .shared_bytes = cuda::shared_bytes_of<T>(kHeads * kPiece) + 2 * cuda::shared_bytes_of<int>(kPiece)},
               Attend{view});
  cuda::launch(device, "cached_attention",
               {.blocks = a.q.size(0) * heads, .threads = cuda::threads_for(d_v, kThreadCount)},
               CombinePieces<T>{view});
}

}  // namespace

void cached_attention_forward(Cuda device, const CachedAttention& a) {
  const CachedWork work(a);
  dispatch_floating("cached_attention", a.q.dtype(), [&]<class T>(T) { attend<T>(device, a, work); });
}

}  // namespace attune

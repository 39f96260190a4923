#include "attune/kernels/attention/cached_attention.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

#include "attune/kernels/cuda/attention/cached_attention_piece.h"
#include "attune/kernels/cuda/attention/cached_attention_view.h"
#include "attune/kernels/cuda/fours.h"
#include "attune/kernels/cuda/numbers.h"
#include "attune/kernels/cuda/runtime/launch.h"
#include "attune/kernels/cuda/tables.h"

namespace attune {
namespace {

using cuda::CachedPattern;
using cuda::CachedPiece;
using cuda::CachedRow;
using cuda::CachedView;

// Sizes are limited to the longest list, which does not change what is visible.
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
    if (largest == -cuda::infinity<T>()) largest = 0;
    for (int p = thread.index(); p < row.pieces; p += thread.count()) {
      T& factor = in.largest[place(row, p, head)];
      factor = std::exp(factor - largest);
      sum += in.sums[place(row, p, head)] * factor;
    }
    sum = thread.reduce(sum, cuda::Sum{});
    if (sum == 0) sum = 1;  // no key, or scores of -infinity alone: zeros
    thread.barrier();       // now all factors are there
    for (int c = thread.index(); c < in.d_v; c += thread.count()) {
      T value = 0;
      for (int p = 0; p < row.pieces; ++p)
        value += in.partial[place(row, p, head) * in.d_v + c] * in.largest[place(row, p, head)];
      in.out[thread.block() * in.d_v + c] = value / sum;
    }
    if (in.weights == nullptr) return;
    const cuda::VisibleKeys visible(in.pattern, row.length);
    const int size = cuda::piece_size(visible.count());
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
      const int count = cuda::VisibleKeys(pattern, length).count();
      const int size = cuda::piece_size(count);
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
    attend_pieces<cuda::AttendPiece<T, 1, 8>>(device, view, pieces);
  } else if (view.group == 1) {
    attend_pieces<cuda::AttendPiece<T, 4, 1>>(device, view, pieces);
  } else {
    attend_pieces<cuda::AttendPiece<T, 4, 8>>(device, view, pieces);
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

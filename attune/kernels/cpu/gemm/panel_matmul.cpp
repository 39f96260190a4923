// After Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication": b is laid out in panels of 16
// columns. A block of rows of c takes all its terms before the next one begins: it stays in the second cache, as its
// rows of a do, while the panels go past.

#include "attune/kernels/cpu/gemm/panel_matmul.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/bfloat16.h"
#include "attune/kernels/cpu/gemm/bfloat16_vectors.h"
#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/kernels/cpu/vector_width.h"
#include "attune/tensor/buffer.h"

namespace attune::cpu {
namespace {

constexpr int64_t kRowsOfTile = 8;                   // of the largest tile
constexpr int64_t kRows = 16 * kRowsOfTile;          // of a at a time: up to 256 KiB
constexpr int64_t kMostOfPanel = int64_t{32} << 10;  // bytes of a panel at a time
constexpr int64_t kMostLaidOut = int64_t{8} << 20;   // bytes of b at a time
constexpr int64_t kRowsAhead = 16;                   // that are fetched before they are paired
constexpr int64_t kPanelsAtOnce = 16;                // that a thread lays out
constexpr int64_t kNearInputs = 512;                 // numbers of a from an input to the next, for wide vectors
constexpr int64_t kLeastPanels = 64;                 // of b at a time, where it has so many
constexpr int64_t kWholePanels = 24;                 // a multiple of 3 and 8, the panels of tiles
constexpr int64_t kMostSummed = 33;                  // panels of sums that are kept beside c: 264 KiB
constexpr int64_t kWorthAThread = int64_t{1} << 18;  // products that keep a thread busy for some ten microseconds

// Of numbers of type In, with sums in float32.
template <class In, class Out>
struct Product {
  const In* a;
  const In* b;
  const float* bias;
  Out* c;
  const MatmulShape& shape;
};

template <class In>
constexpr WeightFormat kFormat = std::is_same_v<In, float> ? WeightFormat::float32 : WeightFormat::bfloat16;
// Bytes of a panel at a time. Where vectors are smaller, first caches of 32 KiB are usual, which hold more than a
// panel.
int64_t bytes_of_panel() {
  return has_wide_vectors() ? kMostOfPanel : kMostOfPanel / 2;
}
// Inputs of k at a time.
template <class In>
int64_t inputs_at_once() {
  return bytes_of_panel() / (kPanelOutputs * static_cast<int64_t>(sizeof(In)));
}

// Rows [row, row + rows) by panels [panel, panel + panels) of the result.
struct Piece {
  int64_t row, rows, panel, panels;
};

// Inputs [k, k + inputs) of a panel of b, which is stored as [n, k]. Its last column is repeated to the panel's end.
// Two numbers of bfloat16 go together, as one of float32.
template <class In>
void lay_out_turned(const In* b, const MatmulShape& shape, int64_t panel, int64_t k, int64_t inputs, std::byte* to) {
  constexpr int64_t kTogether = sizeof(float) / sizeof(In);
  const auto column = [&](int64_t j) { return b + std::min(panel * kPanelOutputs + j, shape.n - 1) * shape.k + k; };
  std::array<const float*, kPanelOutputs> columns;
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    columns[static_cast<size_t>(j)] = reinterpret_cast<const float*>(column(j));
  lay_out_float_panel(columns.data(), inputs / kTogether, reinterpret_cast<float*>(to));
  if constexpr (kTogether == 2) {
    if (inputs % 2 == 0) return;
    auto* const last = reinterpret_cast<In*>(to + inputs / 2 * kPanelRow);
    for (int64_t j = 0; j < kPanelOutputs; ++j) {
      last[2 * j] = column(j)[inputs - 1];
      last[2 * j + 1] = In(0);
    }
  }
}

// Inputs of some panels, `count` outputs, from rows of b as they lie in memory, `width` numbers apart.
void lay_out_rows(const float* from, int64_t width, int64_t count, int64_t inputs, std::byte* to) {
  const int64_t whole = count / kPanelOutputs, rest = count % kPanelOutputs, next = inputs * kPanelOutputs;
  auto* at = reinterpret_cast<float*>(to);
  for (int64_t i = 0; i < inputs; ++i, from += width, at += kPanelOutputs) {
    for (int64_t j = 0; j < whole; ++j)
      std::memcpy(at + j * next, from + j * kPanelOutputs, kPanelOutputs * sizeof(float));
    if (rest == 0) continue;
    std::copy_n(from + whole * kPanelOutputs, rest, at + whole * next);
    std::fill_n(at + whole * next + rest, kPanelOutputs - rest, 0.0f);
  }
}
void lay_out_rows(const bfloat16* from, int64_t width, int64_t count, int64_t inputs, std::byte* to) {
  const int64_t step = round_up(inputs, 2) * kPanelOutputs;
  auto* at = reinterpret_cast<bfloat16*>(to);
  for (int64_t i = 0; i < inputs; i += 2, from += 2 * width, at += 2 * kPanelOutputs)
    pair_rows(from, i + 1 < inputs ? from + width : nullptr, count, at, step, kRowsAhead * width);
}

// Inputs [k, k + inputs) of rows [row, row + rows) of a.
struct RowBlock {
  int64_t row, rows, k, inputs;
};

// Returns the block as multiply() reads it: where it is, or a copy in `to`. Inputs that are far apart would each need a
// page of their own. Without wide vectors a tile reads a part of a cache line of each input; a copy was faster for
// every m that was measured.
FloatRows rows_of(const float* a, const MatmulShape& shape, const RowBlock& block, float* to) {
  if (!shape.transpose_a) return {a + block.row * shape.k + block.k, shape.k};
  const float* from = a + block.k * shape.m + block.row;
  if (has_wide_vectors() && shape.m <= kNearInputs) return {from, 1, shape.m};
  for (int64_t i = 0; i < block.inputs; ++i) std::copy_n(from + i * shape.m, block.rows, to + i * kRows);
  return {to, 1, kRows};
}
PairRows rows_of(const bfloat16* a, const MatmulShape& shape, const RowBlock& block, bfloat16* to) {
  const int64_t inputs = block.inputs;
  if (!shape.transpose_a) {
    const bfloat16* from = a + block.row * shape.k + block.k;
    if (inputs % 2 == 0) return {from, shape.k};
    for (int64_t r = 0; r < block.rows; ++r) {
      std::copy_n(from + r * shape.k, inputs, to + r * (inputs + 1));
      to[r * (inputs + 1) + inputs] = bfloat16(0);
    }
    return {to, inputs + 1};
  }
  const bfloat16* from = a + block.k * shape.m + block.row;
  for (int64_t i = 0; i < inputs; i += 2, from += 2 * shape.m)
    pair_rows(from, i + 1 < inputs ? from + shape.m : nullptr, block.rows, to + i * kRows, 2 * kPanelOutputs,
              kRowsAhead * shape.m);
  return {to, 2, 2 * kRows};
}

void multiply_block(const FloatRows& x, const PanelBlock& block, bool onto) {
  float_block(x, block, onto);
}
void multiply_block(const PairRows& x, const PanelBlock& block, bool onto) {
  bfloat16_vectors(x, block, onto);
}

// Inputs [begin, end) of some panels of b as multiply() reads them: in blocks of inputs_at_once(), each block panel
// after panel.
template <class In>
struct LaidOut {
  int64_t begin, end;
  int64_t panel, panels;
  std::byte* data;

  std::byte* at(int64_t of_panel, int64_t k) const {
    return data + panels * panel_bytes(kFormat<In>, k - begin) +
           (of_panel - panel) * panel_bytes(kFormat<In>, std::min(inputs_at_once<In>(), end - k));
  }
};

template <class In>
void lay_out(const In* b, const MatmulShape& shape, const LaidOut<In>& to, bool one_thread) {
  const int64_t at_once = inputs_at_once<In>();
  const int64_t groups = divide_up(to.panels, kPanelsAtOnce), all = groups * divide_up(to.end - to.begin, at_once);
  parallel_for(all, one_thread ? all : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = to.begin + i / groups * at_once, inputs = std::min(at_once, to.end - k);
      const int64_t first = to.panel + i % groups * kPanelsAtOnce;
      const int64_t panels = std::min(kPanelsAtOnce, to.panel + to.panels - first);
      if (shape.transpose_b) {
        for (int64_t p = first; p < first + panels; ++p) lay_out_turned(b, shape, p, k, inputs, to.at(p, k));
      } else {
        const int64_t output = first * kPanelOutputs, count = std::min(panels * kPanelOutputs, shape.n - output);
        lay_out_rows(b + k * shape.n + output, shape.n, count, inputs, to.at(first, k));
      }
    }
  });
}

// The rows of a part, if `rows` are divided into parts of nearly the same size; a multiple of kRowsOfTile.
int64_t part_of_rows(int64_t rows, int64_t parts) {
  return round_up(divide_up(rows, parts), kRowsOfTile);
}

// Writes sums to rows of c.
void finish(const MatmulShape& shape, float* sums, int64_t outputs, bfloat16* c) {
  if (shape.activation != Activation::none) activate(shape.activation, sums, sums, outputs);
  if (shape.accumulate)
    for (int64_t j = 0; j < outputs; ++j) sums[j] += static_cast<float>(c[j]);
  to_bfloat16(sums, c, outputs);
}

// Whether the kernel writes c itself, which is bfloat16.
bool is_rounded_at_once(const MatmulShape& shape) {
  return shape.k <= inputs_at_once<bfloat16>() && !shape.accumulate &&
         (shape.activation == Activation::none || shape.activation == Activation::relu);
}

template <class In, class Out>
void multiply(const Product<In, Out>& p, const Piece& piece, const LaidOut<In>& b) {
  constexpr bool kInPlace = std::is_same_v<Out, float>;  // c has the sums
  const MatmulShape& shape = p.shape;
  const int64_t first = piece.panel * kPanelOutputs, outputs = std::min(piece.panels * kPanelOutputs, shape.n - first);
  const bool rounded = !kInPlace && is_rounded_at_once(shape);
  const auto copy = allocate_buffer(static_cast<size_t>(kRows * inputs_at_once<In>()) * sizeof(In));
  const auto room = allocate_buffer(kInPlace || rounded ? 0 : static_cast<size_t>(kRows * outputs) * sizeof(float));
  const int64_t end = piece.row + piece.rows, at_once = part_of_rows(piece.rows, divide_up(piece.rows, kRows));
  for (int64_t row = piece.row; row < end; row += at_once) {
    const int64_t rows = std::min(at_once, end - row), width = kInPlace ? shape.n : outputs;
    Out* const c = p.c + row * shape.n + first;
    float* sums = nullptr;
    if constexpr (kInPlace) {
      sums = c;
    } else if (!rounded) {
      sums = static_cast<float*>(room->data());
    }
    for (int64_t k = b.begin; k < b.end; k += inputs_at_once<In>()) {
      const int64_t inputs = std::min(inputs_at_once<In>(), b.end - k);
      const bool last = k + inputs == shape.k;
      const auto x = rows_of(p.a, shape, {row, rows, k, inputs}, static_cast<In*>(copy->data()));
      const PanelBlock block{.rows = rows,
                             .weight = {kFormat<In>, outputs, inputs, b.at(piece.panel, k), nullptr},
                             .bias = last && p.bias != nullptr ? p.bias + first : nullptr,
                             .outputs = outputs,
                             .y = sums,
                             .width = width};
      if constexpr (!kInPlace)
        if (rounded) bfloat16_vectors(x, block, {c, shape.n, shape.activation == Activation::relu});
      if (!rounded) multiply_block(x, block, k > 0 || (kInPlace && shape.accumulate));
    }
    if constexpr (kInPlace) {
      if (b.end == shape.k) activate_rows(shape.activation, sums, rows, outputs, width);
    } else if (!rounded) {
      for (int64_t r = 0; r < rows; ++r) finish(shape, sums + r * width, outputs, c + r * shape.n);
    }
  }
}

// Lays out the inputs and panels that `b` stands for, and multiplies all rows with them.
template <class In, class Out>
void multiply_columns(const Product<In, Out>& p, const LaidOut<In>& b) {
  // Several pieces for each thread, which need not be equally fast: by rows, and where there are not enough of them by
  // panels, which read a again.
  const int threads = thread_count();
  const int64_t rows = p.shape.m, products = rows * b.panels * kPanelOutputs * (b.end - b.begin);
  const int64_t wanted = threads == 1 ? 1 : std::clamp<int64_t>(products / kWorthAThread, 1, int64_t{4} * threads);
  const int64_t piece_rows = part_of_rows(rows, std::min(wanted, divide_up(rows, kRows)));
  const int64_t by_rows = divide_up(rows, piece_rows);
  int64_t piece_panels = divide_up(b.panels, std::min(b.panels, divide_up(wanted, by_rows)));
  if (std::is_same_v<Out, bfloat16> && !is_rounded_at_once(p.shape)) piece_panels = std::min(piece_panels, kMostSummed);
  const int64_t pieces = by_rows * divide_up(b.panels, piece_panels);
  lay_out(p.b, p.shape, b, wanted == 1);
  parallel_for(pieces, wanted == 1 ? pieces : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % by_rows * piece_rows, panel = i / by_rows * piece_panels;
      multiply(p,
               {.row = row,
                .rows = std::min(piece_rows, rows - row),
                .panel = b.panel + panel,
                .panels = std::min(piece_panels, b.panels - panel)},
               b);
    }
  });
}

template <class In, class Out>
void multiply_all(const Product<In, Out>& product) {
  const MatmulShape& shape = product.shape;
  const int64_t panels = panel_count(shape.n);
  // b is laid out once for all pieces of some columns, in as many steps as kMostLaidOut asks for. Sums that are not
  // kept in c need all terms at once.
  constexpr int64_t kLeast = std::is_same_v<Out, float> ? kLeastPanels : kWholePanels;
  const int64_t columns = std::clamp(kMostLaidOut / panel_bytes(kFormat<In>, shape.k) / kWholePanels * kWholePanels,
                                     std::min(kLeast, panels), panels);
  const int64_t blocks = std::max<int64_t>(kMostLaidOut / (columns * bytes_of_panel()), 1);
  const int64_t step = std::is_same_v<Out, float> ? std::min(blocks * inputs_at_once<In>(), shape.k) : shape.k;
  const auto buffer = allocate_buffer(static_cast<size_t>(columns * panel_bytes(kFormat<In>, step)));
  for (int64_t panel = 0; panel < panels; panel += columns) {
    for (int64_t k = 0; k < shape.k; k += step) {
      multiply_columns(product, LaidOut<In>{.begin = k,
                                            .end = std::min(k + step, shape.k),
                                            .panel = panel,
                                            .panels = std::min(columns, panels - panel),
                                            .data = static_cast<std::byte*>(buffer->data())});
    }
  }
}

}  // namespace

void panel_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  multiply_all(Product<float, float>{a, b, bias, c, shape});
}

template <class Out>
void panel_matmul(const bfloat16* a, const bfloat16* b, const float* bias, Out* c, const MatmulShape& shape) {
  multiply_all(Product<bfloat16, Out>{a, b, bias, c, shape});
}

template void panel_matmul(const bfloat16*, const bfloat16*, const float*, float*, const MatmulShape&);
template void panel_matmul(const bfloat16*, const bfloat16*, const float*, bfloat16*, const MatmulShape&);

}  // namespace attune::cpu

// After Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication": b in panels of 16 columns, of
// which one block stays in the first cache while blocks of rows of a, which stay in the second, go past it.

#include "attune/kernels/cpu/gemm/panel_matmul.h"

#include <algorithm>
#include <array>
#include <memory>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/tensor/buffer.h"

namespace attune::cpu {
namespace {

constexpr int64_t kInputs = 256;                     // of k at a time: a panel of them is 16 KiB
constexpr int64_t kWholeTiles = 24;                  // rows that tiles of 6 and tiles of 8 have in common
constexpr int64_t kRows = 5 * kWholeTiles;           // of a at a time: up to 120 KiB
constexpr int64_t kMostLaidOut = int64_t{2} << 20;   // numbers of b at a time: 8 MiB
constexpr int64_t kPanelsAtOnce = 8;                 // that a thread lays out
constexpr int64_t kWorthAThread = int64_t{1} << 18;  // products that keep a thread busy for some ten microseconds

// to[c * stride + r] = from[r * width + c]; up to the next multiple of kPanelOutputs the last row is repeated.
void turn(const float* from, int64_t width, int64_t rows, int64_t columns, float* to, int64_t stride) {
  for (int64_t r = 0; r < rows; r += kPanelOutputs) {
    std::array<const float*, kPanelOutputs> of_panel;
    for (int64_t j = 0; j < kPanelOutputs; ++j)
      of_panel[static_cast<size_t>(j)] = from + std::min(r + j, rows - 1) * width;
    lay_out_float_panel(of_panel.data(), columns, to + r, stride);
  }
}

struct Product {
  const float* a;
  const float* b;
  const float* bias;
  float* c;
  const MatmulShape& shape;
};

// Rows [row, row + rows) by panels [panel, panel + panels) of the result.
struct Piece {
  int64_t row, rows, panel, panels;
};

// Inputs [k, k + inputs) of a panel of b.
void lay_out_panel(const Product& p, int64_t panel, int64_t k, int64_t inputs, float* to) {
  const MatmulShape& shape = p.shape;
  const int64_t first = panel * kPanelOutputs, outputs = std::min(kPanelOutputs, shape.n - first);
  if (shape.transpose_b) return turn(p.b + first * shape.k + k, shape.k, outputs, inputs, to, kPanelOutputs);
  for (int64_t i = 0; i < inputs; ++i, to += kPanelOutputs) {
    std::copy_n(p.b + (k + i) * shape.n + first, outputs, to);
    std::fill(to + outputs, to + kPanelOutputs, 0.0f);
  }
}

// Numbers [k, k + inputs) of some rows of a.
void copy_rows(const Product& p, int64_t row, int64_t rows, int64_t k, int64_t inputs, float* to) {
  const MatmulShape& shape = p.shape;
  if (shape.transpose_a) return turn(p.a + k * shape.m + row, shape.m, inputs, rows, to, kInputs);
  for (int64_t r = 0; r < rows; ++r) std::copy_n(p.a + (row + r) * shape.k + k, inputs, to + r * kInputs);
}

// b as multiply() reads it: inputs [begin, end) in blocks of kInputs inputs, each block panel after panel.
struct LaidOut {
  int64_t begin, end;
  float* panels;

  float* panel(const MatmulShape& shape, int64_t panel, int64_t k) const {
    return panels + ((k - begin) * panel_count(shape.n) + panel * std::min(kInputs, end - k)) * kPanelOutputs;
  }
};

void lay_out(const Product& p, const LaidOut& to, bool one_thread) {
  const int64_t panels = panel_count(p.shape.n), all = panels * divide_up(to.end - to.begin, kInputs);
  parallel_for(all, one_thread ? all : kPanelsAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = to.begin + i / panels * kInputs, panel = i % panels;
      lay_out_panel(p, panel, k, std::min(kInputs, to.end - k), to.panel(p.shape, panel, k));
    }
  });
}

void multiply(const Product& p, const Piece& piece, const LaidOut& b) {
  const MatmulShape& shape = p.shape;
  const int64_t first = piece.panel * kPanelOutputs, outputs = std::min(piece.panels * kPanelOutputs, shape.n - first);
  const auto buffer = allocate_buffer(static_cast<size_t>(kRows * kInputs) * sizeof(float));
  auto* const x = static_cast<float*>(buffer->data());
  for (int64_t k = b.begin; k < b.end; k += kInputs) {
    const int64_t inputs = std::min(kInputs, b.end - k);
    const bool last = k + inputs == shape.k;
    const PanelData weight{WeightFormat::float32, outputs, inputs,
                           reinterpret_cast<const std::byte*>(b.panel(shape, piece.panel, k)), nullptr};
    for (int64_t row = piece.row; row < piece.row + piece.rows; row += kRows) {
      const int64_t rows = std::min(kRows, piece.row + piece.rows - row);
      copy_rows(p, row, rows, k, inputs, x);
      float* const y = p.c + row * shape.n + first;
      float_block(x, kInputs,
                  {.rows = rows,
                   .weight = weight,
                   .bias = last && p.bias != nullptr ? p.bias + first : nullptr,
                   .outputs = outputs,
                   .y = y,
                   .width = shape.n},
                  shape.accumulate || k > 0);
      if (last) activate_rows(shape.activation, y, rows, outputs, shape.n);
    }
  }
}

}  // namespace

void panel_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  const int64_t panels = panel_count(shape.n);
  // Several pieces for each thread, which need not be equally fast: by rows, and where there are not enough of them by
  // panels, which copy a again.
  const int threads = thread_count();
  const int64_t wanted =
      threads == 1 ? 1 : std::clamp<int64_t>(shape.m * shape.n * shape.k / kWorthAThread, 1, int64_t{4} * threads);
  const int64_t piece_rows = std::max(kRows, divide_up(divide_up(shape.m, wanted), kWholeTiles) * kWholeTiles);
  const int64_t by_rows = divide_up(shape.m, piece_rows);
  const int64_t piece_panels = divide_up(panels, std::min(panels, divide_up(wanted, by_rows)));
  const int64_t pieces = by_rows * divide_up(panels, piece_panels);
  const Product product{a, b, bias, c, shape};
  // b is laid out once for all pieces, in as many steps as kMostLaidOut asks for.
  const int64_t step = std::max<int64_t>(kMostLaidOut / (panels * kPanelOutputs * kInputs), 1) * kInputs;
  const auto buffer =
      allocate_buffer(static_cast<size_t>(panels * kPanelOutputs * std::min(step, shape.k)) * sizeof(float));
  for (int64_t k = 0; k < shape.k; k += step) {
    const LaidOut laid_out{k, std::min(k + step, shape.k), static_cast<float*>(buffer->data())};
    lay_out(product, laid_out, wanted == 1);
    parallel_for(pieces, wanted == 1 ? pieces : 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % by_rows * piece_rows, panel = i / by_rows * piece_panels;
        multiply(product,
                 {.row = row,
                  .rows = std::min(piece_rows, shape.m - row),
                  .panel = panel,
                  .panels = std::min(piece_panels, panels - panel)},
                 laid_out);
      }
    });
  }
}

}  // namespace attune::cpu

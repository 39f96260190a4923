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
constexpr int64_t kMostPanels = 64;                  // of one piece: 1 MiB
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

void multiply(const Product& p, const Piece& piece) {
  const MatmulShape& shape = p.shape;
  const int64_t first = piece.panel * kPanelOutputs, outputs = std::min(piece.panels * kPanelOutputs, shape.n - first);
  const auto buffer =
      allocate_buffer(static_cast<size_t>((piece.panels * kPanelOutputs + kRows) * kInputs) * sizeof(float));
  auto* const panels = static_cast<float*>(buffer->data());
  float* const x = panels + piece.panels * kPanelOutputs * kInputs;
  for (int64_t k = 0; k < shape.k; k += kInputs) {
    const int64_t inputs = std::min(kInputs, shape.k - k);
    const bool last = k + inputs == shape.k;
    for (int64_t i = 0; i < piece.panels; ++i)
      lay_out_panel(p, piece.panel + i, k, inputs, panels + i * kPanelOutputs * inputs);
    const PanelData weight{WeightFormat::float32, outputs, inputs, reinterpret_cast<const std::byte*>(panels), nullptr};
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
  // Several pieces for each thread, which need not be equally fast: by rows, which lay b out again, and where there
  // are not enough of them by panels, which copy a again.
  const int threads = thread_count();
  const int64_t wanted =
      threads == 1 ? 1 : std::clamp<int64_t>(shape.m * shape.n * shape.k / kWorthAThread, 1, int64_t{4} * threads);
  const int64_t by_panels = divide_up(panels, kMostPanels);
  const int64_t even_rows = divide_up(shape.m, divide_up(wanted, by_panels));
  const int64_t piece_rows = std::max(kRows, divide_up(even_rows, kWholeTiles) * kWholeTiles);
  const int64_t by_rows = divide_up(shape.m, piece_rows);
  const int64_t piece_panels = divide_up(panels, std::max(by_panels, std::min(panels, divide_up(wanted, by_rows))));
  const Product product{a, b, bias, c, shape};
  const int64_t pieces = by_rows * divide_up(panels, piece_panels);
  parallel_for(pieces, wanted == 1 ? pieces : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % by_rows * piece_rows, panel = i / by_rows * piece_panels;
      multiply(product, {.row = row,
                         .rows = std::min(piece_rows, shape.m - row),
                         .panel = panel,
                         .panels = std::min(piece_panels, panels - panel)});
    }
  });
}

}  // namespace attune::cpu

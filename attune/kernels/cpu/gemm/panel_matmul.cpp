// After Goto and van de Geijn 2008, "Anatomy of High-Performance Matrix Multiplication": b in panels of 16 columns, of
// which one block stays in the first cache while blocks of rows of a, which stay in the second, go past it.

#include "attune/kernels/cpu/gemm/panel_matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/tensor/buffer.h"

namespace attune::cpu {
namespace {

constexpr int64_t kInputs = 512;                     // of k at a time: a panel of them is 32 KiB
constexpr int64_t kTileRows = 8;                     // the most of a tile
constexpr int64_t kRows = 16 * kTileRows;            // of a at a time: up to 256 KiB
constexpr int64_t kMostLaidOut = int64_t{2} << 20;   // numbers of b at a time: 8 MiB
constexpr int64_t kPanelsAtOnce = 8;                 // that a thread lays out
constexpr int64_t kNearInputs = 512;                 // numbers of a from an input to the next
constexpr int64_t kLeastPanels = 64;                 // of b at a time, where it has so many
constexpr int64_t kWholePanels = 24;                 // that tiles of 3 and of 8 have in common
constexpr int64_t kWorthAThread = int64_t{1} << 18;  // products that keep a thread busy for some ten microseconds

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

// Inputs [k, k + inputs) of a panel of b, which is stored as [n, k]. Its last column is repeated to the panel's end.
void lay_out_turned(const Product& p, int64_t panel, int64_t k, int64_t inputs, float* to) {
  std::array<const float*, kPanelOutputs> columns;
  for (int64_t j = 0; j < kPanelOutputs; ++j)
    columns[static_cast<size_t>(j)] = p.b + std::min(panel * kPanelOutputs + j, p.shape.n - 1) * p.shape.k + k;
  lay_out_float_panel(columns.data(), inputs, to);
}

// Inputs [k, k + inputs) of some panels of b, one panel after another.
void lay_out_panels(const Product& p, int64_t panel, int64_t panels, int64_t k, int64_t inputs, float* to) {
  const MatmulShape& shape = p.shape;
  const int64_t next = inputs * kPanelOutputs;  // from a panel to the next
  if (shape.transpose_b) {
    for (int64_t i = 0; i < panels; ++i) lay_out_turned(p, panel + i, k, inputs, to + i * next);
    return;
  }
  const int64_t first = panel * kPanelOutputs, outputs = std::min(panels * kPanelOutputs, shape.n - first);
  const int64_t whole = outputs / kPanelOutputs, rest = outputs % kPanelOutputs;
  for (int64_t i = 0; i < inputs; ++i) {  // along the rows of b, as they lie in memory
    const float* const from = p.b + (k + i) * shape.n + first;
    float* const at = to + i * kPanelOutputs;
    for (int64_t j = 0; j < whole; ++j)
      std::memcpy(at + j * next, from + j * kPanelOutputs, kPanelOutputs * sizeof(float));
    if (rest == 0) continue;
    std::copy_n(from + whole * kPanelOutputs, rest, at + whole * next);
    std::fill_n(at + whole * next + rest, kPanelOutputs - rest, 0.0f);
  }
}

// Inputs [k, k + inputs) of some rows of a as multiply() reads them: where they are, or a copy in `to`. Inputs that are
// far apart would each need a page of their own.
FloatRows rows_of(const Product& p, int64_t row, int64_t rows, int64_t k, int64_t inputs, float* to) {
  const MatmulShape& shape = p.shape;
  if (!shape.transpose_a) return {p.a + row * shape.k + k, shape.k};
  if (shape.m <= kNearInputs) return {p.a + k * shape.m + row, 1, shape.m};
  for (int64_t i = 0; i < inputs; ++i) std::copy_n(p.a + (k + i) * shape.m + row, rows, to + i * kRows);
  return {to, 1, kRows};
}

// Inputs [begin, end) of some panels of b as multiply() reads them: in blocks of kInputs inputs, each block panel after
// panel.
struct LaidOut {
  int64_t begin, end;
  int64_t panel, panels;
  float* data;

  float* at(int64_t of_panel, int64_t k) const {
    return data + ((k - begin) * panels + (of_panel - panel) * std::min(kInputs, end - k)) * kPanelOutputs;
  }
};

void lay_out(const Product& p, const LaidOut& to, bool one_thread) {
  const int64_t groups = divide_up(to.panels, kPanelsAtOnce), all = groups * divide_up(to.end - to.begin, kInputs);
  parallel_for(all, one_thread ? all : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t k = to.begin + i / groups * kInputs, first = i % groups * kPanelsAtOnce;
      lay_out_panels(p, to.panel + first, std::min(kPanelsAtOnce, to.panels - first), k, std::min(kInputs, to.end - k),
                     to.at(to.panel + first, k));
    }
  });
}

// Of so many parts of nearly the same size.
int64_t part_of_rows(int64_t rows, int64_t parts) {
  return divide_up(divide_up(rows, parts), kTileRows) * kTileRows;
}

void multiply(const Product& p, const Piece& piece, const LaidOut& b) {
  const MatmulShape& shape = p.shape;
  const int64_t first = piece.panel * kPanelOutputs, outputs = std::min(piece.panels * kPanelOutputs, shape.n - first);
  const auto buffer = allocate_buffer(static_cast<size_t>(kRows * kInputs) * sizeof(float));
  auto* const x = static_cast<float*>(buffer->data());
  const int64_t end = piece.row + piece.rows, at_once = part_of_rows(piece.rows, divide_up(piece.rows, kRows));
  for (int64_t row = piece.row; row < end; row += at_once) {
    const int64_t rows = std::min(at_once, end - row);
    float* const y = p.c + row * shape.n + first;
    for (int64_t k = b.begin; k < b.end; k += kInputs) {
      const int64_t inputs = std::min(kInputs, b.end - k);
      const bool last = k + inputs == shape.k;
      const PanelData weight{WeightFormat::float32, outputs, inputs,
                             reinterpret_cast<const std::byte*>(b.at(piece.panel, k)), nullptr};
      float_block(rows_of(p, row, rows, k, inputs, x),
                  {.rows = rows,
                   .weight = weight,
                   .bias = last && p.bias != nullptr ? p.bias + first : nullptr,
                   .outputs = outputs,
                   .y = y,
                   .width = shape.n},
                  shape.accumulate || k > 0);
    }
    if (b.end == shape.k) activate_rows(shape.activation, y, rows, outputs, shape.n);
  }
}

// The inputs and panels that `b` stands for, which are laid out there, by all rows.
void multiply_columns(const Product& p, const LaidOut& b) {
  // Several pieces for each thread, which need not be equally fast: by rows, and where there are not enough of them by
  // panels, which copy a again.
  const int threads = thread_count();
  const int64_t rows = p.shape.m, products = rows * b.panels * kPanelOutputs * (b.end - b.begin);
  const int64_t wanted = threads == 1 ? 1 : std::clamp<int64_t>(products / kWorthAThread, 1, int64_t{4} * threads);
  const int64_t piece_rows = part_of_rows(rows, std::min(wanted, divide_up(rows, kRows)));
  const int64_t by_rows = divide_up(rows, piece_rows);
  const int64_t piece_panels = divide_up(b.panels, std::min(b.panels, divide_up(wanted, by_rows)));
  const int64_t pieces = by_rows * divide_up(b.panels, piece_panels);
  lay_out(p, b, wanted == 1);
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

}  // namespace

void panel_matmul(const float* a, const float* b, const float* bias, float* c, const MatmulShape& shape) {
  const Product product{a, b, bias, c, shape};
  const int64_t panels = panel_count(shape.n);
  // b is laid out once for all pieces of some columns, in as many steps as kMostLaidOut asks for.
  const int64_t columns = std::clamp(kMostLaidOut / (shape.k * kPanelOutputs) / kWholePanels * kWholePanels,
                                     std::min(kLeastPanels, panels), panels);
  const int64_t step = std::max<int64_t>(kMostLaidOut / (columns * kPanelOutputs * kInputs), 1) * kInputs;
  const auto buffer =
      allocate_buffer(static_cast<size_t>(columns * kPanelOutputs * std::min(step, shape.k)) * sizeof(float));
  for (int64_t panel = 0; panel < panels; panel += columns) {
    for (int64_t k = 0; k < shape.k; k += step) {
      multiply_columns(product, {.begin = k,
                                 .end = std::min(k + step, shape.k),
                                 .panel = panel,
                                 .panels = std::min(columns, panels - panel),
                                 .data = static_cast<float*>(buffer->data())});
    }
  }
}

}  // namespace attune::cpu

#include <algorithm>
#include <array>
#include <memory>

#include "attune/base/parallel.h"
#include "attune/kernels/cpu/activation_rows.h"
#include "attune/kernels/cpu/bfloat16.h"
#include "attune/kernels/cpu/gemm/column_groups.h"
#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/kernels/cpu/gemm/panel_linear_bfloat16.h"
#include "attune/kernels/for_dtype.h"
#include "attune/kernels/gemm/panel_linear.h"
#include "attune/kernels/rows.h"
#include "attune/tensor/buffer.h"

namespace attune {
namespace {

using cpu::PanelBlock;
using cpu::PanelData;
using cpu::QuantisedRows;

// x as products with weights in a format read it.
class Input {
 public:
  Input(WeightFormat format, const Tensor& x, int64_t rows, int64_t in) : format_(format), in_(in) {
    if (x.dtype() == DType::bf16) {
      take(x.data<bfloat16>(), rows);
    } else {
      x_ = x.data<float>();
      if (is_quantised(format)) quantise(rows);
    }
  }

  void multiply(int64_t first_row, const PanelBlock& block) const {
    if (is_quantised(format_)) return cpu::integer_block(from_row(first_row), block);
    if (narrow_.numbers == nullptr) return cpu::float_block({x_ + first_row * in_, in_}, block);
    cpu::bfloat16_block({narrow_.numbers + first_row * narrow_.stride, narrow_.stride}, block);
  }

 private:
  // For the processor's own products of bfloat16; for others, widened.
  void take(const bfloat16* x, int64_t rows) {
    if (!cpu::has_bfloat16_block()) {
      buffer_ = allocate_buffer(static_cast<size_t>(rows * in_) * sizeof(float));
      auto* const floats = static_cast<float*>(buffer_->data());
      cpu::widen(x, floats, rows * in_);
      x_ = floats;
      return;
    }
    const int64_t stride = round_up(in_, 32);
    buffer_ = allocate_buffer(static_cast<size_t>((rows + kRoom) * stride) * sizeof(bfloat16));
    auto* const numbers = static_cast<bfloat16*>(buffer_->data());
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x + r * in_, in_, numbers + r * stride);
      std::fill(numbers + r * stride + in_, numbers + (r + 1) * stride, bfloat16(0));
    }
    narrow_ = {.numbers = numbers, .stride = stride};
  }

  void quantise(int64_t rows) {
    const int64_t stride = round_up(in_, 64), scales = format_ == WeightFormat::int8 ? 1 : divide_up(in_, kGroupInputs);
    const int64_t for_each_row = stride + 2 * scales * static_cast<int64_t>(sizeof(float));
    buffer_ = allocate_buffer(static_cast<size_t>(rows * for_each_row + kRoom * stride));
    auto* const numbers = static_cast<uint8_t*>(buffer_->data());
    auto* const of_scales = reinterpret_cast<float*>(numbers + (rows + kRoom) * stride);
    quantised_ = {.numbers = numbers,
                  .scales = of_scales,
                  .offsets = reinterpret_cast<int32_t*>(of_scales + rows * scales),
                  .stride = stride,
                  .scales_of_row = scales};
    const int64_t grain = std::max<int64_t>(1, (int64_t{1} << 15) / in_);
    parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
      cpu::quantise_rows(format_, x_ + begin * in_, end - begin, in_, from_row(begin));
    });
  }

  QuantisedRows from_row(int64_t row) const {
    QuantisedRows q = quantised_;
    q.numbers += row * q.stride;
    q.scales += row * q.scales_of_row;
    q.offsets += row * q.scales_of_row;
    return q;
  }

  static constexpr int64_t kRoom = 16;  // rows that kernels may read behind the last one

  WeightFormat format_;
  const float* x_ = nullptr;
  int64_t in_;
  std::shared_ptr<Buffer> buffer_;
  QuantisedRows quantised_{};
  cpu::Bfloat16Rows narrow_{};
};

// PanelPart and a whole product as pointers.
struct Part {
  PanelData weight;
  const float* bias;  // or null
  float* y;           // of the first row
  int64_t width;      // from a row of y to the next
};

struct Product {
  const Tensor& x;  // [..., in]
  int64_t rows, in;
  std::span<const Part> parts;
  Activation activation;
};

// Rows [row, row + rows) by panels [panel, panel + panels) of a part.
struct Piece {
  int64_t row, rows, panel, panels;
};

void multiply(const Product& p, const Input& x, const Part& part, const Piece& piece) {
  const PanelData weight = part.weight.from_panel(piece.panel);
  const int64_t first = piece.panel * kPanelOutputs,
                outputs = std::min(piece.panels * kPanelOutputs, part.weight.out - first);
  float* const y = part.y + piece.row * part.width + first;
  x.multiply(piece.row, {.rows = piece.rows,
                         .weight = weight,
                         .bias = part.bias != nullptr ? part.bias + first : nullptr,
                         .outputs = outputs,
                         .y = y,
                         .width = part.width});
  cpu::activate_rows(p.activation, y, piece.rows, outputs, part.width);
}

// How a product is cut into pieces for threads: by panels, so that each is read once, and by rows where there are not
// enough of them or the rows would not stay in the cache.
struct Cut {
  int64_t rows, panels;
};

constexpr int64_t kRowsInCache = 1 << 18;  // numbers of x that stay in the cache

// Numbers of weights times rows that keep a thread busy for some ten microseconds, of which waking it takes a few.
int64_t worth_a_thread(const Product& p) {
  return is_quantised(p.parts[0].weight.format) ? 1 << 19 : 1 << 17;
}

bool on_one_thread(const Product& p, int64_t panels) {
  return thread_count() == 1 || p.rows * panels * kPanelOutputs * p.in < 2 * worth_a_thread(p);
}

Cut cut_of(const Product& p, int64_t panels) {
  const int threads = thread_count();
  Cut cut{.rows = std::min(p.rows, std::max<int64_t>(64, kRowsInCache / p.in / 8 * 8)), .panels = panels};
  if (on_one_thread(p, panels)) return cut;
  // Several pieces for each thread, which need not be equally fast; none of them small.
  const int64_t pieces =
      std::clamp<int64_t>(p.rows * panels * kPanelOutputs * p.in / worth_a_thread(p), 1, int64_t{4} * threads);
  const int64_t by_rows = divide_up(p.rows, cut.rows);
  constexpr int64_t kTilePanels = 8, kTileRows = 32;
  cut.panels = std::max<int64_t>(kTilePanels, round_up(divide_up(panels * by_rows, pieces), kTilePanels));
  const int64_t by_panels = divide_up(panels, cut.panels);
  if (by_panels * by_rows < threads) cut.rows = round_up(divide_up(p.rows, divide_up(pieces, by_panels)), kTileRows);
  return cut;
}

void multiply(const Product& p) {
  int64_t panels = 0;
  for (const Part& part : p.parts) panels += panel_count(part.weight.out);
  if (panels == 0) return;  // weights without outputs
  const Input x(p.parts[0].weight.format, p.x, p.rows, p.in);
  const Cut cut = cut_of(p, panels);
  const int64_t by_rows = divide_up(p.rows, cut.rows);
  int64_t pieces = 0;
  for (const Part& part : p.parts) pieces += divide_up(panel_count(part.weight.out), cut.panels) * by_rows;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = i;
      for (const Part& part : p.parts) {
        const int64_t of_part = panel_count(part.weight.out), count = divide_up(of_part, cut.panels) * by_rows;
        if (at >= count) {
          at -= count;
          continue;
        }
        const int64_t panel = at / by_rows * cut.panels, row = at % by_rows * cut.rows;
        multiply(p, x, part,
                 {.row = row,
                  .rows = std::min(cut.rows, p.rows - row),
                  .panel = panel,
                  .panels = std::min(cut.panels, of_part - panel)});
        break;
      }
    }
  };
  parallel_for(pieces, on_one_thread(p, panels) ? pieces : 1, run);
}

// Some outputs at a time are put into panels of their own.
void multiply_columns(const Input& x, const PanelData& from, const float* biases, const ColumnGroup& group, float* y,
                      int64_t width) {
  constexpr int64_t kAtOnce = 4 * kPanelOutputs;
  parallel_for(static_cast<int64_t>(group.columns.size()), kAtOnce, [&](int64_t begin, int64_t end) {
    const std::span<const int32_t> ids =
        group.columns.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    const int64_t outputs = end - begin, bytes = panel_count(outputs) * panel_bytes(from.format, from.in);
    const auto buffer =
        allocate_buffer(static_cast<size_t>(bytes + panel_count(outputs) * scale_bytes(from.format, from.in)));
    auto* const data = static_cast<std::byte*>(buffer->data());
    cpu::select_outputs(from, ids, {from.format, outputs, from.in, data, data + bytes});
    std::array<float, kAtOnce> bias{};
    for (size_t j = 0; biases != nullptr && j < ids.size(); ++j) bias[j] = biases[ids[j]];
    x.multiply(0, {.rows = group.end - group.begin,
                   .weight = {from.format, outputs, from.in, data, data + bytes},
                   .bias = biases != nullptr ? bias.data() : nullptr,
                   .outputs = outputs,
                   .y = y + group.begin * width + begin,
                   .width = width});
  });
}

}  // namespace

void panel_linear(Cpu, const Tensor& x, std::span<const PanelPart> parts, Activation activation) {
  std::array<Part, kMostPanelParts> pointers;
  for (size_t i = 0; i < parts.size(); ++i)
    pointers[i] = {.weight = cpu::data_of(*parts[i].weight),
                   .bias = data_or_null<float>(parts[i].bias),
                   .y = parts[i].y.data<float>() + parts[i].column,
                   .width = parts[i].y.size(-1)};
  const Rows size = as_rows(x);
  multiply({.x = x,
            .rows = size.rows,
            .in = size.columns,
            .parts = {pointers.data(), parts.size()},
            .activation = activation});
}

void panel_linear_columns(Cpu, const Tensor& x, const Panels& weight, const Tensor& bias,
                          std::span<const ColumnGroup> groups, const Tensor& y) {
  const PanelData panels = cpu::data_of(weight);
  const int64_t width = y.size(1);
  for (const ColumnGroup& group : groups) {
    cpu::fill_beyond(group, y.data<float>(), width);
    if (group.columns.empty()) continue;
    const Input input(weight.format, x.rows(group.begin, group.end), group.end - group.begin, weight.in);
    multiply_columns(input, panels, data_or_null<float>(bias), group, y.data<float>(), width);
  }
}

}  // namespace attune

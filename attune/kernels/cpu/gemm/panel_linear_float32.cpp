#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attune/kernels/cpu/gemm/panel_linear_float32.cpp"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "attune/kernels/cpu/gemm/panel_block.h"
#include "attune/kernels/cpu/simd_inl.h"

HWY_BEFORE_NAMESPACE();
namespace attune {
namespace HWY_NAMESPACE {
namespace {

constexpr size_t kOutputs = kPanelOutputs;
using Lanes = hn::CappedTag<float, kOutputs>;
constexpr size_t kLanes = HWY_MIN(HWY_LANES(float), kOutputs);
constexpr size_t kVectors = kOutputs / kLanes;  // of a panel
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SCALAR
constexpr size_t kRegisters = 16;
#else
constexpr size_t kRegisters = 32;
#endif

// Panels that one tile of so many rows works on: the sums, one input of each panel and one number of x stay in
// registers.
constexpr size_t panels_of_tile(size_t rows) {
  if (rows == 1) return std::clamp<size_t>(kRegisters * 3 / 4 / kVectors, 1, 8);
  return std::clamp<size_t>((kRegisters - 1) / (kVectors * (rows + 1)), 1, 8);
}
constexpr size_t kMostRows = kVectors == 16 ? 1 : kRegisters == 32 && kVectors == 1 ? 8 : 6;

// Panels are lines of 32 bits for each output, with one input or several. Load<i>() gives input i of a line in float32.
struct Float32Panels {
  static constexpr size_t kInputs = 1;
  template <size_t kInput>
  static HWY_INLINE hn::Vec<Lanes> Load(const uint32_t* w) {
    const Lanes d;
    return hn::BitCast(d, hn::LoadU(hn::RebindToUnsigned<Lanes>(), w));
  }
};
struct Bfloat16Panels {
  static constexpr size_t kInputs = 2;
  template <size_t kInput>
  static HWY_INLINE hn::Vec<Lanes> Load(const uint32_t* w) {
    const Lanes d;
    const hn::RebindToUnsigned<Lanes> du;
    const auto both = hn::LoadU(du, w);
    if constexpr (kInput == 0) return hn::BitCast(d, hn::ShiftLeft<16>(both));
    return hn::BitCast(d, hn::And(both, hn::Set(du, 0xffff0000u)));
  }
};

// Where the numbers of x stand: row by row, or input by input.
enum class Order { rows, inputs };

struct Place {
  const float* x;
  size_t x_step;  // from a row to the next, or from an input to the next
  size_t in;
  const uint32_t* panels;
  const float* bias;
  size_t outputs;
  float* y;
  size_t width;
  bool onto;
};

// sums += the numbers x of each row times input kInput of a line of each panel.
template <class Weights, size_t kInput, size_t kRows, size_t kPanels>
HWY_INLINE void AddInput(const float* x, size_t x_row, const uint32_t* w, size_t stride,
                         hn::Vec<Lanes> (&sums)[kRows][kPanels * kVectors]) {
  const Lanes d;
  hn::Vec<Lanes> inputs[kPanels * kVectors];
  for (size_t p = 0; p < kPanels; ++p)
    for (size_t v = 0; v < kVectors; ++v)
      inputs[p * kVectors + v] = Weights::template Load<kInput>(w + p * stride + v * kLanes);
  for (size_t r = 0; r < kRows; ++r) {
    const auto number = hn::Set(d, x[r * x_row]);
    for (size_t v = 0; v < kPanels * kVectors; ++v) sums[r][v] = hn::MulAdd(number, inputs[v], sums[r][v]);
  }
}

// Every sum is one chain, input after input, whatever the tile, so that a row's result depends on that row alone.
template <class Weights, Order kOrder, size_t kRows, size_t kPanels>
void Tile(const Place& t) {
  static_assert(kOrder == Order::rows || Weights::kInputs == 1);
  const Lanes d;
  using V = hn::Vec<Lanes>;
  V sums[kRows][kPanels * kVectors];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t v = 0; v < kPanels * kVectors; ++v) sums[r][v] = hn::Zero(d);
  for (size_t r = 0; r < kRows; ++r)
    for (size_t p = 0; p < kPanels; ++p) hwy::Prefetch(t.y + r * t.width + p * kOutputs);
  const float* HWY_RESTRICT x = t.x;
  const uint32_t* HWY_RESTRICT w = t.panels;
  constexpr size_t kInputs = Weights::kInputs;
  const size_t x_row = kOrder == Order::rows ? t.x_step : 1, x_input = kOrder == Order::rows ? 1 : t.x_step;
  const size_t stride = (t.in + kInputs - 1) / kInputs * kOutputs;
  for (size_t k = 0; k + kInputs <= t.in; k += kInputs, x += kInputs * x_input, w += kOutputs) {
    if constexpr (kRows <= 4)
      for (size_t p = 0; p < kPanels; ++p) hwy::Prefetch(w + p * stride + 16 * kOutputs);
    AddInput<Weights, 0, kRows, kPanels>(x, x_row, w, stride, sums);
    if constexpr (kInputs == 2) AddInput<Weights, 1, kRows, kPanels>(x + 1, x_row, w, stride, sums);
  }
  if (t.in % kInputs != 0) AddInput<Weights, 0, kRows, kPanels>(x, x_row, w, stride, sums);
  for (size_t v = 0; v < kPanels * kVectors && v * kLanes < t.outputs; ++v) {
    const auto finish = [&](auto part) HWY_ATTR {
      const V bias = t.bias != nullptr ? part.Load(d, t.bias + v * kLanes) : hn::Zero(d);
      for (size_t r = 0; r < kRows; ++r) {
        float* const y = t.y + r * t.width + v * kLanes;
        const V sum = t.onto ? hn::Add(part.Load(d, y), sums[r][v]) : sums[r][v];
        part.Store(d, hn::Add(sum, bias), y);
      }
    };
    if ((v + 1) * kLanes <= t.outputs) {
      finish(WholeVector{});
    } else {
      finish(PartOfVector{t.outputs - v * kLanes});
    }
  }
}

// The last panels, fewer than a tile takes.
template <class Weights, Order kOrder, size_t kRows, size_t kPanels>
void LastTile(const Place& t, size_t panels) {
  if (panels == kPanels) return Tile<Weights, kOrder, kRows, kPanels>(t);
  if constexpr (kPanels > 1) LastTile<Weights, kOrder, kRows, kPanels - 1>(t, panels);
}

using TileFunction = void (*)(const Place&);
using LastTileFunction = void (*)(const Place&, size_t panels);

struct RowTile {
  TileFunction whole;
  LastTileFunction last;
  size_t panels;
};

template <class Weights, Order kOrder, size_t kRows>
RowTile TileOfRows(size_t rows) {
  if constexpr (kRows < kMostRows)
    if (rows > kRows) return TileOfRows<Weights, kOrder, kRows + 1>(rows);
  constexpr size_t kPanels = panels_of_tile(kRows);
  return {Tile<Weights, kOrder, kRows, kPanels>, LastTile<Weights, kOrder, kRows, kPanels>, kPanels};
}

// Panels outside, so that they stay in the cache for all rows.
template <class Weights, Order kOrder>
void BlockOf(const cpu::FloatRows& x, const cpu::PanelBlock& b, bool onto) {
  const auto rows = static_cast<size_t>(b.rows), in = static_cast<size_t>(b.weight.in),
             outputs = static_cast<size_t>(b.outputs), width = static_cast<size_t>(b.width);
  const auto* const weight = reinterpret_cast<const uint32_t*>(b.weight.data);
  const size_t panel = (in + Weights::kInputs - 1) / Weights::kInputs * kOutputs;
  const size_t tiles = (rows + kMostRows - 1) / kMostRows, larger = rows % tiles;  // of nearly the same size
  const size_t panels = (outputs + kOutputs - 1) / kOutputs;
  const RowTile tile[2] = {TileOfRows<Weights, kOrder, 1>(rows / tiles),
                           TileOfRows<Weights, kOrder, 1>(rows / tiles + (larger > 0 ? 1 : 0))};
  const size_t step = tile[1].panels;
  for (size_t p = 0; p < panels; p += step) {
    Place place{.x = x.numbers,
                .x_step = static_cast<size_t>(kOrder == Order::rows ? x.row : x.input),
                .in = in,
                .panels = weight + p * panel,
                .bias = b.bias != nullptr ? b.bias + p * kOutputs : nullptr,
                .outputs = outputs - p * kOutputs,
                .y = b.y + p * kOutputs,
                .width = width,
                .onto = onto};
    const size_t count = HWY_MIN(step, panels - p);
    for (size_t i = 0; i < tiles; ++i) {
      const size_t tile_rows = rows / tiles + (i < larger ? 1 : 0);
      const RowTile& with = tile[i < larger ? 1 : 0];
      // A tile of fewer rows may take more panels, but not fewer: it has room for these.
      if (count == with.panels) {
        with.whole(place);
      } else {
        with.last(place, count);
      }
      place.x += tile_rows * static_cast<size_t>(x.row);
      place.y += tile_rows * width;
    }
  }
}

void Block(const cpu::FloatRows& x, const cpu::PanelBlock& b, bool onto) {
  if (b.weight.format == WeightFormat::bfloat16) return BlockOf<Bfloat16Panels, Order::rows>(x, b, onto);
  x.input == 1 ? BlockOf<Float32Panels, Order::rows>(x, b, onto) : BlockOf<Float32Panels, Order::inputs>(x, b, onto);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace attune
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace attune {
namespace {

HWY_EXPORT(Block);

}  // namespace

void cpu::float_block(const FloatRows& x, const PanelBlock& block, bool onto) {
  HWY_DYNAMIC_DISPATCH(Block)(x, block, onto);
}

}  // namespace attune
#endif

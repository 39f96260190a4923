#pragma once

#include "attune/base/fields.h"
#include "attune/kernels/panels.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

template <>
struct EnumNames<WeightFormat> {
  static constexpr std::pair<WeightFormat, const char*> values[] = {
      {WeightFormat::float32, "float32"}, {WeightFormat::int8, "int8"}, {WeightFormat::int4, "int4"}};
};

/// A weight matrix laid out for inference: panels of 16 outputs, so that a product reads it once from front to back.
/// What goes beyond `out` or `in` is zero.
///   float32   [panels, in, 16]
///   int8      [panels, 64 + 64 ceil(in / 4)]: int32 [16], -128 times the sum of an output's numbers, since a product
///             reads activations with 128 added; then [ceil(in / 4), 16, 4], the order that VNNI and AMX read
///   int4      [panels, ceil(in / 32), 4, 16, 4]: a byte holds q + 8 of input 4 i + j of its group in the lower half,
///             of input 16 + 4 i + j in the upper one
/// The same bytes on every device and every little-endian processor: a file holds them as they are, and is mapped.
class PanelWeight {
 public:
  /// weight [out, in] float32, quantised; with int4 each scale is the one of several with the least squared error.
  /// Throws ShapeError, and NumericError where a number that is to be quantised is not finite.
  static PanelWeight pack(const Tensor& weight, WeightFormat format) { return pack(weight, format, {}); }
  /// Into `storage`, uint8 [storage_bytes] on the weight's device, unless it is undefined.
  static PanelWeight pack(const Tensor& weight, WeightFormat format, const Tensor& storage);
  /// Of stored parts, which are not copied. storage: uint8 [storage_bytes], at a multiple of 4 in memory (of 64 is
  /// faster); scales as scales_shape and scales_dtype say, undefined for float32. Throws ShapeError if a part does not
  /// fit.
  PanelWeight(WeightFormat format, int64_t out, int64_t in, Tensor storage, Tensor scales);

  static int64_t storage_bytes(WeightFormat format, int64_t out, int64_t in);
  /// int8 [panels, 16], int4 [panels, groups, 16], float32 [0].
  static Shape scales_shape(WeightFormat format, int64_t out, int64_t in);
  static DType scales_dtype(WeightFormat format) { return format == WeightFormat::int4 ? DType::bf16 : DType::f32; }

  WeightFormat format() const { return panels_.format; }
  int64_t out() const { return panels_.out; }
  int64_t in() const { return panels_.in; }
  const Tensor& storage() const { return panels_.storage; }
  const Tensor& scales() const { return panels_.scales; }
  /// What kernels take.
  const Panels& panels() const { return panels_; }
  /// The same panels in the memory of a device.
  PanelWeight to(const Device& device) const;

  /// [out, in] float32: what products multiply with.
  Tensor unpack() const;
  /// [ids, in]: the rows of unpack() that `ids` name, for embeddings that share their table. Throws ShapeError.
  Tensor rows(const Indices& ids) const;

 private:
  void check_rows(const Indices& ids) const;

  Panels panels_;
};

}  // namespace attune

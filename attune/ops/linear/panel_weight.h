#pragma once

#include "attune/base/fields.h"
#include "attune/kernels/gemm/panels.h"
#include "attune/tensor/indices.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

template <>
struct EnumNames<WeightFormat> {
  static constexpr std::pair<WeightFormat, const char*> values[] = {{WeightFormat::float32, "float32"},
                                                                    {WeightFormat::bfloat16, "bfloat16"},
                                                                    {WeightFormat::int8, "int8"},
                                                                    {WeightFormat::int4, "int4"}};
};

/// A weight matrix laid out for inference: panels of 16 outputs, which a product reads once from front to back.
/// Elements beyond `out` or `in` are zero.
///   float32   [panels, in, 16]
///   bfloat16  [panels, ceil(in / 2), 16, 2]
///   int8      [panels, 64 + 64 ceil(in / 4)]: int32 [16], -128 times the sum of an output's numbers, since a product
///             reads activations with 128 added; then [ceil(in / 4), 16, 4], the order that VNNI and AMX read
///   int4      [panels, ceil(in / 32), 4, 16, 4]: a byte holds q + 8 of input 4 i + j of its group in the lower half,
///             of input 16 + 4 i + j in the upper half
/// The bytes are the same on every device and every little-endian processor: files hold them unchanged and are mapped.
class PanelWeight {
 public:
  /// Takes weight [out, in], float32 or bfloat16, and rounds or quantises it; with int4 each scale is the one of
  /// several candidates with the least squared error. Throws ShapeError, and NumericError if a number to quantise is
  /// not finite.
  static PanelWeight lay_out(const Tensor& weight, WeightFormat format) { return lay_out(weight, format, {}); }
  /// The same, writing into `storage`, uint8 [storage_bytes] on the weight's device, unless it is undefined.
  static PanelWeight lay_out(const Tensor& weight, WeightFormat format, const Tensor& storage);
  /// From stored parts, which are not copied. storage: uint8 [storage_bytes], its address a multiple of 4 (64 is
  /// faster). scales: of scales_shape() and scales_dtype(), undefined unless is_quantised(). Throws ShapeError if a
  /// part does not fit.
  PanelWeight(WeightFormat format, int64_t out, int64_t in, Tensor storage, Tensor scales);

  static int64_t storage_bytes(WeightFormat format, int64_t out, int64_t in);
  /// int8 [panels, 16], int4 [panels, groups, 16], else [0].
  static Shape scales_shape(WeightFormat format, int64_t out, int64_t in);
  static DType scales_dtype(WeightFormat format) { return format == WeightFormat::int4 ? DType::bf16 : DType::f32; }

  WeightFormat format() const { return panels_.format; }
  int64_t out() const { return panels_.out; }
  int64_t in() const { return panels_.in; }
  const Tensor& storage() const { return panels_.storage; }
  const Tensor& scales() const { return panels_.scales; }
  /// The panels, as kernels read them.
  const Panels& panels() const { return panels_; }
  /// A copy of the panels in the memory of a device.
  PanelWeight to(const Device& device) const;

  /// Returns the dequantised weight [out, in] float32, the numbers that products use.
  Tensor to_matrix() const;
  /// Returns rows `ids` of to_matrix(), [ids, in]: for embeddings whose table is also a product's. Throws ShapeError.
  Tensor rows(const Indices& ids) const;

 private:
  void check_rows(const Indices& ids) const;

  Panels panels_;
};

}  // namespace attune

#pragma once
// Tiles of bfloat16, whose products are summed up in float32: by AMX, or in the vectors of AVX-512.

namespace attune::cpu {

/// Whether the processor has AVX-512 with bfloat16, the system saves its vectors, and ONEDNN_MAX_CPU_ISA allows it.
bool has_avx512_bfloat16();

/// Whether it also has AMX's products of bfloat16, the system saves tiles, and ONEDNN_MAX_CPU_ISA allows AMX.
bool has_amx_bfloat16();

/// While it lives, the calling thread may multiply tiles of bfloat16, if they are `wanted`, which needs
/// has_avx512_bfloat16(). With AMX, other code with tiles must not run on the thread meanwhile: it would release them.
class Bfloat16Tiles {
 public:
  explicit Bfloat16Tiles(bool wanted);
  ~Bfloat16Tiles();
  Bfloat16Tiles(const Bfloat16Tiles&) = delete;
  Bfloat16Tiles& operator=(const Bfloat16Tiles&) = delete;
  bool wanted() const { return wanted_; }

 private:
  bool wanted_;
};

}  // namespace attune::cpu

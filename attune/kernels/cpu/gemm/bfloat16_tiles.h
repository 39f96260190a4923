#pragma once
// Tiles of bfloat16, whose products are summed up in float32: by AMX, or in the vectors of AVX-512.

namespace attune::cpu {

/// Whether the processor has AVX-512 with bfloat16, and the system saves its vectors.
bool has_avx512_bfloat16();

/// Whether the processor has AMX's products of bfloat16 and the vectors that lay tiles out, and the system saves them.
bool has_amx_bfloat16();

/// While it lives, the calling thread may multiply tiles of bfloat16, if they are wanted: for has_avx512_bfloat16()
/// alone. With AMX, other code with tiles must not run on the thread meanwhile, since it would release them.
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

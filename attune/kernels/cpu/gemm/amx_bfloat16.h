#pragma once
// AMX, whose tiles multiply bfloat16 and sum up in float32.

namespace attune::cpu {

/// Whether the processor has AVX-512 with bfloat16, and the system saves its vectors.
bool has_avx512_bfloat16();

/// Whether the processor has AMX's products of bfloat16 and the vectors that lay tiles out, and the system saves them.
bool has_amx_bfloat16();

/// While it lives, the calling thread's tiles are whole ones, if they are wanted: for has_amx_bfloat16() alone. Other
/// code with tiles must not run on the thread meanwhile, since it would release them.
class AmxTiles {
 public:
  explicit AmxTiles(bool wanted);
  ~AmxTiles();
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  bool wanted() const { return wanted_; }

 private:
  bool wanted_;
};

}  // namespace attune::cpu

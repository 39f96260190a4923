#include "attune/kernels/cpu/gemm/bfloat16_tiles.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))

#include "attune/kernels/cpu/gemm/bfloat16_tiles_inl.h"
#include "attune/kernels/cpu/gemm/onednn_matmul.h"

namespace attune::cpu {
namespace {

ATTUNE_BFLOAT16_TILES void load_configuration() {
  _tile_loadconfig(&kWholeTiles);
}

ATTUNE_BFLOAT16_TILES void release() {
  _tile_release();
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return wide && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & 1u << 5) != 0;
}

}  // namespace

bool has_avx512_bfloat16() {
  static const bool found = has_instructions() && onednn_allows_bfloat16();
  return found;
}

bool has_amx_bfloat16() {
  constexpr unsigned kBfloat16 = 1u << 22;
  static const bool found = has_avx512_bfloat16() && has_amx(kBfloat16) && onednn_allows_amx();
  return found;
}

Bfloat16Tiles::Bfloat16Tiles(bool wanted) : wanted_(wanted) {
  if (wanted_ && has_amx_bfloat16()) load_configuration();
}

Bfloat16Tiles::~Bfloat16Tiles() {
  if (wanted_ && has_amx_bfloat16()) release();
}

}  // namespace attune::cpu

#else

namespace attune::cpu {

bool has_avx512_bfloat16() {
  return false;
}

bool has_amx_bfloat16() {
  return false;
}

Bfloat16Tiles::Bfloat16Tiles(bool wanted) : wanted_(wanted) {}
Bfloat16Tiles::~Bfloat16Tiles() = default;

}  // namespace attune::cpu

#endif

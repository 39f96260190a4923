#pragma once
// AMX's tiles of 16 rows of 64 bytes. x86-64 on Linux alone.

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace attune::cpu {

constexpr int64_t kTileRows = 16;
constexpr int64_t kTileBytes = 64;  // of a row

/// Whether the processor has tiles and the instructions of `kind`, a bit of EDX of CPUID's leaf 7, and the system saves
/// tiles for this process, which has to ask.
inline bool has_amx(unsigned kind) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTiles = 1u << 24;
  if ((d & kTiles) == 0 || (d & kind) == 0) return false;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

struct alignas(64) TileConfiguration {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfiguration) == 64);

constexpr TileConfiguration whole_tiles() {
  TileConfiguration configuration;
  std::fill_n(configuration.bytes, 8, static_cast<uint16_t>(kTileBytes));
  std::fill_n(configuration.rows, 8, static_cast<uint8_t>(kTileRows));
  return configuration;
}
/// In memory: GCC 12 drops stores before the load of a configuration.
inline constexpr TileConfiguration kWholeTiles = whole_tiles();

}  // namespace attune::cpu

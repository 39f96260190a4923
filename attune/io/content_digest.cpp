#include "attune/io/content_digest.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attune/base/parallel_tasks.h"

namespace attune {

void ContentDigest::add(std::span<const std::byte> part) {
  constexpr size_t kPiece = size_t{4} << 20;
  std::vector<std::string> digests((part.size() + kPiece - 1) / kPiece);
  parallel_tasks(static_cast<int64_t>(digests.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      Sha256 piece;
      piece.update(part.data() + i * kPiece, std::min(kPiece, part.size() - i * kPiece));
      digests[i] = piece.hex();
    }
  });
  for (const std::string& digest : digests) of_pieces_.update(digest);
}

}  // namespace attune

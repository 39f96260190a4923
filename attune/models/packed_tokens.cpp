#include "attune/models/packed_tokens.h"

#include "attune/base/fail.h"
#include "attune/base/profile.h"

namespace attune {

PackedTokens pack_tokens(std::span<const int32_t> ids, const std::vector<int32_t>& offsets) {
  const ProfileScope scope("batch");
  PackedTokens tokens{Indices(ids), Sequences::from_offsets(offsets)};
  if (tokens.sequences.total() != tokens.ids.size())
    fail<ShapeError>("tokens: {} ids but offsets up to {}", ids.size(), tokens.sequences.total());
  return tokens;
}

}  // namespace attune

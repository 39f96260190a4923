#include "attune/nn/embeddings.h"

#include "attune/nn/attention/attention.h"
#include "attune/ops/residual.h"

namespace attune {
namespace {

Indices zeros(int64_t count) {
  return std::vector<int32_t>(static_cast<size_t>(count), 0);
}

// The positions with -1 for every padding token.
Indices without_padding(const Indices& positions, const Indices& ids, int64_t padding_token) {
  std::vector<int32_t> kept(positions.values().begin(), positions.values().end());
  for (size_t i = 0; i < kept.size(); ++i)
    if (ids.values()[i] == padding_token) kept[i] = -1;
  return kept;
}

// 0, 1, 2, ... for the tokens of each sequence, in which padding tokens do not count.
Indices counted_positions(const Indices& ids, const Sequences& sequences, int64_t padding_token) {
  std::vector<int32_t> positions;
  for (int64_t s = 0; s < sequences.count(); ++s) {
    int32_t next = 0;
    for (int64_t i = sequences.begin(s); i < sequences.begin(s) + sequences.length(s); ++i) {
      positions.push_back(next);
      if (ids.values()[static_cast<size_t>(i)] != padding_token) ++next;
    }
  }
  return positions;
}

}  // namespace

Tensor Embeddings::operator()(const Indices& ids, const Indices& positions, const Indices& types) const {
  Tensor x = (*parts_.token)(ids);
  if (parts_.token_projection) x = (*parts_.token_projection)(x);
  if (parts_.type) x = residual_dropout(x, (*parts_.type)(types.empty() ? zeros(ids.size()) : types));
  if (parts_.position)
    x = (*parts_.position)(x, padding_token() < 0 ? positions : without_padding(positions, ids, padding_token()));
  if (parts_.norm) x = (*parts_.norm)(x);
  x = dropout_(x);
  return parts_.projection ? (*parts_.projection)(x) : x;
}

Tensor Embeddings::operator()(const Indices& ids, const Sequences& sequences, const Indices& types) const {
  return (*this)(ids, padding_token() < 0 ? sequences.positions() : counted_positions(ids, sequences, padding_token()),
                 types);
}

}  // namespace attune

#pragma once
// The kinds of positions that a model can have. To add a kind, write its struct and its PositionTraits in
// position_kind.cpp, and add it to the variant.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "attune/base/fields.h"
#include "attune/nn/sinusoid_options.h"
#include "attune/ops/attention/rotary.h"

namespace [[gnu::visibility("default")]] attune {

class Positions;
class RelativeBias;
struct AttentionPositions;

using SinusoidalPositions = SinusoidOptions;  // Vaswani et al. 2017, section 3.5
struct LearnedPositions {                     // a table; a longer sequence is an error
  int64_t max_length = 0;                     // 0: context_length of a language model, else 512
  bool operator==(const LearnedPositions&) const = default;
};
struct RelativePositions {  // Shaw et al. 2018
  int64_t clip = 16;        // larger distances count as this one
  bool operator==(const RelativePositions&) const = default;
};
struct RelativeBiasPositions {  // Raffel et al. 2020, section 2.1: a learned number for each head and bucket of
                                // distances
  int64_t buckets = 32;         // even, at least 4
  int64_t max_distance = 128;   // larger distances share the last bucket
  bool operator==(const RelativeBiasPositions&) const = default;
};
struct AlibiPositions {  // Press et al. 2022
  bool operator==(const AlibiPositions&) const = default;
};
struct NoPositions {
  bool operator==(const NoPositions&) const = default;
};
/// The first two are added to embeddings, the next four act within self-attention. RotaryOptions: Su et al. 2021.
using PositionKind = std::variant<SinusoidalPositions, LearnedPositions, RelativePositions, RelativeBiasPositions,
                                  RotaryOptions, AlibiPositions, NoPositions>;

/// What positions need to know of their model.
struct PositionSetting {
  int64_t d_model = 512;
  int64_t context_length = 0;           // of a language model; else 0
  const char* width_field = "d_model";  // where the configuration has the width, for errors
};

/// Throws ConfigError naming the field.
void validate(const PositionKind& kind, const PositionSetting& setting);
/// The most tokens of a sequence: the rows of a learned table, else no limit (INT64_MAX).
int64_t longest_sequence(const PositionKind& kind, const PositionSetting& setting);
/// The number of parameters of positions that are added to embeddings.
int64_t embedding_parameters(const PositionKind& kind, const PositionSetting& setting);
/// Whether these positions are added to embeddings.
bool is_added(const PositionKind& kind);
/// Builds the module that adds positions to embeddings and then applies dropout; null unless is_added().
std::unique_ptr<Positions> build(const PositionKind& kind, const PositionSetting& setting, double dropout);
/// How self-attention uses these positions. A bias that the layers of a stack share is not in it.
AttentionPositions in_attention(const PositionKind& kind);
/// The bias that the layers of one stack share, or null. `bidirectional`: the stack is not causal.
std::shared_ptr<RelativeBias> build_bias(const PositionKind& kind, int64_t heads, bool bidirectional);
/// The number of its parameters.
int64_t bias_parameters(const PositionKind& kind, int64_t heads);
/// One line of `attune inspect` for what is not a field; "" if there is nothing else to say.
std::string summary(const PositionKind& kind, const PositionSetting& setting);
/// The text for an attention with these positions in a drawing: ", rotary"; "" if they are added to embeddings.
std::string attention_detail(const PositionKind& kind);

template <>
struct VariantNames<PositionKind> {
  static constexpr const char* values[] = {"sinusoidal", "learned", "relative", "relative_bias",
                                           "rotary",     "alibi",   "none"};
};

template <class FieldVisitor>
void visit_fields(LearnedPositions& c, FieldVisitor& v) {
  v("max_length", c.max_length);
}
template <class FieldVisitor>
void visit_fields(RelativePositions& c, FieldVisitor& v) {
  v("clip", c.clip);
}
template <class FieldVisitor>
void visit_fields(RelativeBiasPositions& c, FieldVisitor& v) {
  v("buckets", c.buckets);
  v("max_distance", c.max_distance);
}
template <class FieldVisitor>
void visit_fields(AlibiPositions&, FieldVisitor&) {}
template <class FieldVisitor>
void visit_fields(NoPositions&, FieldVisitor&) {}

}  // namespace attune

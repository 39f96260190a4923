#pragma once
// How a token can know its position. To add a way, write its struct, its PositionTraits in position_kind.cpp, and name
// it in the variant.

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "attune/base/fields.h"
#include "attune/ops/rotary.h"

namespace [[gnu::visibility("default")]] attune {

class Positions;
struct AttentionPositions;

struct SinusoidalPositions {  // Vaswani et al. 2017, section 3.5
  bool operator==(const SinusoidalPositions&) const = default;
};
struct LearnedPositions {  // a table; a longer sequence is an error
  int64_t max_length = 0;  // 0: context_length of a language model, else 512
  bool operator==(const LearnedPositions&) const = default;
};
struct RelativePositions {  // Shaw et al. 2018
  int64_t clip = 16;        // distances beyond count as this one
  bool operator==(const RelativePositions&) const = default;
};
struct AlibiPositions {  // Press et al. 2022
  bool operator==(const AlibiPositions&) const = default;
};
struct NoPositions {
  bool operator==(const NoPositions&) const = default;
};
/// The first two are added to embeddings, the next three act within self-attention. RotaryOptions are those of Su et
/// al. 2021.
using PositionKind =
    std::variant<SinusoidalPositions, LearnedPositions, RelativePositions, RotaryOptions, AlibiPositions, NoPositions>;

/// The model around them.
struct PositionSetting {
  int64_t d_model = 512;
  int64_t context_length = 0;  // of a language model; else 0
};

/// Throws ConfigError naming the field.
void validate(const PositionKind& kind, const PositionSetting& setting);
/// Tokens that a sequence may have: rows of a learned table, else no limit (INT64_MAX).
int64_t longest_sequence(const PositionKind& kind, const PositionSetting& setting);
/// Numbers of the parameters that are added to an embedding.
int64_t embedding_parameters(const PositionKind& kind, const PositionSetting& setting);
/// Whether they are added to embeddings.
bool is_added(const PositionKind& kind);
/// What is added to embeddings, with dropout behind it; null for those that are not.
std::unique_ptr<Positions> build(const PositionKind& kind, const PositionSetting& setting, double dropout);
/// What self-attention does about them.
AttentionPositions in_attention(const PositionKind& kind);
/// One line of `attune inspect` for what is not a field; "": the fields say it.
std::string summary(const PositionKind& kind, const PositionSetting& setting);
/// What a drawing says of an attention with them: ", rotary"; "" where they are added to embeddings.
std::string attention_detail(const PositionKind& kind);

template <>
struct VariantNames<PositionKind> {
  static constexpr const char* values[] = {"sinusoidal", "learned", "relative", "rotary", "alibi", "none"};
};

template <class FieldVisitor>
void visit_fields(SinusoidalPositions&, FieldVisitor&) {}
template <class FieldVisitor>
void visit_fields(LearnedPositions& c, FieldVisitor& v) {
  v("max_length", c.max_length);
}
template <class FieldVisitor>
void visit_fields(RelativePositions& c, FieldVisitor& v) {
  v("clip", c.clip);
}
template <class FieldVisitor>
void visit_fields(AlibiPositions&, FieldVisitor&) {}
template <class FieldVisitor>
void visit_fields(NoPositions&, FieldVisitor&) {}

}  // namespace attune

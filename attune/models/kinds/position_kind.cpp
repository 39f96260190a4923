#include "attune/models/kinds/position_kind.h"

#include <fmt/format.h>

#include <limits>

#include "attune/base/check.h"
#include "attune/base/with_prefix.h"
#include "attune/nn/attention/attention.h"
#include "attune/nn/positional_encoding.h"

namespace attune {
namespace {

// The defaults of a kind: it does nothing.
template <class Kind>
struct DefaultTraits {
  static void validate(const Kind&, const PositionSetting&) {}
  static int64_t longest_sequence(const Kind&, const PositionSetting&) { return std::numeric_limits<int64_t>::max(); }
  static int64_t embedding_parameters(const Kind&, const PositionSetting&) { return 0; }
  static constexpr bool kIsAdded = false;
  static std::unique_ptr<Positions> build(const Kind&, const PositionSetting&, double) { return nullptr; }
  static AttentionPositions in_attention(const Kind&) { return {}; }
  static std::shared_ptr<RelativeBias> build_bias(const Kind&, int64_t, bool) { return nullptr; }
  static int64_t bias_parameters(const Kind&, int64_t) { return 0; }
  static std::string summary(const Kind&, const PositionSetting&) { return ""; }
  static std::string attention_detail(const Kind&) { return ""; }
};

template <class Kind>
struct PositionTraits : DefaultTraits<Kind> {};

template <>
struct PositionTraits<SinusoidalPositions> : DefaultTraits<SinusoidalPositions> {
  static void validate(const SinusoidalPositions& kind, const PositionSetting& setting) {
    if (setting.d_model % 2 != 0)
      fail<ConfigError>("{} = {}: positions = \"sinusoidal\" need an even number", setting.width_field,
                        setting.d_model);
    if (kind.full_range && setting.d_model < 4)
      fail<ConfigError>("{} = {}: positions.full_range = true needs at least 4", setting.width_field, setting.d_model);
    check_range("positions.first", kind.first, 0, 1 << 20);
    check_range("positions.padding_token", kind.padding_token, -1, 1 << 24);
  }
  static constexpr bool kIsAdded = true;
  static std::unique_ptr<Positions> build(const SinusoidalPositions& kind, const PositionSetting& setting,
                                          double dropout) {
    return std::make_unique<PositionalEncoding>(setting.d_model, dropout, kind);
  }
  static std::string summary(const SinusoidalPositions& kind, const PositionSetting&) {
    return kind == SinusoidalPositions{} ? "sinusoidal" : "";
  }
};

template <>
struct PositionTraits<LearnedPositions> : DefaultTraits<LearnedPositions> {
  static void validate(const LearnedPositions& kind, const PositionSetting& setting) {
    check_range("positions.max_length", kind.max_length, 0, 1 << 24);
    if (longest_sequence(kind, setting) < setting.context_length)
      fail<ConfigError>("positions.max_length = {} is below context_length = {}", kind.max_length,
                        setting.context_length);
  }
  static int64_t longest_sequence(const LearnedPositions& kind, const PositionSetting& setting) {
    if (kind.max_length > 0) return kind.max_length;
    return setting.context_length > 0 ? setting.context_length : 512;
  }
  static int64_t embedding_parameters(const LearnedPositions& kind, const PositionSetting& setting) {
    return longest_sequence(kind, setting) * setting.d_model;
  }
  static constexpr bool kIsAdded = true;
  static std::unique_ptr<Positions> build(const LearnedPositions& kind, const PositionSetting& setting,
                                          double dropout) {
    return std::make_unique<LearnedPositionalEncoding>(longest_sequence(kind, setting), setting.d_model, dropout);
  }
  static std::string summary(const LearnedPositions& kind, const PositionSetting& setting) {
    return fmt::format("learned, {}", longest_sequence(kind, setting));
  }
};

template <>
struct PositionTraits<RelativePositions> : DefaultTraits<RelativePositions> {
  static void validate(const RelativePositions& kind, const PositionSetting&) {
    check_range("positions.clip", kind.clip, 1, 1 << 12);
  }
  static AttentionPositions in_attention(const RelativePositions& kind) { return {.relative_clip = kind.clip}; }
  static std::string attention_detail(const RelativePositions& kind) {
    return fmt::format(", relative up to {}", kind.clip);
  }
};

template <>
struct PositionTraits<RelativeBiasPositions> : DefaultTraits<RelativeBiasPositions> {
  static RelativeBiasConfig config(const RelativeBiasPositions& kind, int64_t heads, bool bidirectional) {
    return {.heads = heads, .buckets = kind.buckets, .max_distance = kind.max_distance, .bidirectional = bidirectional};
  }
  static void validate(const RelativeBiasPositions& kind, const PositionSetting&) {
    with_prefix("positions.", [&] { config(kind, 1, true).validate(); });
  }
  static std::shared_ptr<RelativeBias> build_bias(const RelativeBiasPositions& kind, int64_t heads,
                                                  bool bidirectional) {
    return std::make_shared<RelativeBias>(config(kind, heads, bidirectional));
  }
  static int64_t bias_parameters(const RelativeBiasPositions& kind, int64_t heads) { return kind.buckets * heads; }
  static std::string attention_detail(const RelativeBiasPositions& kind) {
    return fmt::format(", relative bias of {} buckets", kind.buckets);
  }
};

template <>
struct PositionTraits<RotaryOptions> : DefaultTraits<RotaryOptions> {
  static void validate(const RotaryOptions& kind, const PositionSetting&) {
    with_prefix("positions.", [&] { kind.validate(); });
  }
  static AttentionPositions in_attention(const RotaryOptions& kind) { return {.rotary = kind}; }
  static std::string attention_detail(const RotaryOptions&) { return ", rotary"; }
};

template <>
struct PositionTraits<AlibiPositions> : DefaultTraits<AlibiPositions> {
  static AttentionPositions in_attention(const AlibiPositions&) { return {.alibi = true}; }
  static std::string attention_detail(const AlibiPositions&) { return ", ALiBi"; }
};

// f(kind, its traits)
template <class F>
auto with_traits(const PositionKind& kind, F&& f) {
  return std::visit([&]<class Kind>(const Kind& k) { return f(k, PositionTraits<Kind>{}); }, kind);
}

}  // namespace

void validate(const PositionKind& kind, const PositionSetting& setting) {
  with_traits(kind, [&](const auto& k, auto traits) { traits.validate(k, setting); });
}

int64_t longest_sequence(const PositionKind& kind, const PositionSetting& setting) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.longest_sequence(k, setting); });
}

int64_t embedding_parameters(const PositionKind& kind, const PositionSetting& setting) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.embedding_parameters(k, setting); });
}

bool is_added(const PositionKind& kind) {
  return with_traits(kind, [](const auto&, auto traits) { return traits.kIsAdded; });
}

std::unique_ptr<Positions> build(const PositionKind& kind, const PositionSetting& setting, double dropout) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.build(k, setting, dropout); });
}

AttentionPositions in_attention(const PositionKind& kind) {
  return with_traits(kind, [](const auto& k, auto traits) { return traits.in_attention(k); });
}

std::shared_ptr<RelativeBias> build_bias(const PositionKind& kind, int64_t heads, bool bidirectional) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.build_bias(k, heads, bidirectional); });
}

int64_t bias_parameters(const PositionKind& kind, int64_t heads) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.bias_parameters(k, heads); });
}

std::string summary(const PositionKind& kind, const PositionSetting& setting) {
  return with_traits(kind, [&](const auto& k, auto traits) { return traits.summary(k, setting); });
}

std::string attention_detail(const PositionKind& kind) {
  return with_traits(kind, [](const auto& k, auto traits) { return traits.attention_detail(k); });
}

}  // namespace attune

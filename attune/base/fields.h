#pragma once
// What a configuration consists of. A struct lists its fields once,
//
//   template <class Visitor>
//   void visit_fields(AdamConfig& c, Visitor& v) { v("beta_1", c.beta_1); v("epsilon", c.epsilon); }
//
// and that list serves reading, writing and the refusal of unknown keys: json_fields.h.

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// The candidate with the smallest edit distance to `word`, or "" when none is near (more than half of it differs).
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// An enum is written by name: specialise with `static constexpr std::pair<E, const char*> values[]`.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires {
  EnumNames<E>::values;
};

template <NamedEnum E>
std::string enum_name(E value) {
  for (const auto& [candidate, name] : EnumNames<E>::values)
    if (candidate == value) return name;
  return "?";
}

/// A variant of structs is a table {kind = "latent", latent_dim = 64}, or its name alone where every field has its
/// default: specialise with `static constexpr const char* values[]`, one name for each alternative.
template <class V>
struct VariantNames;

template <class V>
concept NamedVariant = requires {
  VariantNames<V>::values;
};

template <NamedVariant V>
const char* variant_name(const V& value) {
  static_assert(std::size(VariantNames<V>::values) == std::variant_size_v<V>);
  return VariantNames<V>::values[value.index()];
}

}  // namespace attune

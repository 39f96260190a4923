#pragma once
// The fields of configuration structs. A struct lists its fields once,
//
//   template <class Visitor>
//   void visit_fields(AdamConfig& c, Visitor& v) { v("beta_1", c.beta_1); v("epsilon", c.epsilon); }
//
// and json_fields.h uses that list to read, to write and to reject unknown keys.

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace [[gnu::visibility("default")]] attune {

/// Returns the candidate with the smallest edit distance to `word`, if that is at most max(min(2, n / 2), n / 3), where
/// n is the length of `word`. Else returns the first candidate that begins with `word`, if n is at least 3; else "".
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// The names of an enum's values in files: specialise with `static constexpr std::pair<E, const char*> values[]`.
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

template <class T>
concept EnumList = requires(T list) {
  requires std::same_as<T, std::vector<typename T::value_type>>;
  requires NamedEnum<typename T::value_type>;
};

/// The names of a variant's alternatives. A file has a table {kind = "latent", latent_dim = 64}, or the name alone if
/// every field has its default. Specialise with `static constexpr const char* values[]`, one for each alternative.
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

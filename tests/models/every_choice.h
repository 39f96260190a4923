#pragma once
// Lists of choices that tests walk are complete: whoever adds a choice adds it there.

#include <gtest/gtest.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "attune/base/fields.h"

namespace attune {

template <class V>
void expect_every_alternative(const std::vector<V>& values) {
  for (size_t index = 0; index < std::variant_size_v<V>; ++index)
    EXPECT_TRUE(std::ranges::any_of(values, [&](const V& value) { return value.index() == index; }))
        << VariantNames<V>::values[index] << " is tried nowhere";
}
template <NamedEnum E>
void expect_every_value(const std::vector<E>& values) {
  for (const auto& [value, name] : EnumNames<E>::values)
    EXPECT_TRUE(std::ranges::find(values, value) != values.end()) << name << " is tried nowhere";
}

/// The values one after the other, again and again; each round begins one turn later than the one before.
template <NamedEnum E>
E in_turn(size_t turn) {
  constexpr size_t kValues = std::size(EnumNames<E>::values);
  return EnumNames<E>::values[(turn + turn / kValues) % kValues].first;
}

}  // namespace attune

#pragma once
// What all kinds of vocabulary.json share.

#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace attune {

/// Ids 0 to 3.
inline constexpr std::array<std::string_view, 4> kSpecialPieces{"<pad>", "<unk>", "<s>", "</s>"};

/// No vocabulary has more pieces.
inline constexpr size_t kMaxPieces = size_t{1} << 22;

/// The "type" of a vocabulary, "" when the text is not an object with such a string. `name` is for messages. Throws
/// FileError when the text is not JSON or beyond the limits.
std::string vocabulary_type(std::string_view text, const std::string& name);

/// A vocabulary of this type as an object that has no other fields than "type" and `fields`. Throws FileError.
nlohmann::json parse_vocabulary(std::string_view text, std::string_view type,
                                std::initializer_list<std::string_view> fields, const std::string& name);

/// Returns the string of a field. Throws FileError when the field is missing or is no string.
const std::string& string_field(const nlohmann::json& vocabulary, const char* field, const std::string& name);

/// The strings of an array, each called a `what` in messages. Throws FileError.
std::vector<std::string> take_strings(nlohmann::json& vocabulary, const char* field, std::string_view what,
                                      const std::string& name);

}  // namespace attune

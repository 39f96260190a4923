#pragma once
// Tokens that are found in a text before the model sees it: <s>, [MASK], <|endoftext|>, runs of spaces, ...

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attune/text/huggingface/normalizers.h"
#include "attune/text/huggingface/token_map.h"
#include "attune/text/huggingface/trie.h"

namespace attune::huggingface {

inline constexpr size_t kMaxAddedTokens = size_t{1} << 18;

struct AddedToken {
  std::string content;
  bool single_word = false;  // only between characters that are not of words
  bool lstrip = false;       // takes white space before it
  bool rstrip = false;       // takes white space behind it
  bool normalized = true;    // its normalized form is looked for in normalized text
  bool special = false;      // is left out when text is decoded
};

/// A part of a text: an added token, or text between them.
struct Section {
  std::string_view text;
  int32_t token = -1;  // -1: text
};

class AddedTokens {
 public:
  AddedTokens() = default;

  /// Tokens that the model has keep its ids; others follow its last one. `normalizer` may be null.
  AddedTokens(const std::vector<AddedToken>& tokens, const TokenMap& model, const Normalizer* normalizer);

  /// From now on special tokens that stand in a text are text like any other.
  void split_special_tokens() { splits_special_ = true; }

  /// Cuts a text at the added tokens that are looked for before (`normalized` false) or after normalization.
  void split(std::string_view text, bool normalized, std::vector<Section>& sections) const;
  bool has_any(bool normalized) const { return normalized ? in_normalized_.any : in_text_.any; }

  const AddedToken* find(int32_t id) const;
  int32_t id(std::string_view content) const;  // -1: none
  /// The text that an added token becomes when ids are decoded.
  const std::string& text(int32_t id) const;
  bool is_special(int32_t id) const { return special_ids_.contains(id); }
  int32_t highest_id() const { return highest_id_; }

 private:
  struct Finder {
    Trie trie;
    std::array<bool, 256> first{};  // bytes that begin a token
    bool any = false;
  };
  static Finder finder_of(const std::vector<std::pair<std::string, int32_t>>& patterns);

  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_map<int32_t, std::string> normalized_;  // where it differs from the content
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_set<int32_t> special_ids_;
  Finder in_text_, in_normalized_;
  int32_t highest_id_ = -1;
  bool splits_special_ = false;
};

/// The array "added_tokens". Throws FileError.
std::vector<AddedToken> read_added_tokens(const nlohmann::json& file, const std::string& name);

/// One of them, or a token of tokenizer_config.json or special_tokens_map.json: a string or an object.
AddedToken read_added_token(const nlohmann::json& value, const std::string& where);

}  // namespace attune::huggingface

#include "attune/text/huggingface/added_tokens.h"

#include <algorithm>
#include <array>

#include "attune/text/huggingface/unicode.h"

namespace attune::huggingface {
namespace {

constexpr size_t kLongestToken = 1 << 10;
constexpr size_t kMostGrowth = 4;  // of all tokens together, when they are normalized; and kFreeGrowth bytes
constexpr size_t kFreeGrowth = 64 << 10;

size_t previous_character(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (text[at] & 0xC0) == 0x80);
  return at;
}

bool has_property(std::string_view text, size_t at, uint16_t property) {
  return (property_table()[next_character(text, at)] & property) != 0;
}

bool word_ends(std::string_view text, size_t at) {
  return at > 0 && has_property(text, previous_character(text, at), properties::word);
}

bool word_begins(std::string_view text, size_t at) {
  return at < text.size() && has_property(text, at, properties::word);
}

// Looks back no further than `begin`: otherwise many tokens that are spaces would take quadratic time.
size_t before_spaces(std::string_view text, size_t at, size_t begin) {
  while (at > begin) {
    const size_t previous = previous_character(text, at);
    if (!has_property(text, previous, properties::white_space)) break;
    at = previous;
  }
  return at;
}

size_t behind_spaces(std::string_view text, size_t at) {
  while (at < text.size() && has_property(text, at, properties::white_space)) at += character_bytes(text[at]);
  return at;
}

}  // namespace

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens, const TokenMap& model, const Normalizer* normalizer) {
  highest_id_ = model.highest_id();
  auto next = static_cast<int32_t>(model.size());
  std::vector<std::pair<std::string, int32_t>> plain, normal;
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    int32_t id = this->id(token.content);
    if (id < 0) id = model.find(token.content);
    if (id < 0) id = next++;
    next = std::max(next, id >= static_cast<int32_t>(model.size()) ? id + 1 : next);
    highest_id_ = std::max(highest_id_, id);
    ids_[token.content] = id;
    tokens_[id] = token;
    if (token.special) special_ids_.insert(id);
  }
  size_t before = 0, after = 0;
  SearchBudget budget(0);  // of all tokens
  for (const auto& [id, token] : tokens_) {
    if (!token.normalized) {
      plain.emplace_back(token.content, id);
      continue;
    }
    NormalizedText text{token.content, budget};
    if (normalizer != nullptr) normalizer->apply(text);
    before += token.content.size();
    after += text.text.size();
    if (after > kMostGrowth * before + kFreeGrowth)
      fail<DataError>("normalization turns added tokens of {} bytes into {} bytes", before, after);
    if (text.text != token.content) normalized_[id] = text.text;
    if (!text.text.empty()) normal.emplace_back(text.text, id);
  }
  in_text_ = finder_of(plain);
  in_normalized_ = finder_of(normal);
}

AddedTokens::Finder AddedTokens::finder_of(const std::vector<std::pair<std::string, int32_t>>& patterns) {
  Finder finder;
  std::vector<std::pair<std::string_view, int32_t>> keys(patterns.begin(), patterns.end());
  for (const auto& [key, id] : keys) finder.first[static_cast<uint8_t>(key[0])] = true;
  finder.any = !keys.empty();
  finder.trie = Trie(std::move(keys));
  return finder;
}

void AddedTokens::split(std::string_view text, bool normalized, std::vector<Section>& sections) const {
  const Finder& finder = normalized ? in_normalized_ : in_text_;
  size_t done = 0, spaces_end = 0;  // of white space that a token took
  for (size_t at = 0; finder.any && at < text.size();) {
    if (!finder.first[static_cast<uint8_t>(text[at])]) {
      ++at;
      continue;
    }
    int32_t id = -1;
    size_t end = at;
    uint32_t node = Trie::kRoot;
    for (size_t i = at; i < text.size() && finder.trie.step(node, text[i]); ++i)
      if (finder.trie.value(node) >= 0) id = finder.trie.value(node), end = i + 1;
    if (id < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_.at(id);
    const size_t found = at;
    at = end;
    if (splits_special_ && is_special(id)) continue;
    if (token.single_word && (word_ends(text, found) || word_begins(text, end))) continue;
    const size_t begin = token.lstrip ? before_spaces(text, found, done) : found;
    if (token.rstrip) end = spaces_end = behind_spaces(text, std::max(end, spaces_end));
    if (begin > done) sections.push_back({text.substr(done, begin - done)});
    sections.push_back({text.substr(begin, end - begin), id});
    done = end;  // a token in white space that the one before took is a token too, as in the reference
  }
  if (done < text.size()) sections.push_back({text.substr(done)});
}

const AddedToken* AddedTokens::find(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

int32_t AddedTokens::id(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? -1 : found->second;
}

const std::string& AddedTokens::text(int32_t id) const {
  const auto found = normalized_.find(id);
  return found == normalized_.end() ? tokens_.at(id).content : found->second;
}

AddedToken read_added_token(const nlohmann::json& value, const std::string& where) {
  AddedToken token;
  if (value.is_string()) {
    token.content = value.get<std::string>();
    token.normalized = false;
    token.special = true;
  } else {
    const Fields fields(value, where);
    token.content = fields.string("content");
    token.single_word = fields.boolean("single_word", false);
    token.lstrip = fields.boolean("lstrip", false);
    token.rstrip = fields.boolean("rstrip", false);
    token.special = fields.boolean("special", false);
    token.normalized = fields.boolean("normalized", !token.special);
  }
  if (token.content.size() > kLongestToken)
    fail<FileError>("{}.content: has {} bytes, at most {} are accepted", where, token.content.size(), kLongestToken);
  return token;
}

std::vector<AddedToken> read_added_tokens(const nlohmann::json& file, const std::string& name) {
  std::vector<AddedToken> tokens;
  const Fields fields = Fields::of_file(file, name);
  if (!fields.find("added_tokens")) return tokens;
  const nlohmann::json& values = fields.array("added_tokens");
  if (values.size() > kMaxAddedTokens)
    fail<FileError>("{}: has {} added tokens, at most {} are accepted", name, values.size(), kMaxAddedTokens);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_object()) fail<FileError>("{}: added_tokens[{}]: is not an object", name, i);
    tokens.push_back(read_added_token(values[i], fmt::format("{}: added_tokens[{}]", name, i)));
  }
  return tokens;
}

}  // namespace attune::huggingface

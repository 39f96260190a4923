#include "attune/text/huggingface/unigram.h"

#include <algorithm>
#include <cmath>

#include "attune/text/huggingface/unicode.h"

namespace attune::huggingface {
namespace {

constexpr double kUnknownPenalty = 10;  // below the lowest score, as in SentencePiece

// The best way to a place in the text.
struct Arrival {
  double score = 0;
  int32_t token = -1;
  uint32_t from = UINT32_MAX;  // UINT32_MAX: there is none
};

struct UnigramWorkspace final : Workspace {
  std::vector<Arrival> arrivals;
  std::vector<uint32_t> path;
};

}  // namespace

Unigram::Unigram(TokenMap vocabulary, std::vector<double> scores, const UnigramOptions& options)
    : Model(std::move(vocabulary)),
      scores_(std::move(scores)),
      unknown_(options.unknown),
      byte_tokens_(vocabulary_),
      byte_fallback_(options.byte_fallback) {
  std::vector<std::pair<std::string_view, int32_t>> keys;
  keys.reserve(scores_.size());
  for (int32_t id = 0; id < static_cast<int32_t>(scores_.size()); ++id) {
    const std::string_view token = vocabulary_.token(id);
    if (vocabulary_.find(token) == id) keys.emplace_back(token, id);  // of equal tokens the last
  }
  trie_ = Trie(std::move(keys));
  unknown_score_ = scores_.empty() ? 0 : *std::min_element(scores_.begin(), scores_.end()) - kUnknownPenalty;
}

std::unique_ptr<Workspace> Unigram::make_workspace() const {
  return std::make_unique<UnigramWorkspace>();
}

// A run of unknown characters: one token, or those of its bytes.
void Unigram::append_unknown(std::string_view text, std::vector<int32_t>& ids) const {
  if (const int32_t id = vocabulary_.find(text); id >= 0) return ids.push_back(id);
  if (!byte_fallback_ || !byte_tokens_.append(text, ids)) ids.push_back(unknown_);
}

void Unigram::encode_new(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
  auto& arrivals = static_cast<UnigramWorkspace&>(workspace).arrivals;
  auto& path = static_cast<UnigramWorkspace&>(workspace).path;
  arrivals.assign(word.size() + 1, {});
  const auto arrive = [&](size_t end, double score, int32_t token, size_t from) {
    Arrival& best = arrivals[end];
    if (best.from == UINT32_MAX || score > best.score) best = {score, token, static_cast<uint32_t>(from)};
  };
  for (size_t at = 0; at < word.size();) {
    const double here = arrivals[at].score;
    const size_t next = std::min(at + character_bytes(word[at]), word.size());
    bool has_character = false;
    uint32_t node = Trie::kRoot;
    for (size_t end = at; end < word.size() && trie_.step(node, word[end]);) {
      ++end;
      const int32_t token = trie_.value(node);
      if (token < 0) continue;
      arrive(end, scores_[static_cast<size_t>(token)] + here, token, at);
      has_character |= end == next;
    }
    if (!has_character) {
      if (unknown_ < 0)
        fail<DataError>("cannot tokenize \"{}\": the model has no token for unknown characters",
                        word.substr(at, next - at));
      arrive(next, unknown_score_ + here, unknown_, at);
    }
    at = next;
  }
  path.clear();
  for (size_t end = word.size(); end > 0; end = arrivals[end].from) path.push_back(static_cast<uint32_t>(end));
  size_t begin = 0, unknown_from = 0;
  bool in_unknown = false;
  for (auto end = path.rbegin(); end != path.rend(); begin = *end, ++end) {
    const int32_t token = arrivals[*end].token;
    if (token == unknown_ && !in_unknown) unknown_from = begin;
    if (token != unknown_ && in_unknown) append_unknown(word.substr(unknown_from, begin - unknown_from), ids);
    in_unknown = token == unknown_;
    if (!in_unknown) ids.push_back(token);
  }
  if (in_unknown) append_unknown(word.substr(unknown_from), ids);
}

std::unique_ptr<Model> read_unigram(const Fields& fields, TokenizerJson& file) {
  UnigramOptions options;
  const auto count = static_cast<int64_t>(file.vocabulary.scores.size());
  if (count == 0 || !file.vocabulary.ids.empty())
    fail<FileError>("{}: expected [[\"token\", score], ...]", fields.where("vocab"));
  for (size_t i = 0; i < file.vocabulary.scores.size(); ++i)
    if (!std::isfinite(file.vocabulary.scores[i]))
      fail<FileError>("{}: the score of token {} is not finite", fields.where("vocab"), i);
  options.unknown = static_cast<int32_t>(fields.number("unk_id", count - 1, -1));
  options.byte_fallback = fields.boolean("byte_fallback", false);
  TokenMap map;
  map.reserve(file.vocabulary.tokens.size());
  for (size_t i = 0; i < file.vocabulary.tokens.size(); ++i)
    map.insert(file.vocabulary.tokens[i], static_cast<int32_t>(i));
  check_token_bytes(map, fields.where("vocab"));
  return std::make_unique<Unigram>(std::move(map), std::move(file.vocabulary.scores), options);
}

}  // namespace attune::huggingface

#include "attune/text/subword_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "attune/base/fail.h"
#include "attune/text/sentence_piece_model.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/unicode.h"

namespace attune {
namespace {

// Where the characters of a UTF-8 text begin, and its end.
std::vector<size_t> character_bounds(std::string_view text) {
  std::vector<size_t> bounds;
  for (size_t i = 0; i < text.size(); ++i)
    if (!continues_character(text[i])) bounds.push_back(i);
  bounds.push_back(text.size());
  return bounds;
}

double log_sum(double a, double b) {
  const double larger = std::max(a, b);
  return std::isinf(larger) ? larger : larger + std::log1p(std::exp(std::min(a, b) - larger));
}

}  // namespace

SubwordSampler::SubwordSampler(const Tokenizer& tokenizer, double alpha) : alpha_(alpha) {
  const auto* own = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer);
  if (own == nullptr) {
    const bool has_other_ids = tokenizer.kind() == "SentencePiece";
    fail<ConfigError>("train.subword_sampling = {}: needs a SentencePiece model without a Hugging Face class, found {}",
                      alpha,
                      has_other_ids ? "one with the ids of a Hugging Face class, or with tokens that the model lacks"
                                    : tokenizer.kind());
  }
  const PieceModel model = read_piece_model(own->model(), "the tokenizer's model");
  if (model.type != PieceModel::unigram && model.type != PieceModel::bpe)
    fail<ConfigError>("train.subword_sampling = {}: needs a SentencePiece model of the kind unigram or BPE", alpha_);
  bpe_ = model.type == PieceModel::bpe;
  for (const PieceModel::Piece& piece : model.pieces) {
    const auto id = static_cast<int32_t>(texts_.size());
    const std::string& text = texts_.emplace_back(piece.kind == PieceModel::normal ? piece.text : "");
    longest_ = std::max(longest_, text.size());
    if (!text.empty()) pieces_.try_emplace(text, Piece{id, piece.score});
  }
}

const SubwordSampler::Piece* SubwordSampler::find(std::string_view text) const {
  if (text.size() > longest_) return nullptr;
  const auto found = pieces_.find(text);
  return found == pieces_.end() ? nullptr : &found->second;
}

std::vector<int32_t> SubwordSampler::sample(std::span<const int32_t> ids, Random& random) const {
  std::vector<int32_t> result;
  std::string word;
  size_t begin = 0;  // of the word's ids
  const auto end_word = [&](size_t end) {
    if (!word.empty() && !bpe_) draw_unigram(word, random, result);
    if (!word.empty() && bpe_ && !draw_bpe(word, random, result))
      result.insert(result.end(), ids.begin() + static_cast<std::ptrdiff_t>(begin),
                    ids.begin() + static_cast<std::ptrdiff_t>(end));
    word.clear();
    begin = end;
  };
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& text = texts_.at(static_cast<size_t>(ids[i]));
    if (text.empty() || text.starts_with(kMetaspace)) end_word(i);
    word += text;
    if (!text.empty()) continue;
    result.push_back(ids[i]);
    begin = i + 1;
  }
  end_word(ids.size());
  return result;
}

// Forward filtering, backward sampling. A word has at least one segmentation: the one that it came with.
void SubwordSampler::draw_unigram(std::string_view word, Random& random, std::vector<int32_t>& ids) const {
  const std::vector<size_t> bounds = character_bounds(word);
  const size_t n = bounds.size() - 1;
  const auto piece = [&](size_t from, size_t to) { return find(word.substr(bounds[from], bounds[to] - bounds[from])); };
  // The logarithm of the sum over all segmentations of the first characters.
  std::vector<double> total(n + 1, -std::numeric_limits<double>::infinity());
  total[0] = 0;
  for (size_t to = 1; to <= n; ++to)
    for (size_t from = to; from-- > 0 && bounds[to] - bounds[from] <= longest_;)
      if (const Piece* last = piece(from, to)) total[to] = log_sum(total[to], total[from] + alpha_ * last->score);
  const size_t first = ids.size();
  for (size_t to = n; to > 0;) {
    double rest = random.uniform();
    size_t chosen = to;
    for (size_t from = to; from-- > 0 && rest >= 0 && bounds[to] - bounds[from] <= longest_;) {
      const Piece* last = piece(from, to);
      if (last == nullptr || std::isinf(total[from])) continue;
      rest -= std::exp(total[from] + alpha_ * last->score - total[to]);
      chosen = from;
    }
    ids.push_back(piece(chosen, to)->id);
    to = chosen;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
}

// False, and no ids, where a character is no piece.
bool SubwordSampler::draw_bpe(std::string_view word, Random& random, std::vector<int32_t>& ids) const {
  std::vector<size_t> bounds = character_bounds(word);  // of the symbols
  const auto piece = [&](size_t from, size_t to) { return find(word.substr(bounds[from], bounds[to] - bounds[from])); };
  for (;;) {
    size_t best = 0;  // the symbol that is merged with the one before it; 0: none
    double best_score = -std::numeric_limits<double>::infinity();
    for (size_t i = 1; i + 1 < bounds.size(); ++i) {
      const Piece* merged = piece(i - 1, i + 1);
      if (merged == nullptr || random.uniform() < alpha_ || merged->score <= best_score) continue;
      best = i;
      best_score = merged->score;
    }
    if (best == 0) break;
    bounds.erase(bounds.begin() + static_cast<std::ptrdiff_t>(best));
  }
  const size_t first = ids.size();
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    const Piece* symbol = piece(i, i + 1);
    if (symbol == nullptr) {
      ids.resize(first);
      return false;
    }
    ids.push_back(symbol->id);
  }
  return true;
}

}  // namespace attune

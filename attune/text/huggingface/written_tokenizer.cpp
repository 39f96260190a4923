#include "attune/text/huggingface/written_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/sentence_piece_model.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/unicode.h"
#include "attune/text/whitespace_tokenizer.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// BPE of SentencePiece joins the two symbols whose joint piece has the highest score: the merges are all ways to make a
// piece of two, in the order of the scores.
Json merges_of(const PieceModel& model) {
  std::unordered_map<std::string_view, int64_t> ids;
  for (size_t i = 0; i < model.pieces.size(); ++i) ids.emplace(model.pieces[i].text, static_cast<int64_t>(i));
  std::vector<std::tuple<float, int64_t, int64_t, int64_t>> merges;  // -score, the piece, and its two parts
  for (const auto& [text, id] : ids) {
    const PieceModel::Piece& piece = model.pieces[static_cast<size_t>(id)];
    if (piece.kind != PieceModel::normal) continue;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const auto left = ids.find(text.substr(0, cut)), right = ids.find(text.substr(cut));
      if (left != ids.end() && right != ids.end()) merges.emplace_back(-piece.score, id, left->second, right->second);
    }
  }
  std::ranges::sort(merges);
  Json list = Json::array();
  for (const auto& [score, id, left, right] : merges)
    list.push_back({model.pieces[static_cast<size_t>(left)].text, model.pieces[static_cast<size_t>(right)].text});
  return list;
}

Json model_of(const PieceModel& model, int32_t unk) {
  if (model.type == PieceModel::unigram) {
    Json pieces = Json::array();
    for (const PieceModel::Piece& piece : model.pieces)
      pieces.push_back(Json::array({piece.text, static_cast<double>(piece.score)}));
    return {{"type", "Unigram"}, {"unk_id", unk}, {"vocab", pieces}, {"byte_fallback", model.byte_fallback}};
  }
  if (model.type != PieceModel::bpe)
    fail<ConfigError>("tokenizer.model: a SentencePiece model of words or characters has no equivalent");
  Json::object_t vocabulary;  // each piece is there once, so that none is searched for
  for (size_t i = 0; i < model.pieces.size(); ++i) vocabulary.emplace_back(std::string(model.pieces[i].text), i);
  return {{"type", "BPE"},       {"unk_token", model.pieces[static_cast<size_t>(unk)].text},
          {"fuse_unk", true},    {"byte_fallback", model.byte_fallback},
          {"vocab", vocabulary}, {"merges", merges_of(model)}};
}

Json replace(const char* kind, std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{kind, pattern}}}, {"content", content}};
}

Json sequence(const char* field, Json steps) {
  return {{"type", "Sequence"}, {field, std::move(steps)}};
}

// The parts of a tokenizer.json that differ.
struct TokenizerParts {
  Json model;
  Json normalizer = nullptr, pre_tokenizer = nullptr, decoder = nullptr;
  std::vector<int32_t> special = {0, 1, 2, 3};
  std::vector<std::string> left_out = {};
};

TokenizerParts parts_of(const SentencePieceTokenizer& tokenizer) {
  const PieceModel model = read_piece_model(tokenizer.model(), "tokenizer.model");
  if (model.spaces_end_words || !model.escape_spaces)
    fail<ConfigError>("tokenizer.model: a SentencePiece model with {} has no equivalent",
                      model.spaces_end_words ? "treat_whitespace_as_suffix" : "escape_whitespaces = false");
  TokenizerParts parts{.model = model_of(model, tokenizer.unk_id())};
  parts.special.clear();
  for (size_t i = 0; i < model.pieces.size(); ++i)
    if (model.pieces[i].kind == PieceModel::control || model.pieces[i].kind == PieceModel::unknown)
      parts.special.push_back(static_cast<int32_t>(i));
  if (std::ranges::find(model.pieces, PieceModel::user_defined, &PieceModel::Piece::kind) != model.pieces.end())
    parts.left_out.push_back("tokenizer: user-defined pieces are pieces like any other");
  Json normalizers = Json::array();
  if (!model.charsmap.empty())
    normalizers.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", base64(model.charsmap)}});
  if (model.remove_extra_spaces) {
    normalizers.push_back(replace("Regex", "\\A +|[ \u2581]+\\z", ""));
    normalizers.push_back(replace("Regex", " {2,}", " "));
  }
  // Metaspace would put no space in front of a text that begins with one.
  if (model.dummy_prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kMetaspace}});
  normalizers.push_back(replace("String", " ", kMetaspace));
  parts.normalizer = sequence("normalizers", normalizers);
  // A text is one word where pieces reach across spaces.
  const auto has_inner_space = [](const auto& piece) { return piece.text.find(kMetaspace, 1) != std::string::npos; };
  if (std::ranges::none_of(model.pieces, has_inner_space))
    parts.pre_tokenizer = {
        {"type", "Metaspace"}, {"replacement", kMetaspace}, {"prepend_scheme", "never"}, {"split", true}};
  Json decoders = {replace("String", kMetaspace, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
  const int32_t left_out = model.remove_extra_spaces ? INT32_MAX : 1;  // spaces in front
  if (model.dummy_prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", left_out}, {"stop", 0}});
  parts.decoder = sequence("decoders", decoders);
  return parts;
}

Json words_of(const Tokenizer& tokenizer) {
  return {
      {"type", "WordLevel"}, {"vocab", vocabulary_of(tokenizer)}, {"unk_token", tokenizer.piece(tokenizer.unk_id())}};
}

Json split(const char* pattern, const char* behavior) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", behavior}, {"invert", false}};
}

TokenizerParts parts_of(const WhitespaceTokenizer& tokenizer) {
  TokenizerParts parts{.model = words_of(tokenizer), .pre_tokenizer = split("[ \\t\\r\\n]+", "Removed")};
  if (!tokenizer.subword_marker().empty())
    parts.left_out.push_back("tokenizer: decoding leaves \"" + tokenizer.subword_marker() + "\" in the text");
  return parts;
}

TokenizerParts parts_of(const CharacterTokenizer& tokenizer) {
  return {.model = words_of(tokenizer), .pre_tokenizer = split("[\\s\\S]", "Isolated"), .decoder = {{"type", "Fuse"}}};
}

// A byte is a character of GPT-2's alphabet, and nothing is merged.
TokenizerParts parts_of(const ByteTokenizer& tokenizer) {
  Json vocabulary = Json::object();
  for (const int32_t id : {0, 1, 2, 3}) vocabulary[tokenizer.piece(id)] = id;
  for (int32_t byte = 0; byte < 256; ++byte) {
    std::string character;
    append_utf8(character, character_of_byte(static_cast<uint8_t>(byte)));
    vocabulary[character] = 4 + byte;
  }
  const Json level = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
  return {.model = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}},
          .pre_tokenizer = level,
          .decoder = level};
}

// Nothing unless it is one of Attune's own.
std::optional<TokenizerParts> parts_of(const Tokenizer& tokenizer) {
  if (const auto* const pieces = dynamic_cast<const SentencePieceTokenizer*>(&tokenizer)) return parts_of(*pieces);
  if (const auto* const words = dynamic_cast<const WhitespaceTokenizer*>(&tokenizer)) return parts_of(*words);
  if (const auto* const characters = dynamic_cast<const CharacterTokenizer*>(&tokenizer)) return parts_of(*characters);
  if (const auto* const bytes = dynamic_cast<const ByteTokenizer*>(&tokenizer)) return parts_of(*bytes);
  return {};
}

// One text, or two with type ids 0 and 1, each in the frame.
Json post_processor(const Tokenizer& tokenizer, const TextFrame& frame) {
  Json special = Json::object(), single = Json::array(), pair = Json::array();
  const auto add_special = [&](Json& list, int32_t id, int type) {
    const std::string name = tokenizer.piece(id);
    special[name] = {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
    list.push_back({{"SpecialToken", {{"id", name}, {"type_id", type}}}});
  };
  const auto add_text = [&](Json& list, const char* text, int type) {
    for (const int32_t id : frame.before) add_special(list, id, type);
    list.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
    for (const int32_t id : frame.after) add_special(list, id, type);
  };
  add_text(single, "A", 0);
  add_text(pair, "A", 0);
  add_text(pair, "B", 1);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", special}};
}

Json added_tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Json list = Json::array();
  for (const int32_t id : ids)
    list.push_back({{"id", id},
                    {"content", tokenizer.piece(id)},
                    {"single_word", false},
                    {"lstrip", false},
                    {"rstrip", false},
                    {"normalized", false},
                    {"special", true}});
  return list;
}

}  // namespace

Json vocabulary_of(const Tokenizer& tokenizer) {
  Json::object_t vocabulary;  // each piece is there once, so that none is searched for
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) vocabulary.emplace_back(tokenizer.piece(id), id);
  return vocabulary;
}

bool write_tokenizer(const fs::path& folder, const Tokenizer& tokenizer, const TokenizerUse& use,
                     std::vector<std::string>& left_out) {
  const std::optional<TokenizerParts> own = parts_of(tokenizer);
  if (!own) return false;
  const TokenizerParts& parts = *own;
  const Json json = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", added_tokens(tokenizer, parts.special)},
                     {"normalizer", parts.normalizer},
                     {"pre_tokenizer", parts.pre_tokenizer},
                     {"post_processor", post_processor(tokenizer, use.frame)},
                     {"decoder", parts.decoder},
                     {"model", parts.model}};
  write_file(folder / "tokenizer.json", json.dump());
  const Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                       {"model_max_length", use.most_tokens},
                       {"clean_up_tokenization_spaces", false},
                       {"pad_token", tokenizer.piece(tokenizer.pad_id())},
                       {"unk_token", tokenizer.piece(tokenizer.unk_id())},
                       {"bos_token", tokenizer.piece(tokenizer.bos_id())},
                       {"eos_token", tokenizer.piece(tokenizer.eos_id())}};
  write_file(folder / "tokenizer_config.json", config.dump(2) + "\n");
  left_out.insert(left_out.end(), parts.left_out.begin(), parts.left_out.end());
  return true;
}

}  // namespace attune::huggingface

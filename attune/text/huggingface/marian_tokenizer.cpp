#include "attune/text/huggingface/marian_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <vector>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/sentence_piece_processor.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kSpecial = {"</s>", "<unk>", "<pad>"};

}  // namespace

MarianTokenizer::MarianTokenizer(const fs::path& vocabulary)
    : vocabulary_json_(read_file(vocabulary, kMaxTokenizerBytes)),
      source_(read_file(vocabulary.parent_path() / "source.spm", kMaxTokenizerBytes)),
      target_(read_file(vocabulary.parent_path() / "target.spm", kMaxTokenizerBytes)),
      vocabulary_(token_map(parse_vocabulary_object(vocabulary_json_, vocabulary.string()), vocabulary.string())),
      of_source_(load_sentence_piece(source_, (vocabulary.parent_path() / "source.spm").string())),
      of_target_(load_sentence_piece(target_, (vocabulary.parent_path() / "target.spm").string())) {
  const fs::path separate = vocabulary.parent_path() / "target_vocab.json";
  if (is_there(separate)) fail<FileError>("{}: separate vocabularies are not supported", separate.string());
  const auto id_of = [&](const char* token) {
    const int32_t id = vocabulary_.find(token);
    if (id < 0) fail<FileError>("{}: the token {} is missing", vocabulary.string(), token);
    return id;
  };
  special_ = {.pad = id_of("<pad>"), .unk = id_of("<unk>"), .bos = -1, .eos = id_of("</s>")};
}

MarianTokenizer::~MarianTokenizer() = default;

void MarianTokenizer::add(std::string_view token, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(token);
  ids.push_back(id >= 0 ? id : unk_id());
}

// Special tokens in a text are themselves.
void MarianTokenizer::add_pieces(const Processor& processor, std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<std::string> pieces;
  for (;;) {
    size_t at = text.find('<');
    std::string_view found;
    for (; at != std::string_view::npos; at = text.find('<', at + 1)) {
      const auto special = std::ranges::find_if(kSpecial, [&](auto s) { return text.substr(at).starts_with(s); });
      if (special != kSpecial.end()) {
        found = *special;
        break;
      }
    }
    attune::encode(processor, text.substr(0, at), pieces);
    for (const std::string& piece : pieces) add(piece, ids);
    if (found.empty()) return;
    add(found, ids);
    text.remove_prefix(at + found.size());
  }
}

std::vector<int32_t> MarianTokenizer::encode(std::string_view text) const {
  check_text_size(text);
  std::vector<int32_t> ids;
  if (text.starts_with(">>")) {
    if (const size_t end = text.find("<<", 2); end != std::string_view::npos && end > 2) {
      add(text.substr(0, end + 2), ids);
      text.remove_prefix(end + 2);
    }
  }
  add_pieces(*of_source_, text, ids);
  return ids;
}

std::vector<int32_t> MarianTokenizer::encode_target(std::string_view text) const {
  check_text_size(text);
  std::vector<int32_t> ids;
  add_pieces(*of_target_, text, ids);
  return ids;
}

Encoding MarianTokenizer::encode_for_model(std::string_view text, const EncodeOptions& options) const {
  Encoding result{options.target ? encode_target(text) : encode(text), {}};
  if (options.truncation)
    result.cut = truncate(*options.truncation, options.special_tokens ? 1 : 0, result.ids, nullptr);
  if (options.special_tokens) result.ids.push_back(eos_id());
  result.type_ids.resize(result.ids.size(), 0);
  return result;
}

std::string MarianTokenizer::piece(int32_t id) const {
  check_id(id);
  return std::string(vocabulary_.token(id));
}

std::string MarianTokenizer::join(const std::vector<int>& ids) const {
  std::string text;
  for (const int id : ids) {
    std::string_view token = vocabulary_.token(id);
    for (size_t at = token.find(kMetaspace); at != std::string_view::npos; at = token.find(kMetaspace)) {
      text.append(token.substr(0, at)).push_back(' ');
      token.remove_prefix(at + kMetaspace.size());
    }
    text += token;
  }
  const size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

void MarianTokenizer::save(const fs::path& file) const {
  write_file(file, vocabulary_json_);
  write_file(file.parent_path() / "source.spm", source_);
  write_file(file.parent_path() / "target.spm", target_);
}

}  // namespace attune::huggingface

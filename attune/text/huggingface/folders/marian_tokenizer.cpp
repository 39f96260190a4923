#include "attune/text/huggingface/folders/marian_tokenizer.h"

#include <sentencepiece_processor.h>

#include <vector>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/folders/tokenizer_config.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/tokenizer_json.h"
#include "attune/text/sentence_piece_processor.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

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
  const TokenizerConfig config = read_tokenizer_config(vocabulary.parent_path());
  std::vector<AddedToken> tokens;
  for (const char* token : {"</s>", "<unk>", "<pad>"}) tokens.push_back({.content = token, .special = true});
  tokens.insert(tokens.end(), config.added.begin(), config.added.end());
  for (AddedToken& token : tokens) token.normalized = false;
  added_ = AddedTokens(tokens, vocabulary_, nullptr);
  beside_ = config.read_files();
}

MarianTokenizer::~MarianTokenizer() = default;

void MarianTokenizer::add(std::string_view token, std::vector<int32_t>& ids) const {
  const int32_t id = vocabulary_.find(token);
  ids.push_back(id >= 0 ? id : unk_id());
}

// Added tokens in a text are themselves.
void MarianTokenizer::add_pieces(const Processor& processor, std::string_view text, std::vector<int32_t>& ids) const {
  std::vector<Section> sections;
  added_.split(text, false, sections);
  std::vector<std::string> pieces;
  for (const Section& section : sections) {
    if (section.token >= 0) {
      ids.push_back(section.token);
      continue;
    }
    attune::encode(processor, section.text, pieces);
    for (const std::string& piece : pieces) add(piece, ids);
  }
}

std::vector<int32_t> MarianTokenizer::encode(std::string_view text) const {
  check_text_size(text);
  std::vector<int32_t> ids;
  if (text.starts_with(">>")) {
    if (const size_t end = text.find("<<", 2); end != std::string_view::npos && end > 2) {
      const int32_t id = token_id(text.substr(0, end + 2));
      ids.push_back(id >= 0 ? id : unk_id());
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

int32_t MarianTokenizer::token_id(std::string_view token) const {
  const int32_t added = added_.id(token);
  return added >= 0 ? added : vocabulary_.find(token);
}

std::string MarianTokenizer::piece(int32_t id) const {
  check_id(id);
  if (const AddedToken* added = added_.find(id)) return added->content;
  return std::string(vocabulary_.token(id));
}

std::string MarianTokenizer::join(const std::vector<int>& ids) const {
  std::string text;
  for (const int id : ids) {
    const std::string whole = piece(id);
    std::string_view token = whole;
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
  for (const auto& [name, bytes] : beside_) write_settings_file(file.parent_path(), name, bytes);
}

}  // namespace attune::huggingface

#include "attune/text/huggingface/folders/piece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <span>

#include "attune/base/cut_text.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/folders/tokenizer_class.h"
#include "attune/text/sentence_piece_processor.h"

namespace attune::huggingface {
namespace {

namespace fs = std::filesystem;

// The settings of a folder.
struct Settings {
  const TokenizerClass& type;
  const TokenizerConfig& config;
  std::string file;  // that is named in errors
  const sentencepiece::SentencePieceProcessor& model;

  int32_t pieces() const { return model.GetPieceSize(); }

  int64_t count(const char* field, int64_t otherwise) const {
    const auto found = config.values.find(field);
    if (found == config.values.end()) return otherwise;
    const double number = found->is_number() ? found->get<double>() : -1;
    if (!(number >= 0 && number <= 1 << 16)) fail<FileError>("{}: {} is no number up to 65536", file, field);
    return static_cast<int64_t>(number);
  }
};

// fairseq's first four ids; its <unk> is the model's first piece, which has no other id.
PieceLayout fairseq_layout() {
  return {.first = {"<s>", "<pad>", "</s>", "<unk>"}, .shift = 1, .special = {.pad = 1, .unk = 3, .bos = 0, .eos = 2}};
}

PieceLayout xlm_roberta(const Settings& settings) {
  PieceLayout layout = fairseq_layout();
  layout.last = {"<mask>"};
  layout.special.cls = 0;
  layout.special.sep = 2;
  layout.special.mask = settings.pieces() + layout.shift;
  layout.around = surrounded_by({{0}, {2, 2}, {2}, 0});
  return layout;
}

// mBART and NLLB. Where the class's own language is none of the folder's, the first one takes its place.
PieceLayout translation(const Settings& settings) {
  PieceLayout layout = fairseq_layout();
  layout.last = settings.config.languages(settings.file);
  const std::string named = settings.config.text("src_lang", "");
  const auto found = std::ranges::find(layout.last, named.empty() ? settings.type.source_language : named);
  if (found == layout.last.end() && !named.empty())
    fail<FileError>("{}: src_lang: \"{}\" is none of additional_special_tokens", settings.file, cut_text(named, 80));
  const auto first_language = settings.pieces() + layout.shift;
  const auto id = first_language + static_cast<int32_t>(found == layout.last.end() ? 0 : found - layout.last.begin());
  layout.special.mask = first_language + static_cast<int32_t>(layout.last.size());
  layout.last.push_back("<mask>");
  layout.around = around_language(id, 2, has_language_first(settings.type, settings.config));
  return layout;
}

PieceLayout t5(const Settings& settings) {
  PieceLayout layout{.first = {"<pad>", "</s>", "<unk>"}, .special = {.pad = 0, .unk = 2, .bos = -1, .eos = 1}};
  for (int64_t i = settings.count("extra_ids", 100); i-- > 0;)
    layout.last.push_back("<extra_id_" + std::to_string(i) + ">");
  layout.around = surrounded_by({{}, {1}, {1}, 0});
  return layout;
}

PieceLayout llama(const Settings& settings) {
  PieceLayout layout{.first = {"<unk>", "<s>", "</s>"},
                     .prefix_once = !settings.config.flag("legacy", false),
                     .special = {.pad = -1, .unk = 0, .bos = 1, .eos = 2}};
  std::vector<int32_t> before, after;
  if (settings.config.flag("add_bos_token", true)) before = {1};
  if (settings.config.flag("add_eos_token", false)) after = {2};
  std::vector<int32_t> between = after;
  between.insert(between.end(), before.begin(), before.end());
  layout.around = surrounded_by({before, between, after, 0});
  return layout;
}

struct NamedLayout {
  std::string_view name;  // of a class that find_class() knows
  PieceLayout (*make)(const Settings& settings);
};

constexpr std::array<NamedLayout, 6> kLayouts = {{{"XLMRobertaTokenizer", xlm_roberta},
                                                  {"MBartTokenizer", translation},
                                                  {"MBart50Tokenizer", translation},
                                                  {"NllbTokenizer", translation},
                                                  {"T5Tokenizer", t5},
                                                  {"LlamaTokenizer", llama}}};

// The class of a folder's tokenizer: as its files say, or the one of its model's type.
std::string class_of(const fs::path& file, const TokenizerConfig& config) {
  std::string own = config.tokenizer_class();
  if (!own.empty()) return own;
  const ModelNames model = read_model_names(file.parent_path());
  if (!model.tokenizer_class.empty()) return model.tokenizer_class;
  const std::string& type = model.model_type;
  if (type == "t5" || type == "mt5") return "T5Tokenizer";
  if (type == "mbart") return "MBartTokenizer";
  return type == "xlm-roberta" ? "XLMRobertaTokenizer" : "";
}

// The files with the settings. If only config.json named the class, they name it here, so that a copy without that file
// is read in the same way.
SettingsFiles settings_files(const TokenizerConfig& config, const std::string& name) {
  SettingsFiles files = config.read_files();
  return config.tokenizer_class().empty() ? config.with_class(std::move(files), name) : files;
}

// No piece has this character (of a private area), so that no piece reaches across it.
constexpr std::string_view kMark = "\uE000";

}  // namespace

std::unique_ptr<Tokenizer> load_piece_tokenizer(const fs::path& file, const TokenizerConfig& config) {
  const std::string name = class_of(file, config);
  const auto found = std::ranges::find(kLayouts, name, &NamedLayout::name);
  if (found == kLayouts.end())
    fail<FileError>(
        "{}: tokenizer_class = \"{}\" is read from a tokenizer.json alone, which "
        "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER) of transformers writes",
        file.string(), cut_text(name, 80));
  std::string model = read_file(file, kMaxTokenizerBytes);
  auto processor = load_sentence_piece(model, file.string());
  PieceLayout layout =
      found->make({.type = *find_class(name), .config = config, .file = file.string(), .model = *processor});
  layout.added = config.added;
  layout.splits_special = config.flag("split_special_tokens", false);
  return std::make_unique<PieceTokenizer>(std::move(model), std::move(processor), std::move(layout), file,
                                          settings_files(config, name));
}

PieceTokenizer::PieceTokenizer(std::string model, std::unique_ptr<sentencepiece::SentencePieceProcessor> processor,
                               PieceLayout layout, const fs::path& file, SettingsFiles beside)
    : model_(std::move(model)),
      processor_(std::move(processor)),
      layout_(std::move(layout)),
      file_(file),
      beside_(std::move(beside)) {
  special_ = layout_.special;
  add_tokens();
  // A damaged model may have fewer pieces than the tokens that its class expects.
  const auto check = [&](const std::vector<TemplatePiece>& pieces) {
    for (const TemplatePiece& piece : pieces)
      for (const int32_t id : piece.tokens)
        if (id >= vocab_size())
          fail<FileError>("{}: has {} tokens, needs one with the id {}", file.string(), vocab_size(), id);
  };
  check(layout_.around.single);
  check(layout_.around.pair);
  if (special_.unk >= vocab_size()) fail<FileError>("{}: has {} tokens, too few", file.string(), vocab_size());
}

PieceTokenizer::~PieceTokenizer() = default;

int32_t PieceTokenizer::pieces_end() const {
  return processor_->GetPieceSize() + layout_.shift;
}

int32_t PieceTokenizer::vocab_size() const {
  return pieces_end() + static_cast<int32_t>(layout_.last.size());
}

// Tokens that are neither the class's nor pieces follow all others.
void PieceTokenizer::add_tokens() {
  TokenMap ids;
  std::vector<AddedToken> tokens;
  const auto add = [&](const AddedToken& token, int32_t id) {
    if (token.content.empty()) fail<FileError>("{}: has a token without text", file_.string());
    if (ids.find(token.content) < 0) ids.insert(token.content, id);
    tokens.push_back(token);
    tokens.back().normalized = false;
  };
  for (size_t i = 0; i < layout_.first.size(); ++i)
    add({.content = layout_.first[i], .special = true}, static_cast<int32_t>(i));
  for (size_t i = 0; i < layout_.last.size(); ++i)
    add({.content = layout_.last[i], .special = true}, pieces_end() + static_cast<int32_t>(i));
  for (const AddedToken& token : layout_.added) {
    const int piece = processor_->PieceToId(token.content);
    const bool is_new = ids.find(token.content) < 0 && piece == processor_->unk_id();
    add(token, is_new ? vocab_size() : piece + layout_.shift);
    if (is_new) layout_.last.push_back(token.content);
  }
  added_ = AddedTokens(tokens, ids, nullptr);
  if (layout_.splits_special) added_.split_special_tokens();
}

bool PieceTokenizer::is_special_token(int32_t id) const {
  return added_.is_special(id);
}

std::vector<int32_t> PieceTokenizer::encode(std::string_view text) const {
  check_text_size(text);
  std::vector<int32_t> ids;
  std::vector<int> pieces;
  const int unknown = processor_->unk_id();
  const auto add_text = [&](std::string_view part) {
    size_t of_mark = 0;
    if (layout_.prefix_once && !ids.empty()) {  // the space in front comes before the mark, and is left out with it
      const std::string marked = std::string(kMark) + std::string(part);
      std::vector<std::string> mark, texts;
      attune::encode(*processor_, kMark, mark);
      attune::encode(*processor_, marked, pieces);
      of_mark = std::min(mark.size(), pieces.size());
      if (of_mark > 0 && pieces[of_mark - 1] == unknown) {
        // Neighbours that are unknown are one piece, that of the mark too.
        attune::encode(*processor_, marked, texts);
        if (texts[of_mark - 1] != mark.back()) --of_mark;
      }
    } else {
      attune::encode(*processor_, part, pieces);
    }
    for (const int piece : std::span(pieces).subspan(of_mark))
      ids.push_back(piece == unknown ? unk_id() : piece + layout_.shift);
  };
  std::vector<Section> sections;
  added_.split(text, false, sections);
  for (const Section& section : sections) section.token >= 0 ? ids.push_back(section.token) : add_text(section.text);
  return ids;
}

Encoding PieceTokenizer::encode_for_model(std::string_view text, const EncodeOptions& options) const {
  return layout_.around.apply(encode(text), options);
}

Encoding PieceTokenizer::encode_pair(std::string_view first, std::string_view second,
                                     const EncodeOptions& options) const {
  return layout_.around.apply(encode(first), encode(second), options);
}

int32_t PieceTokenizer::token_id(std::string_view token) const {
  if (const int32_t special = added_.id(token); special >= 0) return special;
  const int piece = processor_->PieceToId(token);
  if (piece == processor_->unk_id()) return token == processor_->IdToPiece(piece) ? unk_id() : -1;
  return piece + layout_.shift;
}

std::string PieceTokenizer::piece(int32_t id) const {
  check_id(id);
  const auto at = static_cast<size_t>(id);
  if (at < layout_.first.size()) return layout_.first[at];
  if (id >= pieces_end()) return layout_.last[static_cast<size_t>(id - pieces_end())];
  return processor_->IdToPiece(id - layout_.shift);
}

std::string PieceTokenizer::join(const std::vector<int>& ids) const {
  std::string text;
  std::vector<int> pieces;
  for (const int id : ids) {
    if (static_cast<size_t>(id) >= layout_.first.size() && id < pieces_end()) {
      pieces.push_back(id - layout_.shift);
      continue;
    }
    append_text(*processor_, pieces, text);
    text += piece(id);
  }
  append_text(*processor_, pieces, text);
  return text;
}

void PieceTokenizer::save(const fs::path& file) const {
  write_file(file, model_);
  for (const auto& [name, bytes] : beside_) write_settings_file(file.parent_path(), name, bytes);
}

}  // namespace attune::huggingface

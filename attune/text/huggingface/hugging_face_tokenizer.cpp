#include "attune/text/huggingface/hugging_face_tokenizer.h"

#include <algorithm>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/text/huggingface/steps.h"
#include "attune/text/huggingface/unicode.h"
#include "attune/text/text_file.h"
#include "attune/text/unicode.h"

namespace attune::huggingface {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;  // normalization may lengthen it; ICU counts in int
constexpr size_t kMostFreeWorkspaces = 64;

}  // namespace

HuggingFaceTokenizer::HuggingFaceTokenizer(Parts parts)
    : parts_(std::move(parts)), added_(parts_.added_tokens, parts_.model->vocabulary(), parts_.normalizer.get()) {
  parts_.added_tokens = {};
  if (parts_.splits_special) added_.split_special_tokens();
  for (const SpecialToken& token : kSpecialTokens) {
    const std::string& name = parts_.names.*token.name;
    special_.*token.id = name.empty() ? -1 : token_id(name);
  }
  if (special_.unk < 0) special_.unk = parts_.model->unknown_id();
  if (parts_.pre_tokenizer != nullptr && parts_.pre_tokenizer->ends_with_bytes() && parts_.model->take_bytes())
    parts_.pre_tokenizer->leave_bytes();
}

HuggingFaceTokenizer::~HuggingFaceTokenizer() = default;

std::unique_ptr<Workspace> HuggingFaceTokenizer::borrow_workspace() const {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return parts_.model->make_workspace();
  auto workspace = std::move(free_.back());
  free_.pop_back();
  return workspace;
}

void HuggingFaceTokenizer::give_back(std::unique_ptr<Workspace> workspace) const {
  const std::lock_guard lock(mutex_);
  if (free_.size() < kMostFreeWorkspaces) free_.push_back(std::move(workspace));
}

std::vector<int32_t> HuggingFaceTokenizer::encode(std::string_view text) const {
  if (text.size() > kMaxTextBytes)
    fail<DataError>("cannot tokenize a text of {} bytes, at most {} are accepted", text.size(), kMaxTextBytes);
  std::string valid;
  if (!valid_utf8(text)) text = valid = with_replacements(text);
  std::vector<int32_t> ids;
  SearchBudget budget(text.size());
  auto workspace = borrow_workspace();
  if (added_.has_any(false)) {
    std::vector<Section> sections;
    added_.split(text, false, sections);
    for (const Section& section : sections)
      encode_section(section, section.text.data() == text.data(), *workspace, budget, ids);
  } else if (!text.empty()) {
    encode_section({text}, true, *workspace, budget, ids);
  }
  give_back(std::move(workspace));
  return ids;
}

void HuggingFaceTokenizer::encode_section(const Section& section, bool from_start, Workspace& workspace,
                                          SearchBudget& budget, std::vector<int32_t>& ids) const {
  if (section.token >= 0) return ids.push_back(section.token);
  NormalizedText normalized{std::string(section.text), budget, from_start};
  if (parts_.normalizer != nullptr) {
    parts_.normalizer->apply(normalized);
    check_growth("normalization", section.text.size(), normalized.text.size());
  }
  if (!added_.has_any(true))
    return encode_text(std::move(normalized.text), normalized.keeps_start, workspace, budget, ids);
  std::vector<Section> parts;
  added_.split(normalized.text, true, parts);
  for (const Section& part : parts) {
    if (part.token >= 0) {
      ids.push_back(part.token);
    } else {
      const bool first = normalized.keeps_start && part.text.data() == normalized.text.data();
      encode_text(std::string(part.text), first, workspace, budget, ids);
    }
  }
}

void HuggingFaceTokenizer::encode_text(std::string text, bool from_start, Workspace& workspace, SearchBudget& budget,
                                       std::vector<int32_t>& ids) const {
  if (text.empty()) return;
  if (parts_.pre_tokenizer == nullptr) return encode_word(text, workspace, ids);
  Words words;
  words.budget = &budget;
  words.from_start = from_start;
  const size_t before = text.size();
  words.ranges.push_back({0, before});
  words.text = std::move(text);
  parts_.pre_tokenizer->apply(words);
  check_growth("pre-tokenization", before, words.text.size());
  for (const Words::Range& range : words.ranges) encode_word(words.word(range), workspace, ids);
}

void HuggingFaceTokenizer::encode_word(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const {
  if (parts_.model->is_cut_at_metaspace()) {
    for (size_t at = word.find(kMetaspace, 1); at != std::string_view::npos; at = word.find(kMetaspace, at + 1)) {
      if (word.substr(0, at).ends_with(kMetaspace)) continue;
      parts_.model->encode(word.substr(0, at), workspace, ids);
      word.remove_prefix(at);
      at = 0;
    }
  }
  parts_.model->encode(word, workspace, ids);
}

Encoding HuggingFaceTokenizer::encode_for_model(std::string_view text, const EncodeOptions& options) const {
  return parts_.post_processor.apply(encode(text), options);
}

Encoding HuggingFaceTokenizer::encode_pair(std::string_view first, std::string_view second,
                                           const EncodeOptions& options) const {
  return parts_.post_processor.apply(encode(first), encode(second), options);
}

std::string HuggingFaceTokenizer::piece(int32_t id) const {
  check_id(id);
  if (const AddedToken* added = added_.find(id)) return added->content;
  return std::string(parts_.model->vocabulary().token(id));
}

int32_t HuggingFaceTokenizer::token_id(std::string_view token) const {
  const int32_t added = added_.id(token);
  return added >= 0 ? added : parts_.model->vocabulary().find(token);
}

std::string HuggingFaceTokenizer::join(const std::vector<int>& ids) const {
  std::vector<std::string> pieces;
  pieces.reserve(ids.size());
  for (const int id : ids) {
    if (added_.find(id) != nullptr) {
      pieces.push_back(added_.text(id));
    } else if (parts_.model->vocabulary().has(id)) {
      pieces.emplace_back(parts_.model->vocabulary().token(id));
    }
  }
  if (pieces.empty()) return "";
  if (parts_.decoder != nullptr) parts_.decoder->apply(pieces);
  std::string text;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0 && parts_.decoder == nullptr) text += ' ';
    text += pieces[i];
  }
  if (parts_.clean_up) clean_up_spaces(text);
  return text;
}

void HuggingFaceTokenizer::save(const std::filesystem::path& file) const {
  SettingsFiles copies;  // all are read before one is written
  const std::filesystem::path& own = parts_.files.front();
  for (const std::filesystem::path& from : parts_.files) {
    std::string name = from.lexically_relative(own.parent_path()).string();
    if (from == own) name = file.filename().string();
    for (const char* settings : kSettingsFiles)
      if (name == settings_prefix(own) + settings) name = settings;
    copies.emplace_back(name, read_file(from, kMaxTokenizerBytes));
  }
  for (const auto& changed : parts_.changed_files) {
    std::erase_if(copies, [&](const auto& copy) { return copy.first == changed.first; });
    copies.push_back(changed);
  }
  for (const auto& [name, bytes] : copies) {
    const bool is_setting = std::ranges::find(kSettingsFiles, name) != kSettingsFiles.end();
    write_settings_file(file.parent_path(), (is_setting ? settings_prefix(file) : "") + name, bytes);
  }
}

}  // namespace attune::huggingface

#include "attune/train/tokenizers.h"

#include <system_error>

#include "attune/data/sentence_piece_tokenizer.h"
#include "attune/data/whitespace_tokenizer.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

std::shared_ptr<const Tokenizer> learn(const Paths& files, const DataConfig& data, uint64_t seed) {
  if (data.tokenizer_type == TokenizerKind::whitespace)
    return std::make_shared<WhitespaceTokenizer>(
        WhitespaceTokenizer::build(files, {.max_size = data.vocab_size, .subword_marker = data.subword_marker}));
  using Kind = SentencePieceOptions::Kind;
  return train_sentence_piece_from_files(files,
                                         {.kind = data.tokenizer_type == TokenizerKind::bpe ? Kind::bpe : Kind::unigram,
                                          .vocab_size = static_cast<int32_t>(data.vocab_size),
                                          .seed = seed});
}

fs::path find(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const char* name : {"tokenizer.model", "tokenizer.json"})
    if (fs::exists(folder / (prefix + name), ignored)) return folder / (prefix + name);
  return {};
}

}  // namespace

TokenizerPair make_tokenizers(const DataConfig& data, uint64_t seed) {
  if (!data.tokenizer.empty()) {
    const std::shared_ptr<const Tokenizer> both = load_tokenizer(data.tokenizer);
    return {both, both};
  }
  if (!data.source_tokenizer.empty() && data.source_tokenizer == data.target_tokenizer) {
    const std::shared_ptr<const Tokenizer> both = load_tokenizer(data.source_tokenizer);
    return {both, both};
  }
  if (!data.source_tokenizer.empty())
    return {load_tokenizer(data.source_tokenizer), load_tokenizer(data.target_tokenizer)};

  const Paths source(data.train_source.begin(), data.train_source.end());
  const Paths target(data.train_target.begin(), data.train_target.end());
  if (!data.joint_vocab) return {learn(source, data, seed), learn(target, data, seed)};
  Paths all = source;
  all.insert(all.end(), target.begin(), target.end());
  const std::shared_ptr<const Tokenizer> both = learn(all, data, seed);
  return {both, both};
}

void save_tokenizers(const fs::path& folder, const TokenizerPair& tokenizers) {
  for (const char* prefix : {"", "source_", "target_"}) {
    for (fs::path old; !(old = find(folder, prefix)).empty();) {
      std::error_code error;
      if (!fs::remove(old, error)) fail<FileError>("cannot remove {}: {}", old.string(), error.message());
    }
  }
  if (tokenizers.source == tokenizers.target) {
    tokenizers.source->save(folder / tokenizers.source->file_name());
  } else {
    tokenizers.source->save(folder / ("source_" + tokenizers.source->file_name()));
    tokenizers.target->save(folder / ("target_" + tokenizers.target->file_name()));
  }
}

TokenizerPair load_tokenizers(const fs::path& folder) {
  if (const fs::path shared = find(folder, ""); !shared.empty()) {
    const std::shared_ptr<const Tokenizer> both = load_tokenizer(shared);
    return {both, both};
  }
  const fs::path source = find(folder, "source_"), target = find(folder, "target_");
  if (source.empty() || target.empty())
    fail<FileError>("{}: has no tokenizer.* and no source_tokenizer.* with a target_tokenizer.*", folder.string());
  return {load_tokenizer(source), load_tokenizer(target)};
}

}  // namespace attune

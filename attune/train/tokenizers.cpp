#include "attune/train/tokenizers.h"

#include <system_error>

#include "attune/base/file.h"
#include "attune/data/character_tokenizer.h"
#include "attune/data/sentence_piece_tokenizer.h"
#include "attune/data/whitespace_tokenizer.h"
#include "attune/train/task_parts.h"

namespace attune {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

std::shared_ptr<const Tokenizer> learn(const Paths& files, const RunConfig& config) {
  const DataConfig& data = config.data;
  using Kind = SentencePieceOptions::Kind;
  switch (data.tokenizer_type) {
    case TokenizerKind::whitespace:
      return std::make_shared<WhitespaceTokenizer>(
          WhitespaceTokenizer::build(files, {.max_size = data.vocab_size, .subword_marker = data.subword_marker}));
    case TokenizerKind::characters:
      return std::make_shared<CharacterTokenizer>(CharacterTokenizer::build(files));
    case TokenizerKind::bytes:
      return std::make_shared<ByteTokenizer>();
    case TokenizerKind::unigram:
    case TokenizerKind::bpe:
      break;
  }
  return train_sentence_piece_from_files(files,
                                         {.kind = data.tokenizer_type == TokenizerKind::bpe ? Kind::bpe : Kind::unigram,
                                          .vocab_size = static_cast<int32_t>(data.vocab_size),
                                          .seed = config.train.seed});
}

// The tokenizer that is there already, or null.
std::shared_ptr<const Tokenizer> given_tokenizer(const RunConfig& config) {
  if (!config.data.tokenizer.empty()) return load_tokenizer(config.data.tokenizer);
  if (!config.train.initialize_from.empty()) return load_tokenizers(config.train.initialize_from).source;
  return nullptr;
}

}  // namespace

TokenizerPair make_tokenizers(const RunConfig& config) {
  const DataConfig& data = config.data;
  const std::string& one =
      data.tokenizer.empty() && data.source_tokenizer == data.target_tokenizer ? data.source_tokenizer : data.tokenizer;
  if (!one.empty()) {
    const std::shared_ptr<const Tokenizer> both = load_tokenizer(one);
    return {both, both};
  }
  if (!data.source_tokenizer.empty())
    return {load_tokenizer(data.source_tokenizer), load_tokenizer(data.target_tokenizer)};
  if (!config.train.initialize_from.empty()) return load_tokenizers(config.train.initialize_from);

  Paths source = paths(data.train_source);
  const Paths target = paths(data.train_target);
  if (!data.joint_vocab) return {learn(source, config), learn(target, config)};
  source.insert(source.end(), target.begin(), target.end());
  const std::shared_ptr<const Tokenizer> both = learn(source, config);
  return {both, both};
}

std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config) {
  if (auto given = given_tokenizer(config)) return given;
  const std::vector<std::string>& files = config.data.train_files;
  return naming(files, [&] { return learn(paths(files), config); });
}

std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config, const std::vector<std::string>& texts,
                                                const fs::path& scratch) {
  if (auto given = given_tokenizer(config)) return given;
  // Tokenizers learn from files, and these have labels as well.
  struct File {
    fs::path path;
    ~File() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  } const file{scratch / "texts.tmp"};
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  write_file(file.path, lines);
  return naming(config.data.train_files, [&] { return learn({file.path}, config); });
}

}  // namespace attune

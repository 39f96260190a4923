#include "attune/train/tokenizers.h"

#include <fmt/format.h>

#include <algorithm>

#include "attune/base/json_fields.h"
#include "attune/data/prompts.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "attune/text/whitespace_tokenizer.h"
#include "attune/train/initial_model.h"
#include "attune/train/tasks/task_parts.h"

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

std::shared_ptr<const Tokenizer> learn_from_prompts(const RunConfig& config, const fs::path& scratch_folder) {
  LearningText text(scratch_folder);
  const bool keeps_line_ends = config.data.tokenizer_type == TokenizerKind::characters;
  read_prompt_texts(paths(config.data.train_files), keeps_line_ends,
                    [&](const std::string& prompt, const std::string& answer) {
                      text.add(prompt);
                      text.add(answer);
                    });
  return text.learn(config);
}

// Names what the configuration has for a tokenizer that is to be learnt, where the initial model has one; "": nothing.
// Defaults are left out: a RunConfig does not tell whether they were said, and config.toml of a run has every key.
std::string unused_note(const RunConfig& config) {
  const Json said = write_fields(config.data), defaults = write_fields(DataConfig{});
  std::vector<std::string> unused;
  for (const char* key : {"tokenizer_type", "vocab_size", "subword_marker"})
    if (said.at(key) != defaults.at(key)) unused.push_back(fmt::format("data.{} = {}", key, show(said.at(key))));
  if (unused.empty()) return "";
  return fmt::format("{}: not used, the tokenizer is that of train.initialize_from = \"{}\"", fmt::join(unused, ", "),
                     config.train.initialize_from);
}

enum class Needs { nothing, eos, bos_and_eos };

// The tokenizer of data.FIELD, which has the tokens that a text gets at its ends.
std::shared_ptr<const Tokenizer> load_given(const char* field, const std::string& path, Needs needs,
                                            const char* hint = "") {
  std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(path);
  const bool no_bos = needs == Needs::bos_and_eos && tokenizer->bos_id() < 0;
  if (no_bos || (needs != Needs::nothing && tokenizer->eos_id() < 0))
    fail<ConfigError>("data.{} = \"{}\": has no {} token, which a text gets here{}", field, path,
                      no_bos ? "bos" : "eos", hint);
  return tokenizer;
}

// One of two tokenizers.
std::shared_ptr<const Tokenizer> load_side(const char* field, const std::string& path, Needs needs) {
  std::shared_ptr<const Tokenizer> tokenizer = load_given(field, path, needs);
  check_can_be_one_of_two(fmt::format("data.{} = \"{}\"", field, path), *tokenizer);
  return tokenizer;
}

}  // namespace

std::shared_ptr<const Tokenizer> given_tokenizer(const RunConfig& config) {
  const bool framed = config.model.architecture != Architecture::decoder_lm && !config.data.tokenizer_frames_texts;
  if (!config.data.tokenizer.empty())
    return load_given("tokenizer", config.data.tokenizer, framed ? Needs::bos_and_eos : Needs::nothing,
                      "; training on the text itself with data.tokenizer_frames_texts = true needs none");
  const std::string& initial = config.train.initialize_from;
  if (!initial.empty()) return load_tokenizers(initial_model_folder(initial)).source;
  return nullptr;
}

TokenizerPair make_tokenizers(const RunConfig& config) {
  const DataConfig& data = config.data;
  const std::string& one =
      data.tokenizer.empty() && data.source_tokenizer == data.target_tokenizer ? data.source_tokenizer : data.tokenizer;
  const bool framed = !config.generation.special_tokens;
  const Needs of_source = framed ? Needs::eos : Needs::nothing;
  const Needs of_target = framed ? Needs::bos_and_eos : Needs::nothing;  // bos begins an output
  if (!one.empty()) {
    const auto both = load_given(data.tokenizer.empty() ? "source_tokenizer" : "tokenizer", one, of_target);
    return {both, both};
  }
  if (!data.source_tokenizer.empty())
    return {load_side("source_tokenizer", data.source_tokenizer, of_source),
            load_side("target_tokenizer", data.target_tokenizer, of_target)};
  const std::string& initial = config.train.initialize_from;
  if (!initial.empty()) return load_tokenizers(initial_model_folder(initial));

  Paths source = paths(data.train_source);
  const Paths target = paths(data.train_target);
  if (!data.joint_vocab) return {learn(source, config), learn(target, config)};
  source.insert(source.end(), target.begin(), target.end());
  const std::shared_ptr<const Tokenizer> both = learn(source, config);
  return {both, both};
}

std::shared_ptr<const Tokenizer> make_tokenizer(const RunConfig& config, const fs::path& scratch_folder) {
  if (auto given = given_tokenizer(config)) return given;
  if (config.data.text_unit == TextUnit::answer && config.data.tokenizer_type != TokenizerKind::bytes)
    return learn_from_prompts(config, scratch_folder);
  const std::vector<std::string>& files = config.data.train_files;
  return naming(files, [&] { return learn(paths(files), config); });
}

std::string vocabulary_note(const RunConfig& config, int64_t source, int64_t target) {
  const DataConfig& data = config.data;
  if (!data.prepared.empty() || !data.tokenizer.empty() || !data.source_tokenizer.empty()) return "";
  if (!config.train.initialize_from.empty()) return unused_note(config);
  const bool subwords = data.tokenizer_type == TokenizerKind::unigram || data.tokenizer_type == TokenizerKind::bpe;
  if (!subwords || std::min(source, target) >= data.vocab_size) return "";
  const std::string yields = source == target ? fmt::format("{}", source) : fmt::format("{} and {}", source, target);
  return fmt::format("data.vocab_size = {} is more than the training text yields: the vocabulary has {} tokens",
                     data.vocab_size, yields);
}

LearningText::LearningText(const fs::path& scratch_folder)
    : folder_(scratch_folder / kLearningText), path_(folder_.temporary() / "texts"), file_(path_) {}

void LearningText::add(const std::string& text) {
  pending_ += text + "\n";
  if (pending_.size() < (size_t{1} << 20)) return;
  file_.write(pending_);
  pending_.clear();
}

std::shared_ptr<const Tokenizer> LearningText::learn(const RunConfig& config) {
  file_.write(pending_);
  file_.commit();
  return naming(config.data.train_files, [&] { return attune::learn({path_}, config); });
}

}  // namespace attune

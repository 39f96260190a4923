#include "tests/support/small_model.h"

#include <zlib.h>

#include <sstream>

#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/base/random.h"
#include "attune/demo/corpus.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/build.h"
#include "attune/text/character_tokenizer.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

constexpr int32_t kVocab = 300;

TransformerConfig small_config(Architecture architecture, int64_t vocab) {
  TransformerConfig config;
  config.architecture = architecture;
  config.vocab = vocab;
  config.d_model = 32;
  config.heads = 4;
  config.layers = 2;
  config.d_ff = 64;
  return config;
}

// Initial weights are so small that every output is alike.
void make_decided(Module& model, uint64_t seed) {
  Random random(seed, 99);
  for (const NamedParameter& p : named_parameters(model)) {
    for (float& value : p.tensor->values<float>()) value += static_cast<float>(0.2 * random.normal());
  }
}

}  // namespace

std::vector<std::string> small_text(int64_t sentences) {
  std::vector<std::string> lines;
  for (const SentencePair& pair : grammar_corpus(sentences, 0, 0, 11).train) lines.push_back(pair.source);
  return lines;
}

TransformerConfig small_model_config() {
  TransformerConfig config;
  config.source_vocab = config.target_vocab = kVocab;
  config.d_model = 32;
  config.heads = 4;
  config.layers = 2;
  config.d_ff = 64;
  config.decoder_attention = MultiHeadLatent{.latent_dim = 8};
  return config;
}

void write_small_model(const std::filesystem::path& folder, uint64_t seed) {
  SentencePieceOptions options;
  options.vocab_size = kVocab;
  const auto tokenizer = train_sentence_piece(small_text(), options);
  const auto model = build_transformer(small_model_config(), seed);
  save_model_folder(folder, *model, *tokenizer, *tokenizer, {.beam_size = 3, .max_length = 12});
}

void write_small_language_model(const std::filesystem::path& folder, TextUnit text_unit, uint64_t seed) {
  const auto tokenizer = CharacterTokenizer::build_from_texts({joined(small_text())});
  TransformerConfig config = small_config(Architecture::decoder_lm, tokenizer.vocab_size());
  config.attention = MultiHead{.kv_heads = 2};
  config.positions = RotaryOptions{};
  config.context_length = 48;
  const auto model = build_decoder_lm(config, seed);
  make_decided(*model, seed);
  for (const NamedParameter& p : named_parameters(*model)) {
    if (p.name == "projection.bias") p.tensor->values<float>()[static_cast<size_t>(tokenizer.eos_id())] = -30;
  }
  save_model_folder(folder, *model, tokenizer, {.max_tokens = 40}, text_unit);
}

void write_small_classifier(const std::filesystem::path& folder, uint64_t seed) {
  SentencePieceOptions options;
  options.vocab_size = kVocab;
  const auto tokenizer = train_sentence_piece(small_text(), options);
  TransformerConfig config = small_config(Architecture::encoder_classifier, kVocab);
  config.positions = LearnedPositions{.max_length = 24};
  config.labels = {"bad", "good", "so so"};
  const auto model = build_encoder_classifier(config, seed);
  make_decided(*model, seed);
  save_model_folder(folder, *model, *tokenizer, 24);
}

void write_small_embedder(const std::filesystem::path& folder) {
  const std::filesystem::path from = source_dir() / "tests/hub/models/bert-classifier";
  make_directories(folder);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(from / file, folder / file);
  Json config = read_json_file(from / "config.json");
  config["architectures"] = Json::array({"BertModel"});
  write_json_file(folder / "config.json", config);
  const SafetensorsReader reader(from / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const std::string& name : reader.names())
    if (!name.starts_with("classifier.")) tensors.push_back({name, reader.load(name)});
  write_safetensors(folder / "model.safetensors", tensors);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

void write_gzip(const std::filesystem::path& path, const std::string& text) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  if (file == nullptr) fail<FileError>("cannot write {}", path.string());
  const int written = ::gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  if (::gzclose(file) != Z_OK || written != static_cast<int>(text.size()))
    fail<FileError>("cannot write {}", path.string());
}

}  // namespace attune

#pragma once
// Model folders that are made in a moment: random weights, and a tokenizer of a few hundred pieces or characters.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "attune/io/model_folder.h"

namespace attune {

/// Sentences of the grammar corpus, English.
std::vector<std::string> small_text(int64_t sentences = 200);

/// What the small model is made of: two layers of d_model 32 with four heads; latent attention in the decoder.
TransformerConfig small_model_config();

/// Trains a SentencePiece tokenizer on small_text(), draws the weights from `seed` and writes the folder. Translations
/// are cut off after 12 tokens.
void write_small_model(const std::filesystem::path& folder, uint64_t seed = 1);

/// A language model of characters with rotary positions and a context of 48. A generated text has 40 tokens, since eos
/// never comes.
void write_small_language_model(const std::filesystem::path& folder, TextUnit text_unit = TextUnit::stream,
                                uint64_t seed = 1);

/// A classifier of the labels "bad", "good" and "so so" that reads at most 24 tokens.
void write_small_classifier(const std::filesystem::path& folder, uint64_t seed = 1);

/// A model of embeddings: a BERT of tests/hub/models without its classifier.
void write_small_embedder(const std::filesystem::path& folder);

/// The lines, each with its end.
std::string joined(const std::vector<std::string>& lines);
/// The lines without their ends.
std::vector<std::string> split_lines(const std::string& text);

void write_gzip(const std::filesystem::path& path, const std::string& text);

}  // namespace attune

#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "attune/io/model_folder.h"
#include "tokenizer.h"

namespace attune::python {

/// What a pass over packed sequences gives.
struct States {
  Tensor states;                                   // [tokens, d_model]
  Sequences sequences;                             // which rows belong to each sequence
  std::vector<Tensor> attention, cross_attention;  // of each layer, on request
};

using TokenLists = std::vector<std::vector<int32_t>>;
PackedTokens packed(const TokenLists& lists);

/// A model of any architecture with plain parameters, for training and for looking inside.
class PythonModel {
 public:
  /// Opens a folder: Attune's, or of the Hugging Face hub. Throws FileError and ConfigError.
  explicit PythonModel(const std::filesystem::path& folder);
  PythonModel(const TransformerConfig& config, uint64_t seed);
  ~PythonModel();

  Module& module() const;
  const TransformerConfig& config() const;

  States encode(const TokenLists& ids, const TokenLists& type_ids, bool with_weights) const;
  States decode(const TokenLists& ids, const States* memory, bool with_weights) const;
  Tensor project(const Tensor& states) const;
  Tensor logits(const TokenLists& ids, const std::optional<TokenLists>& target) const;
  CrossEntropy loss(const TokenLists& ids, const Indices& labels, const std::optional<TokenLists>& target,
                    const std::optional<std::vector<int32_t>>& rows, const CrossEntropyOptions& options) const;

  /// Writes a folder in Attune's format, of a hub model too, with the parameters that the model has now and, with the
  /// folder's own tokenizer, its template of chats. Throws FileError, and ConfigError for a model without tokenizers
  /// and for an encoder.
  void save(const std::filesystem::path& folder) const;

  std::shared_ptr<const Tokenizer> source_tokenizer, target_tokenizer;  // null: none

 private:
  /// Takes what a folder holds. All kinds but ModelFolder have one tokenizer.
  void take(ModelFolder files);
  template <class Folder>
  void take(Folder files);

  /// Whether the tokenizer puts special tokens around texts: true if the folder's tokenizer does, and this one is the
  /// folder's or another one of Hugging Face.
  bool frames_texts() const;

  std::variant<std::shared_ptr<Transformer>, std::shared_ptr<DecoderLm>, std::shared_ptr<EncoderClassifier>,
               std::shared_ptr<EncoderMaskedLm>, std::shared_ptr<EncoderModel>>
      model_;
  GenerationConfig generation_;
  SamplingConfig sampling_;
  TextUnit text_unit_ = TextUnit::stream;
  int64_t max_tokens_ = 512;
  std::filesystem::path folder_;  // in Attune's format, that was opened; empty: there is none
  std::shared_ptr<const Tokenizer> folder_tokenizer_;
  bool frames_texts_ = false;  // as the folder says of its tokenizer
};

/// Whether Python has the tensor from Model.parameters(), of a model that is still there.
bool is_model_parameter(const Tensor& tensor);

}  // namespace attune::python

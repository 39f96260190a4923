#pragma once
// The tokenizers of Hugging Face's hub: tokenizer.json, or the files that a folder has in its place.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attune/text/huggingface/added_tokens.h"
#include "attune/text/huggingface/decoders.h"
#include "attune/text/huggingface/model.h"
#include "attune/text/huggingface/normalizers.h"
#include "attune/text/huggingface/post_processor.h"
#include "attune/text/huggingface/pre_tokenizers.h"
#include "attune/text/huggingface/settings_files.h"
#include "attune/text/huggingface/special_tokens.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// The parts of a tokenizer, in the order in which a text passes through them.
struct Parts {
  std::vector<AddedToken> added_tokens = {};
  std::unique_ptr<Normalizer> normalizer = {};       // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer = {};  // null: a text is one word
  std::unique_ptr<Model> model;
  PostProcessor post_processor = {};
  std::unique_ptr<Decoder> decoder = {};  // null: tokens are joined with spaces
  bool splits_special = false;            // whether special tokens in a text are text
  bool clean_up = false;                  // whether decoded text goes through clean_up_spaces()
  SpecialNames names = {};
  std::optional<Truncation> truncation = {};
  std::optional<Padding> padding = {};
  std::vector<std::filesystem::path> files = {};  // what save() copies: the first under its name, others beside it
  SettingsFiles changed_files = {};               // what it writes in place of the copies with these names
  std::string file_name = "tokenizer.json";       // in a folder; a file of this format may come under any other name
};

class HuggingFaceTokenizer final : public Tokenizer {
 public:
  explicit HuggingFaceTokenizer(Parts parts);
  ~HuggingFaceTokenizer() override;

  /// Replaces the post-processor, for one that needs the ids of this tokenizer's tokens. Call it before the tokenizer
  /// is used.
  void set_post_processor(PostProcessor post_processor) { parts_.post_processor = std::move(post_processor); }

  std::vector<int32_t> encode(std::string_view text) const override;
  Encoding encode_for_model(std::string_view text, const EncodeOptions& options) const override;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const override;
  int32_t vocab_size() const override { return added_.highest_id() + 1; }
  std::string piece(int32_t id) const override;
  int32_t token_id(std::string_view token) const override;
  bool is_special_token(int32_t id) const override { return added_.is_special(id); }
  bool keeps_line_ends() const override { return true; }
  std::optional<Truncation> truncation() const override { return parts_.truncation; }
  std::optional<Padding> padding() const override { return parts_.padding; }
  std::string kind() const override { return "Hugging Face"; }
  std::string file_name() const override { return parts_.file_name; }
  bool can_be_one_of_two() const override { return file_name() == "tokenizer.json"; }
  void save(const std::filesystem::path& file) const override;

 private:
  std::string join(const std::vector<int>& ids) const override;
  void encode_section(const Section& section, bool from_start, Workspace& workspace, SearchBudget& budget,
                      std::vector<int32_t>& ids) const;
  void encode_text(std::string text, bool from_start, Workspace& workspace, SearchBudget& budget,
                   std::vector<int32_t>& ids) const;
  void encode_word(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const;

  std::unique_ptr<Workspace> borrow_workspace() const;
  void give_back(std::unique_ptr<Workspace> workspace) const;

  Parts parts_;
  AddedTokens added_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Workspace>> free_;  // as many as threads have encoded at once
};

}  // namespace attune::huggingface

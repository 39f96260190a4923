#pragma once
// Byte-pair encoding (Sennrich et al. 2016): merges two neighbours into one token, the merge that was learned first of
// all that are possible, until none is.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "attune/text/huggingface/model.h"

namespace attune::huggingface {

struct BpeOptions {
  std::string unknown;              // token for characters that are not in the vocabulary; "": they are left out
  std::string continuation_prefix;  // begins tokens that are not the first of their word
  std::string end_suffix;           // ends the last token of a word
  bool fuse_unknown = false;        // neighbouring unknown characters are one token
  bool byte_fallback = false;       // unknown characters become the tokens of their bytes, <0x00> to <0xFF>
  bool ignore_merges = false;       // a word that is a token is that token
};

/// What a pair of tokens becomes, and how early that was learned.
struct Merge {
  int32_t rank = INT32_MAX;  // INT32_MAX: not at all
  int32_t token = -1;
};

/// Merges by their two tokens.
class MergeTable {
 public:
  explicit MergeTable(size_t expected = 0);
  void insert(int32_t left, int32_t right, Merge merge);
  Merge find(int32_t left, int32_t right) const {
    const uint64_t key = key_of(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      if (slots_[slot].key == key) return slots_[slot].merge;
      if (slots_[slot].key == kFree) return {};
    }
  }

 private:
  static constexpr uint64_t kFree = UINT64_MAX;
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return key * multiplier_ >> shift_; }
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };
  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t mask_;
  int shift_;            // to the highest bits, which depend on all bits of a key
  uint64_t multiplier_;  // odd and random: no file can choose merges that share a slot
};

class Bpe final : public Model {
 public:
  Bpe(TokenMap vocabulary, MergeTable merges, const BpeOptions& options);

  int32_t unknown_id() const override { return unknown_; }
  std::unique_ptr<Workspace> make_workspace() const override;
  bool take_bytes() override;
  bool is_cut_at_metaspace() const override { return cut_at_metaspace_; }
  void set_cut_at_metaspace() { cut_at_metaspace_ = true; }

 private:
  struct Scratch;
  void encode_new(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const override;
  void append_symbols(std::string_view word, Scratch& scratch) const;
  int32_t symbol(std::string_view character, bool first, bool last, std::string& buffer) const;
  void merge_short(Scratch& scratch, std::vector<int32_t>& ids) const;
  void merge_long(Scratch& scratch, std::vector<int32_t>& ids) const;

  MergeTable merges_;
  BpeOptions options_;
  int32_t unknown_;
  bool takes_bytes_ = false, cut_at_metaspace_ = false;
  TokenMap byte_words_;                     // when words are bytes: the vocabulary as bytes, for ignore_merges
  std::array<int32_t, 256> byte_symbols_;   // when words are bytes: the token of each
  ByteTokens byte_tokens_;                  // for byte fall-back
  std::array<int32_t, 128> ascii_symbols_;  // when there are neither prefixes nor suffixes
};

std::unique_ptr<Model> read_bpe(const Fields& fields, TokenizerJson& file);

/// Merges "a b" of a merges.txt, or of a tokenizer.json. Throws FileError.
std::unique_ptr<Model> make_bpe(TokenMap vocabulary, const StringList& merges, bool are_pairs,
                                const BpeOptions& options, const std::string& where);

}  // namespace attune::huggingface

#pragma once
// A tokenizer that has special tokens, and no text.

#include "attune/text/tokenizer.h"

namespace attune {

class TokenizerStub : public Tokenizer {
 public:
  explicit TokenizerStub(const SpecialIds& special) { special_ = special; }
  std::vector<int32_t> encode(std::string_view) const override { return {}; }
  int32_t vocab_size() const override { return 9; }
  std::string piece(int32_t) const override { return ""; }
  std::string kind() const override { return "stub"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}

 private:
  std::string join(const std::vector<int>&) const override { return ""; }
};

}  // namespace attune

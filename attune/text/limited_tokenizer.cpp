#include "attune/text/limited_tokenizer.h"

#include <utility>

#include "attune/base/fail.h"

namespace attune {
namespace {

class LimitedTokenizer final : public Tokenizer {
 public:
  LimitedTokenizer(std::shared_ptr<const Tokenizer> whole, int32_t vocab) : whole_(std::move(whole)), vocab_(vocab) {
    special_ = whole_->special_ids();
    for (int32_t* const id :
         {&special_.pad, &special_.unk, &special_.bos, &special_.eos, &special_.mask, &special_.cls, &special_.sep})
      *id = known(*id);
  }

  std::vector<int32_t> encode(std::string_view text) const override { return checked(whole_->encode(text)); }
  std::vector<int32_t> encode_target(std::string_view text) const override {
    return checked(whole_->encode_target(text));
  }
  Encoding encode_for_model(std::string_view text, const EncodeOptions& options) const override {
    return checked(whole_->encode_for_model(text, options));
  }
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const override {
    return checked(whole_->encode_pair(first, second, options));
  }
  std::optional<Truncation> truncation() const override { return whole_->truncation(); }
  std::optional<Padding> padding() const override {
    const std::optional<Padding> padding = whole_->padding();
    return padding && padding->id < vocab_ ? padding : std::nullopt;
  }
  int32_t token_id(std::string_view token) const override { return known(whole_->token_id(token)); }
  bool is_special_token(int32_t id) const override { return whole_->is_special_token(id); }
  bool keeps_line_ends() const override { return whole_->keeps_line_ends(); }
  int32_t vocab_size() const override { return vocab_; }
  std::string piece(int32_t id) const override {
    check_id(id);
    return whole_->piece(id);
  }
  std::string kind() const override { return whole_->kind(); }
  std::string file_name() const override { return whole_->file_name(); }
  bool can_be_one_of_two() const override { return whole_->can_be_one_of_two(); }
  void save(const std::filesystem::path& file) const override { whole_->save(file); }

 protected:
  std::string join(const std::vector<int>& ids) const override {
    return whole_->decode(std::vector<int32_t>(ids.begin(), ids.end()), true);
  }

 private:
  int32_t known(int32_t id) const { return id < vocab_ ? id : -1; }

  std::vector<int32_t> checked(std::vector<int32_t> ids) const {
    for (const int32_t id : ids)
      if (id >= vocab_)
        fail<DataError>("the text has \"{}\", token {} of the tokenizer, but the model has {} tokens",
                        whole_->piece(id), id, vocab_);
    return ids;
  }
  Encoding checked(Encoding encoding) const {
    encoding.ids = checked(std::move(encoding.ids));
    return encoding;
  }

  std::shared_ptr<const Tokenizer> whole_;
  int32_t vocab_;
};

}  // namespace

std::shared_ptr<const Tokenizer> limited_tokenizer(std::shared_ptr<const Tokenizer> tokenizer, int64_t vocab) {
  if (tokenizer->vocab_size() <= vocab) return tokenizer;
  return std::make_shared<LimitedTokenizer>(std::move(tokenizer), static_cast<int32_t>(vocab));
}

TokenizerPair limited_tokenizers(const TokenizerPair& tokenizers, int64_t source_vocab, int64_t target_vocab) {
  const bool one = tokenizers.source == tokenizers.target && source_vocab == target_vocab;
  std::shared_ptr<const Tokenizer> source = limited_tokenizer(tokenizers.source, source_vocab);
  std::shared_ptr<const Tokenizer> target = one ? source : limited_tokenizer(tokenizers.target, target_vocab);
  return {std::move(source), std::move(target)};
}

}  // namespace attune

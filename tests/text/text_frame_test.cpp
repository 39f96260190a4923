#include "attune/text/text_frame.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace attune {
namespace {

using Ids = std::vector<int32_t>;

// Has a token for each digit alone, and puts 1 in front of a text and 2 behind it.
class DigitTokenizer final : public Tokenizer {
 public:
  explicit DigitTokenizer(bool changes_texts = false) : changes_texts_(changes_texts) {}
  Ids encode(std::string_view text) const override {
    Ids ids;
    for (const char c : text)
      if (c >= '0' && c <= '9') ids.push_back(10 + c - '0');
    return ids;
  }
  Encoding encode_for_model(std::string_view text, const EncodeOptions&) const override {
    Ids ids = changes_texts_ ? Ids{9} : encode(text);
    ids.insert(ids.begin(), 1);
    ids.push_back(2);
    return {.ids = ids, .type_ids = Ids(ids.size(), 0)};
  }
  int32_t vocab_size() const override { return 20; }
  std::string piece(int32_t) const override { return ""; }
  std::string kind() const override { return "digits"; }
  std::string file_name() const override { return ""; }
  void save(const std::filesystem::path&) const override {}

 private:
  std::string join(const std::vector<int>&) const override { return ""; }
  bool changes_texts_;
};

TEST(TextFrame, IsFoundThoughTheFirstTextHasNoTokens) {
  const TextFrame frame = text_frame(DigitTokenizer(), true);
  EXPECT_EQ(frame.before, Ids{1});
  EXPECT_EQ(frame.after, Ids{2});
}

TEST(TextFrame, OfATokenizerThatChangesATextIsAnError) {
  EXPECT_THROW(text_frame(DigitTokenizer(true), true), ConfigError);
}

}  // namespace
}  // namespace attune

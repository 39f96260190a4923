#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "attune/base/fail.h"
#include "attune/text/text_file.h"

namespace attune {

inline constexpr size_t kMostTextBytes = size_t{1} << 20;  // a tokenizer takes hundreds of times as much memory

/// A text that has more tokens than a model reads.
class TooManyTokens : public DataError {
 public:
  TooManyTokens(const std::string& message, int64_t tokens, int64_t most)
      : DataError(message), tokens_(tokens), most_(most) {}
  int64_t tokens() const { return tokens_; }
  int64_t most() const { return most_; }

 private:
  int64_t tokens_, most_;
};

/// To be called before a text is encoded. Throws DataError naming `place` when it is too long or not UTF-8.
inline void check_text(std::string_view text, std::string_view place) {
  if (text.size() > kMostTextBytes)
    fail<DataError>("{}: has {} bytes, at most {} are accepted", place, text.size(), kMostTextBytes);
  check_utf8(text, place);
}

}  // namespace attune

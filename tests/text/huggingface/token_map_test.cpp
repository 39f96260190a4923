#include "attune/text/huggingface/token_map.h"

#include <gtest/gtest.h>

#include <string>

#include "attune/base/error.h"

namespace attune::huggingface {
namespace {

// Whoever writes a file can choose tokens whose hashes are alike, and each would look at all before it.
TEST(TokenMap, TokensThatShareOnePlaceAreRefused) {
  constexpr size_t places = 8192;
  TokenMap map;
  map.reserve(places / 2 - 1);
  const auto insert_alike = [&] {
    int32_t id = 0;
    for (int i = 0; id < 2000; ++i)
      if (const std::string token = std::to_string(i); (hash_of(token) & (places - 1)) == 0) map.insert(token, id++);
  };
  EXPECT_THROW(insert_alike(), FileError);
  EXPECT_GT(map.size(), 500u) << "fewer are no reason";
}

}  // namespace
}  // namespace attune::huggingface

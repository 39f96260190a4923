#include "attune/base/sha256.h"

#include <gtest/gtest.h>

namespace attune {
namespace {

// The examples of FIPS 180-4.
TEST(Sha256, GivesTheDigestsOfTheStandard) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PartsGiveTheDigestOfTheWhole) {
  const std::string text(300, 'x');
  for (const size_t first : {1, 55, 56, 63, 64, 65, 128, 299}) {
    Sha256 hash;
    hash.update(text.substr(0, first));
    hash.update(text.substr(first));
    EXPECT_EQ(hash.hex(), sha256(text)) << first;
  }
}

}  // namespace
}  // namespace attune

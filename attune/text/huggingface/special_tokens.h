#pragma once
// Special tokens by what they are for.

#include <array>
#include <string>

#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// Special tokens by what they are for; "" where there is none.
struct SpecialNames {
  std::string pad, unk, bos, eos, mask, cls, sep;
};

/// What the files call each of them, and where it is kept; in the order in which transformers gives new ones their ids.
struct SpecialToken {
  const char* field;
  std::string SpecialNames::*name;
  int32_t SpecialIds::*id;
};
inline constexpr std::array<SpecialToken, 7> kSpecialTokens = {{
    {"bos_token", &SpecialNames::bos, &SpecialIds::bos},
    {"eos_token", &SpecialNames::eos, &SpecialIds::eos},
    {"unk_token", &SpecialNames::unk, &SpecialIds::unk},
    {"sep_token", &SpecialNames::sep, &SpecialIds::sep},
    {"pad_token", &SpecialNames::pad, &SpecialIds::pad},
    {"cls_token", &SpecialNames::cls, &SpecialIds::cls},
    {"mask_token", &SpecialNames::mask, &SpecialIds::mask},
}};

}  // namespace attune::huggingface

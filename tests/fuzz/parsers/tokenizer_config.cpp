// tokenizer_config.json, special_tokens_map.json, added_tokens.json and config.json, separated by NUL, beside a small
// tokenizer.json.

#include "attune/text/huggingface/folders/folder.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  constexpr std::string_view kTokenizer = R"({
    "added_tokens": [{"id": 0, "content": "<s>", "special": true, "lstrip": false, "rstrip": false,
                      "single_word": false, "normalized": false}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
    "model": {"type": "WordLevel", "vocab": {"<s>": 0, "the": 1, "en_XX": 2, "eng_Latn": 3, "</s>": 4, "<unk>": 5},
              "unk_token": "<unk>"}})";
  const auto [config, map, added, model] = fuzz::split<4>(fuzz::text_of(data, size));
  const auto path = fuzz::file("tokenizer.json", kTokenizer);
  fuzz::file("tokenizer_config.json", config);
  fuzz::file("special_tokens_map.json", map);
  fuzz::file("added_tokens.json", added);
  fuzz::file("config.json", model);
  return fuzz::answer([&] {
    const auto tokenizer = huggingface::load_tokenizer_json(kTokenizer, path);
    for (const int32_t id : tokenizer->encode_for_model("the <s> caf\u00e9 </s>").ids)
      fuzz::require(id >= 0 && id < tokenizer->vocab_size());
  });
}

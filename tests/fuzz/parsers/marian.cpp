// vocab.json of a Marian model, beside SentencePiece models that are as they should be.

#include "attune/text/huggingface/folders/folder.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/fuzz/parsers/fuzz_input.h"
#include "tests/text/sentence_piece_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static const bool written = [] {
    // Without a table of normalization, whose check would take most of the time.
    const auto model = train_sentence_piece(
        sentence_piece_text(), {.vocab_size = 90, .normalization = SentencePieceOptions::Normalization::identity});
    for (const char* name : {"source.spm", "target.spm"}) model->save(fuzz::folder() / name);
    return true;
  }();
  fuzz::require(written);
  const auto path = fuzz::file("vocab.json", fuzz::text_of(data, size));
  return fuzz::answer([&] {
    const auto tokenizer = huggingface::load_by_file_name(path);
    tokenizer->decode(tokenizer->encode_for_model(">>de<< Two dogs \u00e9").ids, true);
  });
}

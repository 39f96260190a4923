// Weights of attune quantize for a small language model; the first byte says in which format config.json has them.

#include "attune/io/panel_parameters.h"
#include "attune/models/build.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  if (size == 0) return 0;
  const WeightFormat formats[] = {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8,
                                  WeightFormat::int4};
  const TransformerConfig config = {
      .architecture = Architecture::decoder_lm, .vocab = 8, .d_model = 8, .heads = 2, .layers = 1, .d_ff = 8};
  const auto path = fuzz::file("model.safetensors", fuzz::text_of(data + 1, size - 1));
  const auto model = build_without_values(config);
  const size_t parameters = named_parameters(*model).size();
  bool whole = false;
  fuzz::answer([&] {
    map_panel_parameters(path, *model, formats[data[0] % 4]);
    whole = true;
  });
  // What is refused leaves the model as it was; in one that is whole, panels stand for some tensors.
  fuzz::require((named_parameters(*model).size() == parameters) == !whole);
  return 0;
}

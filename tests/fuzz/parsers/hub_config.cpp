// config.json of the Hugging Face hub, for every family: what is accepted is a valid configuration of ours.

#include "attune/hub/families.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  // Translating asks only which tensors are there.
  static const HubTensors tensors = [] {
    write_safetensors(fuzz::folder() / "model.safetensors",
                      std::vector<NamedTensor>{{"lm_head.weight", Tensor::full({2}, 1)}});
    return HubTensors(fuzz::folder().path(), "transformer.");
  }();
  return fuzz::answer([&] {
    const HubConfig hub(parse_json(fuzz::text_of(data, size), "config.json"), "config.json");
    const Family& family = family_of(hub);
    const HubClass of = class_of(hub, family);
    const TransformerConfig config =
        family.translate({.config = hub, .tensors = tensors, .architecture = of.architecture, .class_name = of.name});
    config.validate();
    fuzz::require(count_parameters(config).total() > 0);
  });
}

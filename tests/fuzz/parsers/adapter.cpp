// adapter_config.json and adapter_model.safetensors of PEFT, separated by NUL, for a small model of the hub.

#include "attune/hub/adapter_folder.h"
#include "attune/models/decoder_lm.h"
#include "tests/fuzz/parsers/fuzz_input.h"
#include "tests/support/paths.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static const OpenedFolder base(source_dir() / "tests/hub/models/starcoder2");
  static const LanguageModelFolder model = base.load_language_model();
  const auto [config, tensors] = fuzz::split<2>(fuzz::text_of(data, size));
  fuzz::file(kAdapterConfigFile, config);
  fuzz::file(kAdapterFile, tensors);
  return fuzz::answer([] { read_adapter(fuzz::folder().path(), base, *model.model); });
}

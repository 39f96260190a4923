// Changes (a JSON merge patch, RFC 7396) to the trainer's state in a checkpoint that is otherwise as it should be.

#include "attune/io/json_file.h"
#include "attune/models/build.h"
#include "attune/train/training_state.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  static RunConfig config = [] {
    RunConfig some;
    some.model = {
        .architecture = Architecture::decoder_lm, .vocab = 8, .d_model = 8, .heads = 2, .layers = 1, .d_ff = 8};
    return some;
  }();
  static const auto model = build_model(config.model, 1);
  static Adam adam(trained_parameters(*model), {});
  static const TrainingParts parts{*model, adam, config, {.examples = 3, .tokens = 20}};
  static const Checkpoint good = make_checkpoint(parts, adam.states(), {});
  return fuzz::answer([&] {
    Checkpoint checkpoint = good;
    checkpoint.state.merge_patch(parse_json(fuzz::text_of(data, size), "state"));
    write_checkpoint(fuzz::folder() / "x", checkpoint);
    restore_checkpoint(fuzz::folder() / "x", parts);
  });
}

#include "attune/cli/options/precision_option.h"

#include "attune/base/fields.h"
#include "attune/cli/command.h"
#include "attune/cli/text_output.h"
#include "attune/ops/linear/precision_choice.h"
#include "attune/train/config.h"

namespace attune::cli {

void add_precision(CLI::App& command, std::string& precision) {
  command.add_option("--precision", precision,
                     "Of products: float32, or bfloat16, which rounds activations and weights, or auto:\n"
                     "bfloat16 on GPUs and where the processor multiplies it, float32 elsewhere [float32]");
}

void note_precision(ProductPrecision precision, const Device& device) {
  if (const std::string note = precision_note(precision, device); !note.empty()) write_note(note);
}

ProductPrecision precision_of(const std::string& given, const Device& device) {
  if (given.empty()) return ProductPrecision::float32;
  const ProductPrecision precision = resolved(named<PrecisionChoice>("--precision", given), device);
  note_precision(precision, device);
  return precision;
}

}  // namespace attune::cli

// attune quantize: a model folder made small.

#include "attune/inference/quantize.h"
#include <fmt/format.h>
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/options/threads_option.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

struct QuantizeCommand {
  std::string model, out, type = "int8";
  int64_t threads = 0;
  bool json = false;
};

std::string megabytes(int64_t bytes) {
  return fmt::format("{:.2f} MB", static_cast<double>(bytes) / 1e6);
}

int quantize(const QuantizeCommand& command) {
  const WeightFormat type = named<WeightFormat>("--type", command.type);
  const ThreadScope threads = use_threads(command.threads);
  catch_stop_signals();
  const QuantizedModel done =
      quantize_model_folder(command.model, command.out, type, [] { check_interrupt(&stop_requested()); });
  const double ratio = static_cast<double>(done.bytes_before) / static_cast<double>(done.bytes_after);
  TextOutput out;
  if (command.json) {
    const Json json = {{"model", command.model},
                       {"out", command.out},
                       {"type", command.type},
                       {"parameters", done.parameters},
                       {"bytes_before", done.bytes_before},
                       {"bytes_after", done.bytes_after},
                       {"ratio", ratio}};
    out.line(show_indented(json));
  } else {
    out.line(fmt::format("wrote {}: {} parameters in {}, {} in place of {}: {:.2f} times smaller",
                         one_line(command.out), done.parameters, command.type, megabytes(done.bytes_after),
                         megabytes(done.bytes_before), ratio));
  }
  out.finish();
  return 0;
}

}  // namespace

void add_quantize(CLI::App& app) {
  const auto c = std::make_shared<QuantizeCommand>();
  CLI::App* command = add_command(
      app, "quantize", "Make a model small: weights of 16, 8 or 4 bits, for use without training",
      "  attune quantize runs/demo/model --out runs/demo/int8\n"
      "  attune quantize runs/demo/model --out runs/demo/int4 --type int4\n"
      "  attune quantize runs/demo/model --out runs/demo/panels --type float32\n"
      "  attune translate runs/demo/int8 \"The old dog sleeps.\"\n"
      "translate, generate, classify, embed, evaluate and inspect take the new folder as any other; training needs "
      "the old one.\n"
      "  bfloat16  half the size, each number rounded to 8 bits of precision\n"
      "  int8      a quarter of the size, nearly the same translations\n"
      "  int4      an eighth; compare with attune evaluate\n"
      "  float32   the same size and numbers, in the order that products read: starts faster",
      [c] { return quantize(*c); });
  add_model(*command, c->model)->required();
  command->add_option("--out", c->out, "Folder to write, whole or not at all; must not be there yet")->required();
  command->add_option("--type", c->type, "Of the weights: int8, int4, bfloat16 or float32")->capture_default_str();
  add_threads(*command, c->threads);
  command->add_flag("--json", c->json, "For programs; sizes in bytes");
}

}  // namespace attune::cli

// attune export: a model folder as on the Hugging Face hub.

#include "attune/inference/export.h"
#include <fmt/format.h>
#include "attune/base/json_fields.h"
#include "attune/cli/command.h"
#include "attune/cli/line_progress.h"
#include "attune/cli/options/model_argument.h"
#include "attune/cli/text_output.h"
#include "attune/ops/linear/precision_choice.h"

namespace attune::cli {
namespace {

struct ExportCommand {
  std::string model, out, precision, family;
  bool json = false;
};

int export_model(const ExportCommand& command) {
  ExportOptions options{.family = command.family, .before_each = [] { check_interrupt(&stop_requested()); }};
  if (!command.precision.empty()) options.precision = named<ProductPrecision>("--precision", command.precision);
  catch_stop_signals();
  const ExportedModel done = export_model_folder(command.model, command.out, options);
  TextOutput out;
  if (command.json) {
    const Json json = {
        {"model", command.model},        {"out", command.out},  {"family", done.family},    {"class", done.class_name},
        {"parameters", done.parameters}, {"bytes", done.bytes}, {"left_out", done.left_out}};
    out.line(show_indented(json));
  } else {
    out.line(fmt::format("wrote {}: {} ({}), {} numbers in {:.2f} MB", one_line(command.out), done.class_name,
                         done.family, done.parameters, static_cast<double>(done.bytes) / 1e6));
    for (const std::string& line : done.left_out) out.line("left out: " + one_line(line));
  }
  out.finish();
  return 0;
}

}  // namespace

void add_export(CLI::App& app) {
  const auto c = std::make_shared<ExportCommand>();
  CLI::App* command = add_command(
      app, "export", "Write a model as a folder of the Hugging Face hub, for transformers",
      "  attune export runs/demo/model --out for-the-hub\n"
      "  attune export runs/chat/model --out for-the-hub --precision bfloat16\n"
      "  attune export runs/chat/model --out for-the-hub --family mistral\n"
      "  attune export FOLDER_OF_THE_HUB --out with-safetensors\n"
      "  python3 -c 'from transformers import AutoModel; AutoModel.from_pretrained(\"for-the-hub\")'\n"
      "transformers gives the same logits. A model without an equivalent is refused, with the field that is the\n"
      "reason; docs/hugging-face.md has a table. A folder of the hub keeps its tensors to the bit.",
      [c] { return export_model(*c); });
  add_model(*command, c->model)->required();
  command->add_option("--out", c->out, "Folder to write, whole or not at all; must not be there yet, or be empty")
      ->required();
  command->add_option("--precision", c->precision, "Of the tensors: float32 or bfloat16 [as they are]");
  command->add_option("--family", c->family,
                      "model_type of the config.json to write: llama, bert, ... [the first that computes the same]\n"
                      "A folder of the hub is copied without it, and written anew with it");
  command->add_flag("--json", c->json, "For programs; sizes in bytes");
}

}  // namespace attune::cli

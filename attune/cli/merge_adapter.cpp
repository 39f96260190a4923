// attune merge-adapter: adds an adapter to the weights of its model.

#include <fmt/format.h>

#include "attune/base/atomic_folder.h"
#include "attune/base/fail.h"
#include "attune/base/file.h"
#include "attune/base/interrupt.h"
#include "attune/cli/command.h"
#include "attune/cli/text_output.h"
#include "attune/hub/adapter_folder.h"
#include "attune/inference/stored_model.h"

namespace attune::cli {
namespace {

struct MergeAdapterCommand {
  std::string adapter, out;
};

int merge_adapter(const MergeAdapterCommand& command) {
  if (!is_there(std::filesystem::path(command.adapter) / kAdapterConfigFile))
    fail<ConfigError>("{}: has no {}", command.adapter, kAdapterConfigFile);
  catch_stop_signals();
  const OpenedFolder source(command.adapter);
  AtomicFolder folder(command.out);
  const StoredModel files = open_stored_model(source, LoadedWeights::mapped);
  save_stored_model(folder.temporary(), source, files, [] { check_interrupt(&stop_requested()); });
  folder.commit();
  TextOutput out;
  out.line(fmt::format("wrote {}: {} with the adapter {}", one_line(command.out), one_line(source.path().string()),
                       one_line(command.adapter)));
  out.finish();
  return 0;
}

}  // namespace

void add_merge_adapter(CLI::App& app) {
  const auto c = std::make_shared<MergeAdapterCommand>();
  CLI::App* command = add_command(app, "merge-adapter", "Write a model with an adapter of PEFT added to its weights",
                                  "  attune merge-adapter runs/tuned/model/adapter --out merged\n"
                                  "  attune generate merged \"Once upon a time\"\n"
                                  "The model is the folder that adapter_config.json names. Commands that take a model "
                                  "take the folder of an adapter\n"
                                  "too, and add it each time when they start.",
                                  [c] { return merge_adapter(*c); });
  command->add_option("adapter", c->adapter, "Folder with adapter_config.json and adapter_model.safetensors")
      ->required();
  command->add_option("--out", c->out, "Folder to write, whole or not at all; must not be there yet")->required();
}

}  // namespace attune::cli

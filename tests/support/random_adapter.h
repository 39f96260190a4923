#pragma once

#include <filesystem>

#include "attune/hub/adapter_folder.h"
#include "attune/hub/open_folder.h"
#include "attune/nn/adapters/adapters.h"

namespace attune {

/// Writes adapters of random numbers for the model of a folder; B is not 0, so that they change what it says.
inline void write_random_adapter(const std::filesystem::path& folder, const std::filesystem::path& base,
                                 const LoraConfig& lora, uint64_t seed) {
  const OpenedFolder opened(base);
  load_by_architecture(opened, LoadedWeights::mapped, [&](auto files) {
    add_adapters(*files.model, lora, seed);
    uint64_t stream = 0;
    for (const AdapterSlot& slot : adapter_slots(*files.model))
      if (slot.adapter->there()) initialize_normal(slot.adapter->b(), 0.3, seed, stream++);
    write_adapter(folder, *files.model, {.base = opened, .lora = lora, .saved = {}});
  });
}

}  // namespace attune

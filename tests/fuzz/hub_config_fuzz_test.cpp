// Whatever config.json of a foreign folder holds: a model or attune::Error, without much memory or time.

#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/hub/hub_folder.h"
#include "attune/hub/hub_generation.h"
#include "tests/support/mutate.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

constexpr int kMutations = 2000;

const std::vector<std::string> kHubConfigDictionary = {"9223372036854775807",
                                                       "-1",
                                                       "0",
                                                       "1e999",
                                                       "0.5",
                                                       "null",
                                                       "true",
                                                       "[]",
                                                       "{}",
                                                       "[",
                                                       "{",
                                                       "\"",
                                                       ",",
                                                       ":",
                                                       "\\u0000",
                                                       "\"model_type\": \"llama\"",
                                                       "\"model_type\": \"bert\"",
                                                       "\"model_type\": \"gemma3_text\"",
                                                       "\"model_type\": \"modernbert\"",
                                                       "\"architectures\": [\"GPT2LMHeadModel\"]",
                                                       "\"hidden_size\": 64,",
                                                       "\"num_hidden_layers\": 2,",
                                                       "\"num_attention_heads\": 0,",
                                                       "\"layer_types\": [\"sliding_attention\"],",
                                                       "\"rope_scaling\": {\"type\": \"yarn\", \"factor\": 1e300},",
                                                       "\"n_layer\": 2147483647,",
                                                       "\"n_head\": 3,",
                                                       "\"eos_token_id\": [1, 2],",
                                                       "\xFF",
                                                       "\xEF\xBB\xBF"};

// A folder with the weights of a good one, and a config.json of the test's own.
class HubConfigFuzz : public testing::Test {
 protected:
  HubConfigFuzz() {
    std::filesystem::create_symlink(good_ / "model.safetensors", folder_ / "model.safetensors");
    config_ = read_file(good_ / "config.json");
    generation_ = read_file(good_ / "generation_config.json");
  }

  const std::filesystem::path good_ = source_dir() / "tests/hub/models/gpt2";
  TemporaryFolder folder_{memory_folder()};
  std::string config_, generation_;
};

TEST_F(HubConfigFuzz, MutatedConfigurations) {
  Random random(1, 0);
  int loaded = 0;
  for (int i = 0; i < kMutations; ++i) {
    write_file(folder_ / "config.json", mutate(config_, kHubConfigDictionary, random));
    try {
      const auto opened = HubFolder::open(folder_.path());
      const auto* const hub = std::get_if<HubFolder>(&opened);
      if (hub == nullptr) continue;
      hub->load(LoadedWeights::mapped);
      ++loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(loaded, 0);
  EXPECT_LT(loaded, kMutations);
}

TEST_F(HubConfigFuzz, MutatedGenerationConfigurations) {
  Random random(2, 0);
  write_file(folder_ / "config.json", config_);
  const HubFolder hub(folder_.path());
  int read = 0;
  for (int i = 0; i < kMutations; ++i) {
    write_file(folder_ / "generation_config.json", mutate(generation_, kHubConfigDictionary, random));
    for (const bool sampling : {true, false}) {
      try {
        if (sampling) {
          read_hub_sampling(folder_.path(), hub.hub_config());
        } else {
          read_hub_generation(folder_.path(), hub.hub_config());
        }
        ++read;
      } catch (const Error&) {
      }
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace attune

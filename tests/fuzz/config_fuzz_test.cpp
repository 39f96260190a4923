// Whatever a configuration holds: a valid configuration or attune::Error, without much memory or time.

#include <gtest/gtest.h>

#include <fstream>

#include "attune/base/file.h"
#include "attune/base/json_fields.h"
#include "attune/io/config_file.h"
#include "attune/io/toml_config.h"
#include "attune/models/transformer.h"
#include "attune/train/config.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::string> kConfigDictionary = {
    "9223372036854775807",
    "-9223372036854775808",
    "1e999",
    "-1",
    "0x7f",
    "nan",
    "[[",
    "]]",
    "[",
    "]",
    "{",
    "}",
    "a.b.c",
    "\"\"\"",
    "'''",
    "\"",
    "'",
    "\\u0000",
    "\\",
    "#",
    "1979-05-27",
    "07:32:00",
    "true",
    "\xEF\xBB\xBF",
    "\xFF",
    "\n",
    "\r",
    "=",
    "latent",
    "[model]",
    "d_model = 65536\n",
    "kind = ",
    "{kind = \"latent\"}",
    "null",
    "[data]\n",
    ".",
    ",",
    "0",
};

RunConfig some_config() {
  RunConfig config;
  config.data.train_source = {"a.en", "b.en"};
  config.data.train_target = {"a.de", "b.de"};
  config.model.source_vocab = config.model.target_vocab = 100;
  config.model.encoder_attention = MultiHeadLatent{.latent_dim = 8};
  return config;
}

// Calls `attempt` on mutations of `valid`; only attune::Error may come out. Returns how often none did.
template <class F>
int survive(const std::string& valid, int rounds, uint64_t seed, F&& attempt) {
  Random random(seed);
  const int64_t before = peak_resident_bytes();
  int successes = 0;
  for (int round = 0; round < rounds; ++round) {
    try {
      attempt(mutate(valid, kConfigDictionary, random));
      ++successes;
    } catch (const Error& error) {
      EXPECT_FALSE(std::string(error.what()).empty());
    }
  }
  EXPECT_LT(peak_resident_bytes() - before, int64_t{512} << 20);
  return successes;
}

TEST(ConfigFuzz, RunConfigs) {
  const TemporaryFolder folder(memory_folder());
  const int successes = survive(write_toml(some_config()), 8000, 1, [&](const std::string& text) {
    std::ofstream(folder / "run.toml", std::ios::binary) << text;
    const RunConfig config = read_run_config(folder / "run.toml");
    std::ofstream(folder / "again.toml", std::ios::binary) << write_toml(config);
    EXPECT_EQ(read_run_config(folder / "again.toml"), config) << "what is accepted can be written and read";
  });
  EXPECT_GT(successes, 40);
}

TEST(ConfigFuzz, ModelConfigs) {
  const TemporaryFolder folder(memory_folder());
  write_model_config(folder.path(), some_config().model);
  const std::string valid = read_file(folder / kConfigFile);
  const int successes = survive(valid, 12000, 2, [&](const std::string& text) {
    std::ofstream(folder / kConfigFile, std::ios::binary) << text;
    const TransformerConfig config = read_model_config(folder.path());
    EXPECT_GT(count_parameters(config).total(), 0) << "sizes that are accepted do not overflow";
  });
  EXPECT_GT(successes, 30);
}

TEST(ConfigFuzz, Overrides) {
  const Json config = write_fields(some_config());
  for (const std::string valid :
       {"model.d_model=256", "data.train_source=[\"a\", \"b\"]", "model.encoder_attention=latent"}) {
    const int successes = survive(valid, 3000, 3, [&](const std::string& text) {
      Json changed = config;
      apply_override(changed, text);
      EXPECT_NO_THROW(changed.dump());
    });
    EXPECT_GT(successes, 300);
  }
}

}  // namespace
}  // namespace attune

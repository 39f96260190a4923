// A folder of attune quantize that somebody has changed: it translates, or it is refused with attune::Error.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "attune/base/file.h"
#include "attune/inference/quantize.h"
#include "attune/inference/translator.h"
#include "attune/io/config_file.h"
#include "attune/io/parameter_file.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

const std::vector<std::string> kPackedModelDictionary = {"\"int8\"",    "\"int4\"",
                                                         "\"float32\"", "\"U8\"",
                                                         "\"F32\"",     "\"BF16\"",
                                                         ".panels",     ".scales",
                                                         ".weight",     "quant_method",
                                                         "\"attune\"",  "\"gptq\"",
                                                         "\"weights\"", "[",
                                                         "]",           "{",
                                                         "}",           "[16]",
                                                         "[2,16]",      "null",
                                                         "-1",          "0",
                                                         ",",           "9223372036854775807",
                                                         "\"shape\":",  "quantization_config"};

bool translates(const std::filesystem::path& folder) {
  try {
    const Translator translator = Translator::load(folder);
    const std::vector<std::string> text = {"The old dog sleeps."};
    EXPECT_EQ(translator.translate(text, {.generation = GenerationConfig{.beam_size = 1, .max_length = 3}}).size(), 1u);
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return false;
  }
}

void fuzz(WeightFormat format, const std::string& name, int rounds, uint64_t seed) {
  const TemporaryFolder folder(memory_folder());
  write_small_model(folder / "model");
  quantize_model_folder(folder / "model", folder / "packed", format);
  ASSERT_TRUE(translates(folder / "packed"));
  const std::filesystem::path path = folder / "packed" / name;
  const std::string valid = read_file(path);
  Random random(seed);
  const int64_t before = peak_resident_bytes();
  int successes = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = valid;
    if (name == kParameterFile) {  // the data follows a header that says its own length
      uint64_t length = 0;
      std::memcpy(&length, valid.data(), sizeof(length));
      std::string data = valid.substr(8 + length);
      const bool of_data = random.below(4) == 0;
      const std::string header =
          of_data ? valid.substr(8, length) : mutate(valid.substr(8, length), kPackedModelDictionary, random);
      for (uint64_t i = of_data ? 200 : 0; i > 0; --i)
        data[random.below(data.size())] = static_cast<char>(random.below(256));
      length = header.size();
      bytes.assign(reinterpret_cast<const char*>(&length), sizeof(length));
      bytes += header + data;
    } else {
      bytes = mutate(valid, kPackedModelDictionary, random);
    }
    write_file(path, bytes);
    successes += translates(folder / "packed") ? 1 : 0;
  }
  EXPECT_LT(successes, rounds / 2);
  if (name == kParameterFile) {
    EXPECT_GT(successes, rounds / 50) << "other numbers are no errors, unless they lead to what is no number";
  }
  EXPECT_LT(peak_resident_bytes() - before, (int64_t{256} << 20) + kKeptOfFreed);
}

TEST(PackedModelFuzz, MutatedWeightsAreUsedOrRefused) {
  uint64_t seed = 20260101;
  for (const WeightFormat format :
       {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8, WeightFormat::int4})
    fuzz(format, kParameterFile, 150, ++seed);
}

TEST(PackedModelFuzz, MutatedConfigurationsAreUsedOrRefused) {
  uint64_t seed = 20260201;
  for (const WeightFormat format :
       {WeightFormat::float32, WeightFormat::bfloat16, WeightFormat::int8, WeightFormat::int4})
    fuzz(format, kConfigFile, 300, ++seed);
}

}  // namespace
}  // namespace attune

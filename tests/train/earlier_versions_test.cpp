// Files of version 0.1.0: tests/fixtures/models/version-0.1.0, made by its program with `train`, `quantize` and
// `evaluate --json`. Norms' weights were called "gain" then.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "attune/inference/translator.h"
#include "attune/io/parameter_file.h"
#include "attune/models/transformer.h"
#include "attune/text/text_file.h"
#include "attune/train/evaluate.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/train/training_run.h"

namespace attune {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  return source_dir() / "tests" / "fixtures" / "models" / "version-0.1.0";
}

std::vector<std::string> lines_of(const char* file) {
  LineReader reader((folder() / "data" / file).string());
  std::vector<std::string> lines;
  for (std::string line; reader.next(line);) lines.push_back(line);
  return lines;
}

struct Expected {
  const char* folder;
  double loss;  // of evaluate
  const char* translation;
};

TEST(EarlierVersions, ModelFoldersTranslateAsTheyDid) {
  const std::vector<std::string> sources = lines_of("valid.en"), targets = lines_of("valid.de");
  for (const Expected& expected :
       {Expected{"model", 0.4272198329542598,
                 "Wenn das Wetter schlecht ist, wird eine Frau den Studenten eine Kamera geben."},
        Expected{"model-int8", 0.42661997004642316,
                 "Wenn das Wetter schlecht ist, wird eine Frau den Studenten eine Kamera geben."},
        Expected{"model-int4", 0.43857535210567666,
                 "Wenn das Wetter heute schön ist, muss mein Sohn dem Nachbarn des Mannes gratulieren."}}) {
    SCOPED_TRACE(expected.folder);
    const Translator translator = Translator::load(folder() / expected.folder);
    EXPECT_EQ(translator.translate(sources).at(0).text(), expected.translation);
    std::vector<ParallelExample> examples;
    for (size_t i = 0; i < sources.size(); ++i) {
      ParallelExample e{translator.source_tokenizer().encode(sources[i]),
                        translator.target_tokenizer().encode(targets[i])};
      e.source.push_back(translator.source_tokenizer().eos_id());
      e.target.push_back(translator.target_tokenizer().eos_id());
      examples.push_back(e);
    }
    const CorpusLoss loss = evaluate(translator.model(), examples, translator.target_tokenizer().bos_id());
    EXPECT_NEAR(loss.nll, expected.loss, 1e-5);
  }
}

double squared_distance(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::f64), y = b.to(DType::f64);
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum += std::pow(x.data<double>()[i] - y.data<double>()[i], 2);
  return sum;
}

// Its layers share their parameters, and each use of a layer has a dropout mask of its own since, so that the run comes
// near what it would have been, not upon it.
TEST(EarlierVersions, ARunGoesOnAsItWouldHave) {
  const TemporaryFolder run;
  fs::copy(folder() / "run", run.path(), fs::copy_options::recursive);
  RunConfig config = read_run_config(run / "config.toml");
  for (std::vector<std::string>* files :
       {&config.data.train_source, &config.data.train_target, &config.data.valid_source, &config.data.valid_target})
    for (std::string& file : *files) file = (folder() / file).string();
  EXPECT_EQ(train(config, run.path(), true).result.step, 200);
  const SafetensorsReader found = open_parameters(run / "model" / kParameterFile);
  const SafetensorsReader expected = open_parameters(folder() / "model" / kParameterFile);
  ASSERT_EQ(found.names(), expected.names());
  const SafetensorsReader start(folder() / "run" / "checkpoints" / "step-00000190.safetensors");
  double left = 0, way = 0;
  for (const std::string& name : found.names()) {
    const std::string old = start.contains("model." + name) ? name : fs::path(name).replace_extension(".gain").string();
    left += squared_distance(found.load(name), expected.load(name));
    way += squared_distance(start.load("model." + old), expected.load(name));
  }
  EXPECT_LT(std::sqrt(left / way), 0.15);
  EXPECT_FALSE(SafetensorsReader(run / "model" / kParameterFile).contains("encoder.norm.gain"));
  EXPECT_TRUE(SafetensorsReader(folder() / "model" / kParameterFile).contains("encoder.norm.gain"));
}

}  // namespace
}  // namespace attune

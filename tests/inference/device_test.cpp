// Models on devices_under_test() say what they say on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/hub/open_folder.h"
#include "attune/inference/classifier.h"
#include "attune/inference/embedder.h"
#include "attune/inference/place_model.h"
#include "attune/inference/quantize.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/models/transformer.h"
#include "attune/tensor/built_devices.h"
#include "attune/tensor/device_error.h"
#include "tests/support/devices.h"
#include "tests/support/errors.h"
#include "tests/support/random_adapter.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> some_text() {
  std::vector<std::string> text = small_text();
  text.resize(6);
  text[1] = "";
  return text;
}

class OnDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TemporaryFolder>(memory_folder());
    write_small_model(*folder_ / "translator");
    write_small_language_model(*folder_ / "lm");
    write_small_classifier(*folder_ / "classifier");
    quantize_model_folder(*folder_ / "translator", *folder_ / "int8", WeightFormat::int8);
    write_random_adapter(*folder_ / "adapter", *folder_ / "lm", {.rank = 3, .targets = {"all"}}, 4);
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static void expect_same(const std::vector<Translation>& found, const std::vector<Translation>& expected) {
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(found[i].n_best.size(), expected[i].n_best.size());
      for (size_t n = 0; n < expected[i].n_best.size(); ++n) {
        EXPECT_EQ(found[i].n_best[n].text, expected[i].n_best[n].text);
        EXPECT_EQ(found[i].n_best[n].alignment, expected[i].n_best[n].alignment);
        EXPECT_NEAR(found[i].n_best[n].score, expected[i].n_best[n].score, 1e-4);
      }
    }
  }
  static TranslateOptions search(const Translator& translator) {
    TranslateOptions options{.n_best = 2, .alignments = true};
    options.generation = translator.generation();
    options.generation->beam_size = 3;
    options.generation->repetition_penalty = 1.3;
    return options;
  }

  static inline std::unique_ptr<TemporaryFolder> folder_;
};

TEST_F(OnDevice, TranslatesFolders) {
  for (const char* name : {"translator", "int8"}) {
    SCOPED_TRACE(name);
    const Translator on_cpu = Translator::load(*folder_ / name);
    const auto expected = on_cpu.translate(some_text(), search(on_cpu));
    for (const Device& device : devices_under_test()) {
      const Translator translator = Translator::load(*folder_ / name, {.device = device});
      expect_same(translator.translate(some_text(), search(translator)), expected);
    }
  }
}

TEST_F(OnDevice, TranslatesWithModelsInMemory) {
  const Translator on_cpu = Translator::load(*folder_ / "translator");
  const auto expected = on_cpu.translate(some_text(), search(on_cpu));
  for (const Device& device : devices_under_test()) {
    ModelFolder files = OpenedFolder(*folder_ / "translator").load_model();
    const std::shared_ptr<Transformer> model = std::move(files.model);
    for (const bool moved : {false, true}) {  // the copy goes to the device, or is made there
      if (moved) move_parameters(*model, device);
      const SchedulerOptions options{.device = moved ? std::nullopt : std::optional(device)};
      const Translator translator(model, files.source_tokenizer, files.target_tokenizer, files.generation, options);
      expect_same(translator.translate(some_text(), search(translator)), expected);
    }
  }
}

TEST_F(OnDevice, TranslatesWithAnEnsemble) {
  const std::filesystem::path folder = *folder_ / "translator";
  const auto translations = [](const Translator& translator) {
    TranslateOptions options = search(translator);
    options.generation->penalize_log_probabilities = true;
    return translator.translate(some_text(), options);
  };
  const auto expected = translations(Translator::load_ensemble({folder, folder}));
  for (const Device& device : devices_under_test())
    expect_same(translations(Translator::load_ensemble({folder, folder}, {.device = device})), expected);
}

TEST_F(OnDevice, GeneratesAlsoWithADraftAndAdapters) {
  const AdapterFolders adapters = {{"other", *folder_ / "adapter"}};
  const TextGenerator on_cpu = TextGenerator::load(*folder_ / "lm", {}, adapters);
  const auto texts = [](const TextGenerator& generator, const GenerateOptions& options) {
    std::vector<std::string> all;
    for (const GeneratedText& text : generator.generate({"The dog", "A"}, options)) all.push_back(text.text);
    return all;
  };
  for (const Device& device : devices_under_test()) {
    const TextGenerator generator = TextGenerator::load(*folder_ / "lm", {.device = device}, adapters);
    for (const char* adapter : {"", "other"})
      EXPECT_EQ(texts(generator, {.adapter = adapter, .samples = 2}),
                texts(on_cpu, {.adapter = adapter, .samples = 2}));
    for (const SamplingConfig& config : {SamplingConfig{.temperature = 0, .max_tokens = 20},
                                         SamplingConfig{.temperature = 0.8, .top_k = 5, .max_tokens = 20},
                                         SamplingConfig{.repetition_penalty = 1.2, .top_p = 0.9, .max_tokens = 20},
                                         SamplingConfig{.min_p = 0.05, .max_tokens = 20}})
      EXPECT_EQ(texts(generator, {.sampling = config, .samples = 2}), texts(on_cpu, {.sampling = config, .samples = 2}))
          << "top_k = " << config.top_k << ", top_p = " << config.top_p << ", min_p = " << config.min_p;
    EXPECT_NE(texts(generator, {.adapter = "other"}), texts(generator, {}));
    EXPECT_EQ(texts(generator, {.draft = &generator.model()}), texts(on_cpu, {.draft = &on_cpu.model()}));
    EXPECT_THAT(message_of<ConfigError>([&] {
                  TextGenerator(OpenedFolder(*folder_ / "lm").load_language_model(LoadedWeights::mapped, adapters),
                                {.device = device});
                }),
                HasSubstr("adapters to choose from is on cpu; load the folder with the device"));
  }
}

TEST_F(OnDevice, ClassifiesAndEmbeds) {
  const std::vector<std::string> text = some_text();
  const std::vector<Classification> labels = Classifier::load(*folder_ / "classifier").classify(text);
  const auto vectors = Embedder::load(*folder_ / "classifier").embed(text);
  for (const Device& device : devices_under_test()) {
    for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
      const double tolerance = precision == ProductPrecision::float32 ? 1e-5 : 3e-2;
      const auto found = Classifier::load(*folder_ / "classifier", precision, device).classify(text);
      for (size_t i = 0; i < text.size(); ++i)
        EXPECT_NEAR(found[i].labels[0].probability, labels[i].labels[0].probability, tolerance);
    }
    for (const ProductPrecision precision : {ProductPrecision::float32, ProductPrecision::bfloat16}) {
      const auto found = Embedder::load(*folder_ / "classifier", precision, device).embed(text);
      for (size_t i = 0; i < text.size(); ++i)
        for (size_t c = 0; c < vectors[i].size(); ++c)
          EXPECT_NEAR(found[i][c], vectors[i][c], precision == ProductPrecision::float32 ? 1e-4 : 0.15);
    }
  }
}

// Checks that what products alone read is bfloat16 on the device, and nothing else; of a model that shares no table.
class Bfloat16Tensors final : public Visitor {
 public:
  explicit Bfloat16Tensors(Module& model, const Device& device) : device_(device) { model.visit(*this); }
  int64_t found = 0;

 protected:
  void on_parameter(const std::string& path, Parameter& p) override {
    if (!p.defined()) return;
    EXPECT_EQ(p.tensor.device(), device_) << path;
    EXPECT_EQ(p.panels, nullptr) << path;
    EXPECT_EQ(p.tensor.dtype() == DType::bf16, p.use == ParameterUse::product) << path;
    if (p.tensor.dtype() == DType::bf16) ++found;
  }

 private:
  Device device_;
};

// However the model comes to the device: as a folder for it, as one that was read in float32, or from memory.
TEST_F(OnDevice, HasMatricesInBfloat16) {
  for (const Device& device : devices_under_test()) {
    const SchedulerOptions options{.precision = ProductPrecision::bfloat16, .device = device};
    const OpenedFolder folder(*folder_ / "translator");
    const ModelFolder files = folder.load_model(weights_for(options.precision, device), {}, device);
    EXPECT_GT(Bfloat16Tensors(*files.model, device).found, 0);
    ModelFolder later = folder.load_model();
    place_model(*later.model, device, options.precision);
    EXPECT_GT(Bfloat16Tensors(*later.model, device).found, 0);

    const Translator loaded = Translator::load(folder.path(), options);
    const auto expected = loaded.translate(some_text(), search(loaded));
    const Translator read_wide(folder.load_model(LoadedWeights::mapped, {}, device), options);
    ModelFolder in_memory = folder.load_model();
    const std::shared_ptr<Transformer> model = std::move(in_memory.model);
    const Translator copied(model, in_memory.source_tokenizer, in_memory.target_tokenizer, in_memory.generation,
                            options);
    for (const Translator* translator : {&read_wide, &copied}) {
      const auto found = translator->translate(some_text(), search(*translator));
      expect_same(found, expected);
      EXPECT_EQ(found[0].n_best[0].score, expected[0].n_best[0].score);
    }
    for (const NamedParameter& p : named_parameters(*model)) EXPECT_EQ(p.tensor->dtype(), DType::f32) << p.name;
  }
}

// A draft proposes what a model of another precision decides.
TEST_F(OnDevice, GeneratesWithMatricesInBfloat16) {
  const AdapterFolders adapters = {{"other", *folder_ / "adapter"}};
  const SamplingConfig likeliest{.temperature = 0, .max_tokens = 20};
  const auto texts = [](const TextGenerator& generator, const GenerateOptions& options) {
    std::vector<std::string> all;
    for (const GeneratedText& text : generator.generate({"The dog", "A"}, options)) all.push_back(text.text);
    return all;
  };
  for (const Device& device : devices_under_test()) {
    const SchedulerOptions options{.precision = ProductPrecision::bfloat16, .device = device};
    const TextGenerator narrow = TextGenerator::load(*folder_ / "lm", options, adapters);
    const TextGenerator read_wide(
        OpenedFolder(*folder_ / "lm").load_language_model(LoadedWeights::mapped, adapters, device), options);
    for (const char* adapter : {"", "other"})
      EXPECT_EQ(texts(narrow, {.adapter = adapter, .samples = 2}),
                texts(read_wide, {.adapter = adapter, .samples = 2}));
    EXPECT_NE(texts(narrow, {.adapter = "other"}), texts(narrow, {}));

    const TextGenerator wide = TextGenerator::load(*folder_ / "lm", {.device = device});
    EXPECT_EQ(texts(wide, {.sampling = likeliest, .draft = &narrow.model()}), texts(wide, {.sampling = likeliest}));
    EXPECT_EQ(texts(narrow, {.sampling = likeliest, .draft = &wide.model()}), texts(narrow, {.sampling = likeliest}));
    // The adapter is added before its model's matrices are rounded.
    const TextGenerator merged = TextGenerator::load(*folder_ / "adapter", options);
    const TextGenerator merged_wide(
        OpenedFolder(*folder_ / "adapter").load_language_model(LoadedWeights::mapped, {}, device), options);
    EXPECT_EQ(texts(merged, {.samples = 2}), texts(merged_wide, {.samples = 2}));
    EXPECT_NE(texts(merged, {.samples = 2}), texts(narrow, {.samples = 2}));
  }
}

TEST_F(OnDevice, FloatsAreTensorsThereAndPanelsHere) {
  for (const Device& device : devices_under_test()) {
    ModelFolder files = OpenedFolder(*folder_ / "translator").load_model(LoadedWeights::panels);
    EXPECT_EQ(place_model(*files.model, {}, ProductPrecision::float32), Device(Cpu{}));
    EXPECT_EQ(place_model(*files.model, device, ProductPrecision::float32), device);
    struct Check final : Visitor {
      void on_parameter(const std::string& path, Parameter& p) override {
        if (!p.defined()) return;
        EXPECT_TRUE(p.tensor.defined()) << path;
        EXPECT_EQ(p.panels, nullptr) << path;
      }
    } check;
    files.model->visit(check);
    EXPECT_THAT(message_of<ConfigError>([&] {
                  Translator::load(*folder_ / "int8", {.precision = ProductPrecision::bfloat16, .device = device});
                }),
                HasSubstr("its weights are int8 panels; bfloat16 products need bfloat16 panels or matrices"));
    EXPECT_THAT(message_of<ConfigError>([&] {
                  Translator(OpenedFolder(*folder_ / "int8").load_model(LoadedWeights::mapped, {}, device),
                             {.precision = ProductPrecision::bfloat16});
                }),
                HasSubstr("the model's weights are int8 panels"));
  }
}

TEST_F(OnDevice, AGpuNeedsABuildWithCuda) {
  if (kBuiltWithCuda) GTEST_SKIP() << "this build has CUDA";
  const auto refusal = message_of<DeviceError>([] { Translator::load(*folder_ / "translator", {.device = Cuda{}}); });
  EXPECT_THAT(refusal, HasSubstr("device cuda:0: Attune was built without CUDA"));
}

}  // namespace
}  // namespace attune

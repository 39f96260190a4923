#include "attune/train/evaluate_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "attune/base/descriptor.h"
#include "attune/base/file.h"
#include "attune/base/interrupt.h"
#include "attune/data/text_stream.h"
#include "attune/train/evaluate.h"
#include "tests/support/errors.h"
#include "tests/support/small_model.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

class EvaluateFile : public ::testing::Test {
 protected:
  EvaluateFile() { write_file(folder_ / "text", "The old dog sleeps .\nA cat sees it .\n"); }
  OpenedFolder model(TextUnit unit) {
    write_small_language_model(folder_ / "model", unit);
    return OpenedFolder(folder_ / "model");
  }
  TemporaryFolder folder_{memory_folder()};
};

TEST_F(EvaluateFile, ReadsTheTextAsTheModelWasTrained) {
  for (const TextUnit unit : {TextUnit::stream, TextUnit::line}) {
    const OpenedFolder folder = model(unit);
    const LanguageModelFolder files = folder.load_language_model();
    const TokenDocuments documents = load_text({folder_ / "text"}, *files.tokenizer, {.unit = unit});
    const CorpusLoss expected = evaluate(*files.model, documents, 7);
    const FileEvaluation found = evaluate_file(folder, folder_ / "text", {.stride = 7});
    EXPECT_EQ(found.loss.nll, expected.nll);
    EXPECT_EQ(found.loss.tokens, expected.tokens);
    EXPECT_EQ(found.documents, unit == TextUnit::line ? 2 : 1);
    EXPECT_EQ(found.bytes, 37);
    EXPECT_NEAR(found.bits_per_byte() * 37, expected.nll * static_cast<double>(expected.tokens) / std::log(2.0), 1e-9);
    EXPECT_EQ(evaluate_file(folder, folder_ / "text").stride, files.model->config().context_length);
    std::filesystem::remove_all(folder_ / "model");
  }
}

TEST_F(EvaluateFile, OfPromptsAndAnswersTheAnswersCount) {
  write_file(folder_ / "text", R"({"prompt": "The old dog", "answer": "sleeps ."})"
                               "\n\n"
                               R"({"note": 1, "answer": "A cat", "prompt": "sees it ."})"
                               "\n");
  const FileEvaluation found = evaluate_file(model(TextUnit::answer), folder_ / "text");
  EXPECT_EQ(found.documents, 2);
  EXPECT_EQ(found.bytes, 13);
}

TEST_F(EvaluateFile, ATextWhoseLossIsNotFiniteIsNamed) {
  write_file(folder_ / "text", "The dog\n\nThe \u2603 dog\n");  // the snowman is unknown
  for (const TextUnit unit : {TextUnit::stream, TextUnit::line}) {
    const LanguageModelFolder files = model(unit).load_language_model();
    for (const NamedParameter& p : named_parameters(*files.model))
      if (p.name == "embedding.weight")
        p.tensor->values<float>()[static_cast<size_t>(files.tokenizer->unk_id() * p.tensor->size(1))] =
            std::numeric_limits<float>::quiet_NaN();
    save_model_folder(folder_ / "spoilt", *files.model, *files.tokenizer, files.sampling, unit);
    const std::string name = (folder_ / "text").string();
    EXPECT_EQ(message_of<NumericError>([&] { evaluate_file(OpenedFolder(folder_ / "spoilt"), name); }),
              name + (unit == TextUnit::stream ? "" : ": text 2") + ": the loss is not finite");
    std::filesystem::remove_all(folder_ / "spoilt");
    std::filesystem::remove_all(folder_ / "model");
  }
}

// The file is read twice: for the second time, a pipe has no bytes left.
TEST_F(EvaluateFile, APipeIsRefused) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reading(ends[0]);
  {
    const Descriptor writing(ends[1]);
    ASSERT_EQ(::write(writing.get(), "The dog\n", 8), 8);
  }
  const std::string name = "/dev/fd/" + std::to_string(reading.get());
  EXPECT_EQ(message_of<FileError>([&] { evaluate_file(model(TextUnit::line), name); }),
            name + ": needs a regular file, which is read twice: for its tokens, and for its bytes");
}

TEST_F(EvaluateFile, Refusals) {
  const OpenedFolder folder = model(TextUnit::stream);
  EXPECT_THAT(message_of<ConfigError>([&] { evaluate_file(folder, folder_ / "text", {.stride = -1}); }),
              testing::HasSubstr("stride -1: needs a number from 1 to the model's context of"));
  const std::atomic<bool> interrupt = true;
  EXPECT_THROW(evaluate_file(folder, folder_ / "text", {.interrupt = &interrupt}), Interrupted);
}

}  // namespace
}  // namespace attune

#include "attune/io/checkpoint.h"
#include "attune/base/json_fields.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Scale final : Module {
  Parameter scale{.tensor = Tensor::full({2}, 1)};
  void visit(Visitor& v) override { v("scale", scale); }
};

Checkpoint checkpoint(float value) {
  const Tensor scale = Tensor::full({2}, value);
  return {{{"model.scale", scale}, {"adam_m.scale", Tensor::zeros({2})}}, {{"step", 7}, {"loss", 0.1}}};
}

TEST(Checkpoint, TensorsAndStateComeBack) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", checkpoint(2.5f));
  const SafetensorsReader reader(folder / "c");
  EXPECT_EQ(reader.load("model.scale").values<float>()[1], 2.5f);
  EXPECT_EQ(checkpoint_state(reader).at("loss").get<double>(), 0.1);
  EXPECT_EQ(checkpoint_state(reader), checkpoint(0).state);
}

TEST(Checkpoint, StateMustBeThereAndJson) {
  const TemporaryFolder folder;
  write_safetensors(folder / "c", {});
  EXPECT_THAT(message_of<FileError>([&] { checkpoint_state(SafetensorsReader(folder / "c")); }),
              HasSubstr("is no checkpoint"));
  write_safetensors(folder / "c", {}, {{"state", "{"}});
  EXPECT_THAT(message_of<FileError>([&] { checkpoint_state(SafetensorsReader(folder / "c")); }),
              HasSubstr("state: is not valid JSON"));
}

TEST(CheckpointFolder, KeepsTheLast) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder / "a/b", 2);
  EXPECT_TRUE(checkpoints.steps().empty());
  EXPECT_FALSE(checkpoints.newest().step);
  EXPECT_EQ(checkpoints.file(1000).filename(), "step-00001000.safetensors");
  for (const int64_t step : {5, 123456789, 10, 20}) checkpoints.write(step, checkpoint(1));
  EXPECT_THAT(checkpoints.steps(), ElementsAre(10, 20, 123456789)) << "a later step of another run is left alone";
  EXPECT_EQ(checkpoints.newest().step, 123456789);
  CheckpointFolder(folder / "a/b", 0).write(30, checkpoint(1));
  EXPECT_THAT(checkpoints.steps(), ElementsAre(10, 20, 30, 123456789));
}

// A run that is stopped twice between two checkpoints has them and where it stands.
TEST(CheckpointFolder, WhatWasNotDueGoesWithTheNext) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), 2);
  const auto write = [&](int64_t step, CheckpointKind kind) {
    Checkpoint written = checkpoint(1);
    written.kind = kind;
    checkpoints.write(step, written);
    EXPECT_EQ(checkpoints.is_due(step), kind == CheckpointKind::due);
    return checkpoints.steps();
  };
  using enum CheckpointKind;
  write(10, due);
  write(20, due);
  EXPECT_THAT(write(23, stop), ElementsAre(10, 20, 23));
  EXPECT_THAT(write(25, stop), ElementsAre(10, 20, 23, 25)) << "23 is there if 25 is damaged";
  EXPECT_THAT(write(27, stop), ElementsAre(10, 20, 25, 27));
  EXPECT_THAT(write(30, due), ElementsAre(20, 30));
  write(31, stop);
  EXPECT_THAT(write(33, last), ElementsAre(30, 33));
  EXPECT_EQ(checkpoints.damage(30), "");
}

TEST(CheckpointFolder, NewestSkipsTornFiles) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), 0);
  for (const int64_t step : {1, 2, 3, 4}) checkpoints.write(step, checkpoint(1));
  const std::string whole = read_file(checkpoints.file(4));
  write_file(checkpoints.file(4), whole.substr(0, whole.size() - 1));
  write_file(checkpoints.file(3), "");
  write_file(folder / "step-9.safetensors", whole);
  write_file(folder / "step-00000009x.safetensors", whole);
  write_file(folder / "step--0000009.safetensors", whole);
  EXPECT_THAT(checkpoints.steps(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(checkpoints.newest().step, 2);
  EXPECT_EQ(checkpoints.newest().damaged.size(), 2u);
}

// Whatever bit of a file turns: the values that are read are those that were written, or the file is damaged.
TEST(CheckpointFolder, AnyBitThatTurnsIsNoticed) {
  const TemporaryFolder folder(memory_folder());
  const CheckpointFolder checkpoints(folder.path(), 0);
  for (const int64_t step : {1, 2}) checkpoints.write(step, checkpoint(2.5f));
  const std::string whole = read_file(checkpoints.file(2));
  size_t unnoticed = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string torn = whole;
    torn[i] = static_cast<char>(torn[i] ^ (1 << (i % 8)));
    std::ofstream(checkpoints.file(2)) << torn;
    const FoundCheckpoint found = checkpoints.newest();
    if (found.step == 1 && found.damaged.contains(2)) continue;
    ++unnoticed;
    const SafetensorsReader reader(checkpoints.file(2));
    EXPECT_EQ(checkpoint_state(reader), checkpoint(0).state) << "byte " << i;
    EXPECT_EQ(reader.load("model.scale").values<float>()[1], 2.5f) << "byte " << i;
  }
  EXPECT_LE(unnoticed, 6u) << "the six letters of the checksum's own name";
}

TEST(CheckpointFolder, WhatCannotBeOpenedIsAnErrorAndStays) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), 0);
  checkpoints.write(1, checkpoint(1));
  ASSERT_EQ(::mkfifo(checkpoints.file(2).c_str(), 0600), 0);
  EXPECT_THAT(message_of<FileError>([&] { checkpoints.newest(); }), HasSubstr("step-00000002.safetensors"));
  std::filesystem::remove(checkpoints.file(2));
  checkpoints.write(2, checkpoint(1));
  std::filesystem::permissions(checkpoints.file(2), std::filesystem::perms::none);
  if (::geteuid() != 0) {
    EXPECT_THROW(checkpoints.newest(), FileError);
  }
  EXPECT_THAT(checkpoints.steps(), ElementsAre(1, 2));
}

TEST(CheckpointFolder, SetsAsideUnderANameOfItsOwn) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), 0);
  for (const char* name : {"step-00000003.safetensors.damaged", "step-00000003.safetensors.damaged.2"}) {
    checkpoints.write(3, checkpoint(1));
    EXPECT_EQ(checkpoints.set_aside(3), folder / name);
    EXPECT_TRUE(std::filesystem::exists(folder / name));
    EXPECT_TRUE(checkpoints.steps().empty());
  }
}

// Of a version that wrote none.
TEST(CheckpointFolder, WithoutAChecksumItIsReadAsItIs) {
  const TemporaryFolder folder;
  const CheckpointFolder checkpoints(folder.path(), 0);
  write_safetensors(checkpoints.file(5), checkpoint(1).tensors, {{"state", "{}"}});
  EXPECT_EQ(checkpoints.newest().step, 5);
}

TEST(MeanOfCheckpoints, IsTakenInFloat64) {
  const TemporaryFolder folder;
  // In float32, 2^24 + 1 is 2^24: a sum in float32 would lose the ones.
  std::vector<std::filesystem::path> paths;
  for (const float value : {0x1p24f, 1.0f, 1.0f, 2.0f}) {
    paths.push_back(folder / fmt::format("{}", paths.size()));
    write_checkpoint(paths.back(), checkpoint(value));
  }
  Scale scale;
  mean_of_checkpoints(paths, scale);
  EXPECT_EQ(scale.scale.tensor.values<float>()[0], 0x1p22f + 1);
}

TEST(MeanOfCheckpoints, NamesWhatDoesNotFit) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> paths = {folder / "good", folder / "bad"};
  write_checkpoint(paths[0], checkpoint(3));
  write_checkpoint(paths[1], {{{"model.scale", Tensor::zeros({3})}}, Json::object()});
  Scale scale;
  EXPECT_THAT(message_of<FileError>([&] { mean_of_checkpoints(paths, scale); }),
              HasSubstr("bad: tensor \"model.scale\" is float32 [3], the model has float32 [2]"));
  write_checkpoint(paths[1], {});
  EXPECT_THAT(message_of<FileError>([&] { mean_of_checkpoints(paths, scale); }),
              HasSubstr("has no tensor \"model.scale\""));
  write_checkpoint(paths[1], checkpoint(3));
  std::string torn = read_file(paths[1]);
  torn.back() = static_cast<char>(torn.back() ^ 1);
  write_file(paths[1], torn);
  EXPECT_THAT(message_of<FileError>([&] { mean_of_checkpoints(paths, scale); }),
              HasSubstr("bad: the content is not what was written"));
  EXPECT_THROW(mean_of_checkpoints({}, scale), FileError);
  EXPECT_EQ(scale.scale.tensor.values<float>()[0], 1.0f);
}

}  // namespace
}  // namespace attune

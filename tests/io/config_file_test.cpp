#include "attune/io/config_file.h"
#include "attune/base/json_fields.h"
#include "attune/io/parameter_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/base/version.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "attune/models/transformer.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

class ConfigFileTest : public ::testing::Test {
 protected:
  TransformerConfig config() {
    TransformerConfig c;
    c.source_vocab = 100;
    c.target_vocab = 80;
    c.d_model = 16;
    c.heads = 4;
    c.layers = 2;
    c.d_ff = 32;
    c.cross_attention = MultiHeadLatent{.latent_dim = 8};
    c.norm = NormPlacement::post;
    c.norm_form = NormForm::unbiased_std;
    return c;
  }
  Json stored_config() { return read_json_file(folder_ / kConfigFile); }
  std::string refusal(const Json& json) {
    write_json_file(folder_ / kConfigFile, json);
    const std::string message = message_of<Error>([&] { read_model_config(folder_.path()); });
    EXPECT_THAT(message, HasSubstr("config.json"));
    return message;
  }

  TemporaryFolder folder_{memory_folder()};
  std::filesystem::path parameters_ = folder_ / kParameterFile;
};

TEST_F(ConfigFileTest, ConfigComesBack) {
  write_model_config(folder_.path(), config());
  EXPECT_EQ(read_model_config(folder_.path()), config());
  EXPECT_EQ(stored_config().at("model_type"), "transformer");
  EXPECT_EQ(stored_config().at("attune_version"), version());
}

TEST_F(ConfigFileTest, VersionIsThatOfTheBuild) {
  const std::string build = read_file(source_dir() / "CMakeLists.txt");
  EXPECT_THAT(build, HasSubstr(fmt::format("project(attune VERSION {} ", version())));
}

TEST_F(ConfigFileTest, ConfigNamesWhatIsWrong) {
  write_model_config(folder_.path(), config());
  const Json good = stored_config();
  const auto with = [&](const char* key, const Json& value) {
    Json json = good;
    json[key] = value;
    return json;
  };
  EXPECT_THAT(refusal(with("d_modle", 3)), HasSubstr("unknown key \"d_modle\", did you mean \"d_model\"?"));
  EXPECT_THAT(refusal(with("d_model", "many")), HasSubstr("config.json.d_model: is \"many\", needs a whole number"));
  EXPECT_THAT(refusal(with("d_model", 18)), HasSubstr("d_model = 18 is not divisible by heads = 4"));
  EXPECT_THAT(refusal(with("model_type", "bert")), HasSubstr("model_type is \"bert\", needs \"transformer\""));
  EXPECT_THAT(refusal(with("cross_attention", {{"kind", "latent"}, {"latent_dim", 65}})), HasSubstr("latent_dim = 65"));
  EXPECT_THAT(refusal(Json::array()), HasSubstr("needs an object, found array"));
  EXPECT_THAT(refusal(Json::object()), HasSubstr("needs \"model_type\""));
}

TEST_F(ConfigFileTest, JsonFilesAreTakenWithCare) {
  const auto path = folder_ / "x.json";
  const auto refusal = [&](const std::string& text) {
    write_file(path, text);
    return message_of<FileError>([&] { read_json_file(path); });
  };
  EXPECT_EQ(refusal("{\"a\": 1,}"), path.string() + ": is not valid JSON at byte 9");
  EXPECT_THAT(refusal(""), HasSubstr("not valid JSON at byte 1"));
  EXPECT_THAT(refusal("{\"a\":{\"b\":1,\"b\":2}}"), HasSubstr("has key \"b\" twice"));
  EXPECT_THAT(refusal(std::string(500'000, '[')), HasSubstr("more than 64 levels"));
  EXPECT_THAT(refusal("[" + std::string(1 << 20, ' ') + "]"), HasSubstr("at most 1048576 are accepted"));
  EXPECT_THAT(refusal("[1e999]"), HasSubstr("not valid JSON"));
  std::string many = "{\"\":0";
  for (int i = 0; i < 4096; ++i) many += fmt::format(",\"{}\":0", i);
  EXPECT_THAT(refusal(many + "}"), HasSubstr("more than 4096 keys"));
  write_file(path, "{\"a\":{\"b\":1},\"c\":{\"b\":1}}");
  EXPECT_EQ(read_json_file(path).at("c").at("b"), 1);
}

TEST_F(ConfigFileTest, AbsurdSizesAreRefusedBeforeAModelIsBuilt) {
  const TransformerConfig small = config();
  write_safetensors(parameters_, std::vector<NamedTensor>{{"all", Tensor::zeros({count_parameters(small).total()})}});
  EXPECT_NO_THROW(check_parameter_file(folder_.path(), small));
  const auto model = build_transformer(small);
  save_parameters(parameters_, *model);
  EXPECT_NO_THROW(check_parameter_file(folder_.path(), small)) << "what a model saves is enough for it";
  TransformerConfig absurd = small;
  absurd.d_model = 65536;
  absurd.layers = 1024;
  absurd.d_ff = 1 << 20;
  absurd.source_vocab = absurd.target_vocab = 1 << 24;
  EXPECT_GT(count_parameters(absurd).total(), int64_t{1} << 46);
  EXPECT_THAT(message_of<FileError>([&] { check_parameter_file(folder_.path(), absurd); }),
              HasSubstr("d_model = 65536"));
  write_safetensors(parameters_,
                    std::vector<NamedTensor>{{"all", Tensor::zeros({count_parameters(small).total() - 1})}});
  EXPECT_THROW(check_parameter_file(folder_.path(), small), FileError);
  absurd.layers = int64_t{1} << 60;
  EXPECT_THROW(check_parameter_file(folder_.path(), absurd), ConfigError);
}

TEST(FolderOfModel, IsThatInTheFolderOfARun) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& file) {
    std::filesystem::create_directories((folder / file).parent_path());
    write_file(folder / file, "{}");
  };
  const auto found = [&](const std::string& name) {
    return std::filesystem::path(folder_of_model((folder / name).string()));
  };
  const auto message = [&](const std::string& name) { return message_of<ConfigError>([&] { found(name); }); };
  write("run/config.toml");
  EXPECT_THAT(message("run"), HasSubstr("the run has no model yet"));
  write("run/best/config.json");
  EXPECT_THAT(message("run"), HasSubstr((folder / "run/best").string() + " is its best model so far"));
  write("run/model/config.json");
  EXPECT_EQ(found("run"), folder / "run/model");
  EXPECT_EQ(found("run/model"), folder / "run/model");
  write("model/config.json");
  write("model/model/config.json");
  EXPECT_EQ(found("model"), folder / "model") << "a model is no run";
  EXPECT_EQ(found("none"), folder / "none");
}

}  // namespace
}  // namespace attune

#include "attune/serve/serve_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/base/file.h"
#include "attune/serve/api_keys.h"
#include "attune/serve/http/http_error.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"

namespace attune::serve {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ServeConfig read(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "serve.toml", text);
  ServeConfig config;
  read_serve_config(folder / "serve.toml", config);
  config.validate();
  return config;
}

TEST(ServeConfig, PathsAreFromTheFolderOfTheFile) {
  const TemporaryFolder folder;
  write_file(folder / "serve.toml",
             "[http]\ntls_certificate = \"c.pem\"\ntls_key = \"\"\n[security]\napi_keys = \"../keys.toml\"\n"
             "[models.a]\nfolder = \"runs/a\"\n[models.b]\nfolder = \"/models/b\"\n");
  ServeConfig config;
  read_serve_config(folder / "serve.toml", config);
  EXPECT_EQ(config.models.at("a").folder, (folder / "runs/a").string());
  EXPECT_EQ(config.models.at("b").folder, "/models/b");
  EXPECT_EQ(config.http.tls_certificate, (folder / "c.pem").string());
  EXPECT_EQ(config.http.tls_key, "");
  EXPECT_EQ(config.security.api_keys, ((folder / "x").parent_path().parent_path() / "keys.toml").string());
}

TEST(ServeConfig, ReadsItsSectionsAndModels) {
  const ServeConfig config = read(
      "drain_seconds = 5\n[http]\nport = 9000\n"
      "[security]\ncors_origins = [\"*\", \"https://example.com\"]\n[limits]\nsamples = 3\n[models.en-de]\nfolder = "
      "\"a\"\n"
      "source_languages = [\"en=eng_Latn\"]\ntarget_languages = [\"de\"]\n[models.lm]\nfolder = \"b\"\nbatch = 8\n"
      "precision = \"bfloat16\"\n");
  EXPECT_EQ(config.drain_seconds, 5);
  EXPECT_EQ(config.http.port, 9000);
  EXPECT_EQ(config.limits.samples, 3);
  EXPECT_EQ(config.security.cors_origins.back(), "https://example.com");
  ASSERT_EQ(config.models.size(), 2u);
  EXPECT_EQ(config.models.at("lm").batch, 8);
  EXPECT_EQ(config.models.at("lm").precision, PrecisionChoice::bfloat16);
  EXPECT_EQ(config.models.at("en-de").precision, PrecisionChoice::float32);
  EXPECT_EQ(config.models.at("en-de").source_languages.front(), "en=eng_Latn");
}

TEST(ServeConfig, WhatIsWrongIsNamed) {
  const auto message = [](const std::string& text) { return message_of<ConfigError>([&] { read(text); }); };
  const std::string model = "[models.a]\nfolder = \"a\"\n";
  EXPECT_THAT(message("[http]\nprot = 1\n" + model),
              HasSubstr("serve.toml: http: unknown key \"prot\", did you mean \"port\"?"));
  EXPECT_THAT(message("drain_seconds = \"long\"\n" + model), HasSubstr("serve.toml: drain_seconds: is \"long\""));
  EXPECT_THAT(message("[models.a]\nfodler = \"a\"\n"), HasSubstr("folder"));
  EXPECT_THAT(message(model + "precision = \"float16\"\n"),
              HasSubstr("precision: is \"float16\", needs one of float32, bfloat16, auto"));
  EXPECT_THAT(message(model + "device = \"gpu\"\n"), HasSubstr("models.a.device = gpu: needs cpu, cuda, or cuda:N"));
  EXPECT_THAT(message("[models.\"a b\"]\nfolder = \"a\"\n"), HasSubstr("a b"));
  EXPECT_THAT(message("[limits]\ntexts = 0\n" + model), HasSubstr("limits.texts = 0"));
  for (const char* host : {"0.0.0.0", "::"})
    EXPECT_THAT(message("[http]\nhost = \"" + std::string(host) + "\"\n" + model), HasSubstr("api_keys"));
  EXPECT_THAT(message("[http]\nhost = \"no host\"\n" + model), HasSubstr("host = \"no host\""));
  for (const char* origin : {"foo", "https://example.com/", "https://Example.com", ""})
    EXPECT_THAT(message("[security]\ncors_origins = [\"*\", \"" + std::string(origin) + "\"]\n" + model),
                HasSubstr("security.cors_origins (--cors-origin): is \"" + std::string(origin) + "\""));
  EXPECT_THAT(message("[security]\ncors_origins = [\"null\"]\n" + model),
              HasSubstr("is \"null\", the origin of a page opened as a file, which a page of any site can take"));
  for (const char* host : {"https://attune.example", "attune.example:8443", "attune.example/", "a b", ""})
    EXPECT_THAT(message("[security]\nhosts = [\"127.0.0.1\", \"" + std::string(host) + "\"]\n" + model),
                AllOf(HasSubstr("security.hosts: is \"" + std::string(host) + "\""), HasSubstr(": attune.example")));
  EXPECT_NO_THROW(read("[security]\nhosts = [\"Attune.example\", \"localhost\", \"[::1]\"]\n" + model));
  EXPECT_THAT(message(""), HasSubstr("no model"));
  EXPECT_THAT(message("models = 3\n"), HasSubstr("models"));
}

TEST(ServeConfig, OfThisMachineAloneNeedsNoKeys) {
  for (const char* host : {"localhost", "127.0.0.2", "::1"})
    EXPECT_NO_THROW(read("[http]\nhost = \"" + std::string(host) + "\"\n[models.a]\nfolder = \"a\"\n")) << host;
}

TEST(ServeConfig, TwoModelsOfTheCommandLineNeedTwoNames) {
  ServeConfig config;
  config.models["a"].batch = 8;
  add_models({"a=/x", "/y/b"}, config);
  EXPECT_EQ(config.models.at("a").folder, "/x");
  EXPECT_EQ(config.models.at("a").batch, 8);
  EXPECT_EQ(config.models.at("b").folder, "/y/b");
  for (const std::vector<std::string>& two : {std::vector<std::string>{"a=X", "a=Y"}, {"X/a", "Y/a/"}})
    EXPECT_THAT(message_of<ConfigError>([&] { add_models(two, config); }),
                AllOf(HasSubstr("\"a\""), HasSubstr("X"), HasSubstr("Y")));
}

TEST(ServeConfig, NamesComeFromFolders) {
  EXPECT_EQ(model_argument("en-de=/x/y").first, "en-de");
  EXPECT_EQ(model_argument("en-de=/x/y").second.folder, "/x/y");
  EXPECT_EQ(model_argument("/x/opus-mt-en-de/").first, "opus-mt-en-de");
  EXPECT_EQ(model_argument("runs/demo/model").first, "demo");
  EXPECT_EQ(languages_of_name("opus-mt-en-de"), (std::pair<std::string, std::string>("en", "de")));
  EXPECT_EQ(languages_of_name("corpus=en-de"), (std::pair<std::string, std::string>("en", "de")));
  EXPECT_EQ(languages_of_name("en-de"), (std::pair<std::string, std::string>("en", "de")));
  for (const char* name : {"demo", "opus-mt-en-ROMANCE", "-de", "model-v2", ""})
    EXPECT_EQ(languages_of_name(name).first, "") << name;
}

TEST(ServeConfig, AFolderMayHaveAnEqualsSign) {
  const TemporaryFolder folder;
  const std::string model = (folder / "runs/lr=0.1/model").string();
  make_directories(model);
  EXPECT_EQ(model_argument(model).first, "lr=0.1");
  EXPECT_EQ(model_argument(model).second.folder, model);
  EXPECT_EQ(model_argument("a=" + model).first, "a");
  EXPECT_EQ(model_argument("a=" + model).second.folder, model);
  ServeConfig config;
  add_models({model}, config);
  EXPECT_NO_THROW(config.validate());
}

TEST(ApiKeys, FindTheClient) {
  const TemporaryFolder folder;
  const std::string digest = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";  // of 0123456789abcdef
  write_file(folder / "keys.toml",
             "[a]\nkey = \"fedcba9876543210\"\nrequests = 2\n[b]\nsha256 = \"" + digest + "\"\nadmin = true\n");
  const ApiKeys keys(folder / "keys.toml");
  EXPECT_EQ(keys.find("fedcba9876543210").name, "a");
  EXPECT_EQ(keys.find("fedcba9876543210").requests, 2);
  EXPECT_TRUE(keys.find("0123456789abcdef").admin);
  EXPECT_THROW(keys.find(""), HttpError);
  EXPECT_THROW(keys.find("0123456789abcdeF"), HttpError);
  EXPECT_TRUE(ApiKeys().find("").admin);
  EXPECT_TRUE(keys.know("0123456789abcdef"));
  EXPECT_FALSE(keys.know("0123456789abcdeF"));
  EXPECT_TRUE(ApiKeys().know(""));
}

TEST(ApiKeys, AFileThatIsWrongIsNamed) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& text) {
    write_file(folder / "keys.toml", text);
    return message_of<ConfigError>([&] { ApiKeys keys(folder / "keys.toml"); });
  };
  EXPECT_THAT(message("[a]\nkey = \"short\"\n"), HasSubstr("a.key"));
  EXPECT_THAT(message("[a]\nsha256 = \"xyz\"\n"), HasSubstr("a.sha256"));
  EXPECT_THAT(message("[a]\n"), HasSubstr("needs key or sha256"));
  EXPECT_THAT(message(""), HasSubstr("has no keys"));
  const std::string digest = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";  // of 0123456789abcdef
  EXPECT_THAT(message("[a]\nkey = \"0123456789abcdef\"\n[b]\nsha256 = \"" + digest + "\"\nadmin = true\n"),
              HasSubstr("b: has the same key as a"));
}

}  // namespace
}  // namespace attune::serve

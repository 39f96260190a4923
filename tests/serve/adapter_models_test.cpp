// Adapters that are served as models over the weights of one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/random_adapter.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

class AdapterModels : public ::testing::Test {
 protected:
  AdapterModels() {
    write_small_language_model(folder_ / "base");
    write_small_model(folder_ / "base-en-de");
    write_random_adapter(folder_ / "legal", folder_ / "base", {.rank = 2, .targets = {"all"}}, 3);
    write_random_adapter(folder_ / "poems", folder_ / "base", {.rank = 3}, 4);
    write_random_adapter(folder_ / "medical", folder_ / "base-en-de", {.rank = 2, .targets = {"linear_1"}}, 5);
    config_.models["base"] = {.folder = path("base"), .adapters = {{"legal", path("legal")}, {"poems", path("poems")}}};
    config_.models["base-en-de"] = {.folder = path("base-en-de"), .adapters = {{"medical", path("medical")}}};
  }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  static std::string completion(TestService& service, const std::string& model) {
    const Answer answer = service.post(
        "/v1/completions", {{"model", model}, {"prompt", "the dog"}, {"temperature", 0}, {"max_tokens", 12}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json()["model"], model);
    return answer.json()["choices"][0]["text"];
  }

  TemporaryFolder folder_;
  ServeConfig config_;
};

TEST_F(AdapterModels, AreChosenByTheirNames) {
  TestService service(config_);
  for (const char* name : {"base", "legal", "poems"}) {
    const bool is_base = std::string_view(name) == "base";
    const auto alone =
        TextGenerator::load(folder_ / "base", {}, is_base ? AdapterFolders{} : AdapterFolders{{name, folder_ / name}});
    const GenerateOptions options{.sampling = SamplingConfig{.temperature = 0, .max_tokens = 12},
                                  .adapter = is_base ? "" : name};
    EXPECT_EQ(completion(service, name), alone.generate("the dog", options).text) << name;
  }
  EXPECT_NE(completion(service, "legal"), completion(service, "base"));
  const auto alone = Translator::load(folder_ / "base-en-de", {}, {{"medical", folder_ / "medical"}});
  for (const char* adapter : {"", "medical"}) {
    const Answer answer = service.post(
        "/v1/translate", {{"model", *adapter == '\0' ? "base-en-de" : adapter}, {"text", "The dog sleeps."}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(alone.translate("The dog sleeps.", {.adapter = adapter}).text()));
  }
}

TEST_F(AdapterModels, AreListedWithTheirModels) {
  TestService service(config_);
  const Json models = service.get("/v1/models").json()["data"];
  std::map<std::string, std::string> parents;
  for (const Json& model : models) parents[model["id"]] = model.value("parent", "");
  EXPECT_EQ(parents.at("legal"), "base");
  EXPECT_EQ(parents.at("medical"), "base-en-de");
  EXPECT_EQ(parents.at("base"), "");
  EXPECT_EQ(service.post("/v1/completions", {{"model", "unknown"}, {"prompt", "a"}}).status, 404);
  const Answer attention =
      service.post("/v1/attention", {{"model", "medical"}, {"text", "The dog."}, {"translation", "a"}});
  EXPECT_EQ(attention.status, 400);
  EXPECT_THAT(attention.body, HasSubstr("is an adapter of"));
}

TEST_F(AdapterModels, HaveTheirOwnChatTemplates) {
  const auto refusing = [](const std::string& why) { return "{{ raise_exception('" + why + "') }}"; };
  write_file(folder_ / "base" / "chat_template.jinja", refusing("of base"));
  write_file(folder_ / "legal" / "chat_template.jinja", refusing("of legal"));
  TestService service(config_);
  const auto refusal = [&](const char* model) {
    const Json messages = {{{"role", "user"}, {"content", "a"}}};
    return service.post("/v1/chat/completions", {{"model", model}, {"messages", messages}}).body;
  };
  EXPECT_THAT(refusal("base"), HasSubstr("of base"));
  EXPECT_THAT(refusal("poems"), HasSubstr("of base"));
  EXPECT_THAT(refusal("legal"), HasSubstr("of legal"));
  EXPECT_THAT(refusal("legal"), ::testing::Not(HasSubstr(path("legal"))));
}

TEST_F(AdapterModels, ThatDoNotFitAreRefused) {
  const auto refusal = [](const ServeConfig& config) {
    return message_of<Error>([&] { TestService service(config); });
  };
  ServeConfig twice = config_;
  twice.models["base-en-de"].adapters["legal"] = path("medical");
  EXPECT_THAT(refusal(twice), HasSubstr("models.base-en-de.adapters.legal: is an adapter of models.base too"));
  ServeConfig named = config_;
  named.models["base"].adapters["base-en-de"] = path("legal");
  EXPECT_THAT(refusal(named), HasSubstr("models.base.adapters.base-en-de: is the name of a model too"));
  ServeConfig spaced = config_;
  spaced.models["base"].adapters["a b"] = path("legal");
  EXPECT_THAT(refusal(spaced), HasSubstr("models.base.adapters.a b: a name has 1 to 128 letters"));
  ServeConfig other = config_;
  other.models["base-en-de"].adapters["medical"] = path("legal");
  EXPECT_THAT(refusal(other), HasSubstr("legal/adapter_model.safetensors: tensor"));
  ServeConfig classifier;
  write_small_classifier(folder_ / "labels");
  classifier.models["labels"] = {.folder = path("labels"), .adapters = {{"legal", path("legal")}}};
  EXPECT_THAT(refusal(classifier), HasSubstr("models.labels.adapters: are for translation models and language models"));
}

TEST_F(AdapterModels, AreReadFromTheFileAndTheCommandLine) {
  write_file(folder_ / "serve.toml",
             "[models.base]\nfolder = \"base\"\n[models.base.adapters]\nlegal = \"legal\"\npoems = \"poems\"\n");
  ServeConfig read;
  read_serve_config(folder_ / "serve.toml", read);
  EXPECT_EQ(read.models.at("base").adapters,
            (AdapterFolders{{"legal", folder_ / "legal"}, {"poems", folder_ / "poems"}}));
  add_adapters({"more=" + path("poems")}, read);
  EXPECT_EQ(read.models.at("base").adapters.at("more"), folder_ / "poems");
  EXPECT_THAT(message_of<ConfigError>([&] { add_adapters({"legal=x"}, read); }),
              HasSubstr("two adapters are named \"legal\""));
  EXPECT_THAT(message_of<ConfigError>([&] { add_adapters({"legal"}, read); }), HasSubstr("needs NAME=FOLDER"));
  EXPECT_THAT(message_of<ConfigError>([&] { add_adapters({"a=b"}, config_); }), HasSubstr("there are 2 models"));
  write_file(folder_ / "wrong.toml", "[models.base]\nfolder = \"base\"\nadapters = \"legal\"\n");
  EXPECT_THAT(message_of<ConfigError>([&] { read_serve_config(folder_ / "wrong.toml", read); }),
              HasSubstr("models.base.adapters: needs names and folders"));
  write_file(folder_ / "empty.toml", "[models.base]\nfolder = \"base\"\n[models.base.adapters]\nlegal = \"\"\n");
  ServeConfig empty;
  read_serve_config(folder_ / "empty.toml", empty);
  EXPECT_EQ(message_of<ConfigError>([&] { empty.validate(); }), "models.base.adapters.legal: is empty, needs a folder");
}

}  // namespace
}  // namespace attune::serve

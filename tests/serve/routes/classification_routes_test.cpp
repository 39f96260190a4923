// /predict and /rerank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "attune/inference/classifier.h"
#include "attune/io/json_file.h"
#include "attune/io/safetensors.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/paths.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;

// A BERT of the hub whose tokenizer has a form for pairs, with the first of its labels alone.
void write_small_reranker(const std::filesystem::path& folder) {
  const std::filesystem::path from = source_dir() / "tests/hub/models/bert-classifier";
  make_directories(folder);
  for (const char* file : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(from / file, folder / file);
  Json config = read_json_file(from / "config.json");
  config["id2label"] = {{"0", "LABEL_0"}};
  config["label2id"] = {{"LABEL_0", 0}};
  write_json_file(folder / "config.json", config);
  const SafetensorsReader reader(from / "model.safetensors");
  std::vector<NamedTensor> tensors;
  for (const std::string& name : reader.names()) {
    const Tensor tensor = reader.load(name);
    tensors.push_back({name, name.starts_with("classifier.") ? tensor.rows(0, 1) : tensor});
  }
  write_safetensors(folder / "model.safetensors", tensors);
}

class ClassificationRoutes : public ::testing::Test {
 protected:
  ClassificationRoutes() {
    write_small_reranker(folder_ / "ranker");
    ServeConfig config;
    config.models["ranker"].folder = (folder_ / "ranker").string();
    config.limits.text_bytes = 200;
    config.http.body_bytes = 400;
    service_.emplace(config);
  }
  Answer predict(const std::string& model, const Json& inputs, const Json& more = Json::object()) {
    Json body = {{"model", model}, {"inputs", inputs}};
    body.update(more);
    return service_->post("/predict", body);
  }
  Answer rerank(const Json& body) {
    Json whole = {{"model", "ranker"}, {"query", "What is a cat?"}};
    whole.update(body);
    return service_->post("/rerank", whole);
  }
  Classifier classifier(const std::string& name) const {
    return Classifier::load(name == "ranker" ? folder_ / name : service_->folder(name));
  }
  std::vector<double> logits(const std::vector<std::string>& texts) const {
    const Classifier ranker = classifier("ranker");
    std::vector<double> found;
    for (const std::string& text : texts) {
      const Encoding pair = ranker.encode(TextPair{"What is a cat?", text});
      found.push_back(ranker.logits(std::span(&pair, 1)).at(0).at(0));
    }
    return found;
  }

  TemporaryFolder folder_;
  std::optional<TestService> service_;
};

TEST_F(ClassificationRoutes, LabelsAreThoseOfTheClassifier) {
  const Classifier topics = classifier("topics");
  const Classification expected = topics.classify("the old dog");
  const Answer answer = predict("topics", "the old dog");
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(answer.json().size(), expected.labels.size());
  for (size_t i = 0; i < expected.labels.size(); ++i) {
    EXPECT_EQ(answer.json()[i]["label"], topics.labels()[static_cast<size_t>(expected.labels[i].label)]);
    EXPECT_NEAR(answer.json()[i]["score"].get<double>(), expected.labels[i].probability, 1e-6);
  }
  EXPECT_EQ(predict("topics", Json::array({"the old dog"})).json(), answer.json());
  EXPECT_EQ(predict("topics", Json::parse(R"([["the old dog"], ["a cat"]])")).json()[0], answer.json());
  const Json raw = predict("topics", "the old dog", {{"raw_scores", true}}).json();
  EXPECT_NEAR(std::exp(raw[0]["score"].get<double>() - raw[1]["score"].get<double>()),
              expected.labels[0].probability / expected.labels[1].probability, 1e-4);
}

TEST_F(ClassificationRoutes, PredictTakesPairs) {
  const std::vector<std::string> texts = {"A cat is a small animal.", "Dogs bark."};
  const std::vector<double> expected = logits(texts);
  const Json one = predict("ranker", {"What is a cat?", texts[0]}, {{"raw_scores", true}}).json();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0]["label"], "LABEL_0");
  EXPECT_NEAR(one[0]["score"].get<double>(), expected[0], 1e-5);
  Json inputs = Json::array();
  inputs.push_back(Json::array({"What is a cat?", texts[1]}));
  inputs.push_back(Json::array({"What is a cat?"}));
  inputs.push_back(Json::array({"What is a cat?", texts[0]}));
  const Json list = predict("ranker", inputs).json();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_NEAR(list[0][0]["score"].get<double>(), 1 / (1 + std::exp(-expected[1])), 1e-5);
  EXPECT_NEAR(list[2][0]["score"].get<double>(), 1 / (1 + std::exp(-expected[0])), 1e-5);
  EXPECT_GT(std::abs(expected[0] - expected[1]), 1e-3) << "or the test says nothing";
}

TEST_F(ClassificationRoutes, WrongInputsAreNamed) {
  for (const char* inputs : {"[]", "3", R"(["a", "b", "c"])", R"([["a"], "b"])", R"([["a", "b", "c"]])", R"([[]])",
                             R"([["a", 3]])", R"(["a", ["b"]])"}) {
    const Answer answer = predict("ranker", Json::parse(inputs));
    EXPECT_EQ(answer.status, 422) << inputs;
    EXPECT_THAT(answer.json()["error"].get<std::string>(), HasSubstr("inputs")) << inputs;
    EXPECT_EQ(answer.json()["error_type"], "Validation");
  }
  EXPECT_EQ(predict("topics", {"a", "b"}).status, 422) << "its tokenizer has no form for pairs";
  EXPECT_EQ(predict("ranker", {"a", std::string(201, 'b')}).status, 413);
}

TEST_F(ClassificationRoutes, RerankSortsTextsByTheirScores) {
  const std::vector<std::string> texts = {"Dogs bark.", "A cat is a small animal.", "", "What is a cat?"};
  const std::vector<double> expected = logits(texts);
  const Json ranks = rerank({{"texts", texts}, {"truncate", true}}).json();
  const Json raw = rerank({{"texts", texts}, {"raw_scores", true}, {"return_text", true}}).json();
  ASSERT_EQ(ranks.size(), 4u);
  ASSERT_EQ(raw.size(), 4u);
  std::set<size_t> seen;
  for (size_t i = 0; i < 4; ++i) {
    const auto index = ranks[i]["index"].get<size_t>();
    seen.insert(index);
    EXPECT_NEAR(ranks[i]["score"].get<double>(), 1 / (1 + std::exp(-expected[index])), 1e-5);
    EXPECT_FALSE(ranks[i].contains("text"));
    EXPECT_EQ(raw[i]["index"], index);
    EXPECT_NEAR(raw[i]["score"].get<double>(), expected[index], 1e-4);
    EXPECT_EQ(raw[i]["text"], texts[index]);
    if (i > 0) {
      EXPECT_GE(ranks[i - 1]["score"], ranks[i]["score"]);
    }
  }
  EXPECT_EQ(seen.size(), 4u);
}

TEST_F(ClassificationRoutes, RerankNamesWhatIsWrong) {
  const auto expect_error = [&](const Json& body, int status, const char* what) {
    const Answer answer = rerank(body);
    EXPECT_EQ(answer.status, status) << answer.body;
    EXPECT_THAT(answer.json()["error"].get<std::string>(), HasSubstr(what));
    EXPECT_EQ(answer.json()["error_type"], "Validation");
  };
  expect_error({{"texts", Json::array()}}, 422, "texts");
  expect_error({{"texts", "a"}}, 422, "texts: needs a list");
  expect_error({{"texts", {"a"}}, {"query", nullptr}}, 422, "query: is missing");
  expect_error({{"texts", {"a"}}, {"model", "topics"}}, 422, "topics has 3 labels");
  expect_error({{"texts", {"a"}}, {"model", "lm"}}, 422, "model");
  expect_error({{"texts", {"a"}}, {"top_n", 3}}, 422, "top_n");
  expect_error({{"texts", {"a", std::string(201, 'b')}}}, 413, "texts: has 201 bytes");
  expect_error({{"texts", {"a", "b", "c"}}, {"query", std::string(150, 'q')}}, 413, "for each of 3 texts");
}

TEST_F(ClassificationRoutes, TextsThatAreTooLongCanBeRefused) {
  service_.reset();
  ServeConfig config;
  config.models["ranker"].folder = (folder_ / "ranker").string();
  service_.emplace(config);
  std::string text;
  for (int i = 0; i < 300; ++i) text += "cat ";
  const auto expect_refused = [](const Answer& answer, const char* what) {
    EXPECT_EQ(answer.status, 413) << answer.body;
    EXPECT_THAT(answer.json()["error"].get<std::string>(), ::testing::StartsWith(what));
    EXPECT_EQ(answer.json()["error_type"], "Validation");
  };
  const Json no = {{"truncate", false}};
  EXPECT_EQ(predict("ranker", text).status, 200);
  EXPECT_EQ(predict("ranker", "a cat", no).status, 200);
  expect_refused(predict("ranker", text, no), "inputs: text 1 has ");
  expect_refused(predict("topics", text, no), "inputs: text 1 has ");
  expect_refused(predict("ranker", {"a cat", text}, no), "inputs: text 1 has ");
  expect_refused(rerank({{"texts", {"a", text}}, {"truncate", false}}), "texts: text 2 has ");
  EXPECT_EQ(rerank({{"texts", {"a", text}}}).status, 200);
  EXPECT_EQ(rerank({{"texts", {"a"}}, {"truncation_direction", "Left"}}).status, 422);
}

// Of a tokenizer that puts nothing around a text, as those that were trained without a post-processor.
TEST_F(ClassificationRoutes, ATextWithoutTokensIsRefused) {
  service_.reset();
  const std::filesystem::path folder = folder_ / "bare";
  write_small_reranker(folder);
  Json tokenizer = read_json_file(folder / "tokenizer.json");
  tokenizer["post_processor"] = nullptr;
  write_json_file(folder / "tokenizer.json", tokenizer);
  ServeConfig config;
  config.models["bare"].folder = folder.string();
  service_.emplace(config);
  EXPECT_EQ(predict("bare", "a cat").status, 200);
  const Answer answer = predict("bare", Json::parse(R"([["a cat"], [" "]])"));
  EXPECT_EQ(answer.status, 422) << answer.body;
  EXPECT_THAT(answer.json()["error"].get<std::string>(), HasSubstr("inputs: text 2 has no tokens"));
}

TEST_F(ClassificationRoutes, InfoSaysWhatRanks) {
  const Json info = service_->get("/info").json();
  for (const Json& model : info["models"]) {
    const bool ranks = model["model_type"].contains("reranker");
    EXPECT_EQ(ranks, model["model_id"] == "ranker");
  }
}

}  // namespace
}  // namespace attune::serve

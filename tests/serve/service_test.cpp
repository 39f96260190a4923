#include "attune/serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "attune/base/random.h"
#include "attune/inference/classifier.h"
#include "attune/inference/text_generator.h"
#include "attune/inference/translator.h"
#include "attune/io/json_file.h"
#include "attune/io/text_style_file.h"
#include "attune/serve/routes/routes.h"
#include "attune/tensor/device_error.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/errors.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const Answer& answer) {
  const Json json = answer.json();
  return json["error"].is_string() ? json["error"].get<std::string>() : json["error"]["message"].get<std::string>();
}

TEST(Service, SaysHowItIs) {
  TestService t;
  EXPECT_EQ(t.get("/health").json(), (Json{{"status", "ok"}}));
  EXPECT_EQ(t.get("/ready").status, 200);
  EXPECT_EQ(t.get("/v1/models").json()["data"].size(), 3u);
  t.service->drain();
  EXPECT_EQ(t.get("/ready").status, 503);
  EXPECT_EQ(t.get("/health").status, 200);
  const Answer refused = t.post("/v1/completions", {{"model", "lm"}, {"prompt", "a"}});
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST(Service, WhatIsNotLoadedIsUnavailable) {
  TestService t({}, false);
  EXPECT_EQ(t.get("/ready").status, 503);
  EXPECT_EQ(t.post("/v1/completions", {{"model", "lm"}, {"prompt", "a"}}).status, 503);
  EXPECT_EQ(t.post("/translate", {{"q", "a"}, {"source", "en"}, {"target", "de"}}).status, 503);
  for (const char* path : {"/v1/models", "/v1/models/lm", "/languages", "/frontend/settings", "/info"}) {
    const Answer answer = t.get(path);
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.header("Retry-After"), "1") << path;
  }
}

TEST(Service, AModelHasAPath) {
  ServeConfig config;
  TestService first(config, false);
  config.models["org/lm"].folder = first.folder("lm").string();
  TestService t(config);
  const Json models = t.get("/v1/models").json()["data"];
  EXPECT_EQ(t.get("/v1/models/lm").json()["id"], "lm");
  for (const char* path : {"/v1/models/org/lm", "/v1/models/org%2Flm"})
    EXPECT_EQ(t.get(path).json()["id"], "org/lm") << path;
  EXPECT_EQ(t.get("/v1/models/none").json()["error"]["code"], "model_not_found");
  EXPECT_EQ(t.get("/v1/models/").status, 404);
  EXPECT_EQ(t.get("/v1/models/%2").status, 400);
  t.wait_until_idle();
  EXPECT_THAT(t.get("/metrics").body, HasSubstr("path=\"/v1/models/{id}\",status=\"200\"} 3\n"));
}

TEST(Service, WrongRequestsAreNamed) {
  TestService t;
  EXPECT_EQ(t.get("/nothing").status, 404);
  const Answer other_method = t.get("/v1/completions");
  EXPECT_EQ(other_method.status, 405);
  EXPECT_EQ(other_method.header("Allow"), "POST");
  EXPECT_EQ(t.post("/health", {}).header("Allow"), "GET, HEAD");
  EXPECT_EQ(t.ask(post_request("/v1/completions", "{", "application/json")).status, 400);
  EXPECT_EQ(t.ask(post_request("/v1/completions", "[]", "application/json")).status, 400);
  EXPECT_EQ(t.ask(post_request("/v1/completions", "{}", "text/xml")).status, 415);
  const Answer unknown = t.post("/v1/completions", {{"model", "none"}, {"prompt", "a"}});
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json()["error"]["code"], "model_not_found");
  const Answer other = t.post("/v1/completions", {{"model", "en-de"}, {"prompt", "a"}});
  EXPECT_EQ(other.status, 400);
  EXPECT_EQ(error_of(other), "model: \"en-de\" is no language model");
  const Answer none = t.post("/v1/embeddings", {{"input", "a"}, {"user", "b"}});
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(error_of(none), "no model of embeddings is served here");
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"temperature", -1},
                                                 {"temperature", "hot"},
                                                 {"n", 0},
                                                 {"max_tokens", 1 << 20},
                                                 {"stop", Json::array({""})},
                                                 {"seed", -1},
                                                 {"suffix", "x"},
                                                 {"logit_bias", {{"1", 2}}},
                                                 {"no_such_field", 1},
                                                 {"stream_options", {{"include_usage", true}}}}) {
    Json body = {{"model", "lm"}, {"prompt", "a"}};
    body[field] = value;
    const Answer answer = t.post("/v1/completions", body);
    EXPECT_EQ(answer.status, 400) << field;
    EXPECT_EQ(answer.json()["error"]["param"], field);
    EXPECT_THAT(error_of(answer), HasSubstr(field));
  }
  const Answer tools =
      t.post("/v1/chat/completions", {{"model", "lm"}, {"messages", Json::array()}, {"tools", Json::array({1})}});
  EXPECT_EQ(tools.status, 400);
}

TEST(Service, TextThatIsTooLongIsRefused) {
  ServeConfig config;
  config.limits.text_bytes = 100;
  config.limits.texts = 3;
  TestService t(config);
  EXPECT_EQ(t.post("/v1/completions", {{"model", "lm"}, {"prompt", std::string(101, 'a')}}).status, 413);
  EXPECT_EQ(t.post("/v1/completions", {{"model", "lm"}, {"prompt", std::string(90, 'a')}}).status, 400);  // the context
  EXPECT_EQ(t.post("/translate", {{"q", "a.\nb.\nc.\nd."}, {"source", "en"}, {"target", "de"}}).status, 413);
  EXPECT_EQ(t.post("/v1/completions", {{"model", "lm"}, {"prompt", {"a", "b", "c", "d"}}}).status, 400);
}

TEST(Service, CompletionsAreThoseOfTheGenerator) {
  TestService t;
  const TextGenerator generator = TextGenerator::load(t.folder("lm"));
  SamplingConfig sampling = generator.sampling();
  sampling.seed = 7;
  sampling.max_tokens = 20;
  const std::vector<std::string> prompts = {"the ", "a dog"};
  const std::vector<GeneratedText> expected =
      generator.generate(prompts, {.sampling = sampling, .stop = {"e"}, .samples = 2});
  const Answer answer =
      t.post("/v1/completions",
             {{"model", "lm"}, {"prompt", prompts}, {"max_tokens", 20}, {"seed", 7}, {"n", 2}, {"stop", "e"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choices = answer.json()["choices"];
  ASSERT_EQ(choices.size(), 4u);
  int64_t tokens = 0;
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(choices[i]["index"], i);
    EXPECT_EQ(choices[i]["text"], expected[i].text);
    EXPECT_EQ(choices[i]["finish_reason"], expected[i].finish_reason == FinishReason::stop ? "stop" : "length");
    tokens += static_cast<int64_t>(expected[i].tokens.size());
  }
  EXPECT_EQ(answer.json()["usage"]["completion_tokens"], tokens);
}

TEST(Service, AStreamHasTheSameTextInPieces) {
  TestService t;
  Json body = {{"model", "lm"}, {"prompt", "the "}, {"max_tokens", 20}, {"seed", 7}, {"n", 2}, {"logprobs", 2}};
  const Json whole = t.post("/v1/completions", body).json();
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const Answer answer = t.post("/v1/completions", body);
  EXPECT_EQ(answer.status, 200);
  std::vector<std::string> events = answer.events();
  ASSERT_GT(events.size(), 3u);
  EXPECT_EQ(events.back(), "[DONE]");
  events.pop_back();
  EXPECT_EQ(Json::parse(events.back())["usage"], whole["usage"]);
  events.pop_back();
  std::vector<std::string> texts(2);
  std::vector<std::vector<double>> scores(2);
  for (const std::string& event : events) {
    const Json choice = Json::parse(event)["choices"][0];
    const auto index = choice["index"].get<size_t>();
    texts[index] += choice["text"].get<std::string>();
    for (const Json& score : choice["logprobs"]["token_logprobs"]) scores[index].push_back(score.get<double>());
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    EXPECT_EQ(Json(scores[i]), whole["choices"][i]["logprobs"]["token_logprobs"]);
  }
}

// The other sentences and texts of the request need not be computed.
TEST(Service, AnErrorEndsTheRestOfItsRequest) {
  const auto exchange = std::make_shared<Exchange>(HttpRequest{.method = "POST", .path = "/v1/translate"});
  Call call(exchange, {});
  const auto unwanted = call.unwanted();
  EXPECT_FALSE(*unwanted);
  call.fail(std::make_exception_ptr(HttpError(413, "a sentence is too long")));
  EXPECT_TRUE(*unwanted);
  EXPECT_FALSE(*exchange->gone()) << "the client waits for the error";
  EXPECT_EQ(wait_for_answer(*exchange).status, 413);
}

TEST(Service, PrecisionIsThatOfTheConfiguration) {
  ServeConfig config;
  for (const char* name : {"en-de", "topics"}) config.models[name].precision = PrecisionChoice::bfloat16;
  TestService t(config);
  const std::string text = small_text(1).front();
  const Json translated = t.post("/v1/translate", {{"text", text}}).json();
  const double score = translated["translations"][0]["sentences"][0]["n_best"][0]["score"];
  const Json labels = t.post("/predict", {{"model", "topics"}, {"inputs", text}, {"raw_scores", true}}).json();
  const double logit = labels[0]["score"];
  for (const auto precision : {ProductPrecision::bfloat16, ProductPrecision::float32}) {
    const bool same = precision == ProductPrecision::bfloat16;
    const Translator translator = Translator::load(t.folder("en-de"), {.precision = precision});
    EXPECT_EQ(std::abs(score - translator.translate(text).n_best.front().score) < 1e-6, same);
    const Classifier topics = Classifier::load(t.folder("topics"), precision);
    const Encoding encoding = topics.encode(text);
    EXPECT_EQ(std::abs(logit - std::ranges::max(topics.logits(std::span(&encoding, 1)).front())) < 1e-6, same);
  }
}

TEST(Service, AModelWhoseOwnBeamIsAboveTheLimitIsNotServed) {
  TestService t({.limits = {.beam_size = 5}}, false);
  const std::filesystem::path file = t.folder("en-de") / "generation_config.json";
  Json generation = read_json_file(file);
  const auto set_beam = [&](int64_t beam) {
    generation["beam_size"] = beam;
    write_json_file(file, generation);
  };
  set_beam(6);
  EXPECT_THAT(message_of<ConfigError>([&] { t.service->load(); }),
              HasSubstr("models.en-de: its generation_config.json has beam_size = 6, limits.beam_size allows up to 5"));
  set_beam(5);
  t.service->load();
  set_beam(10);  // a size of the file that a reload sees, whatever the clock of the file system
  t.service->reload();
  EXPECT_THAT(t.log(), ::testing::Contains(HasSubstr("limits.beam_size allows up to 5")));
  const Json alternatives = {{"q", "the old dog"}, {"source", "en"}, {"target", "de"}, {"alternatives", 4}};
  EXPECT_EQ(t.post("/translate", alternatives).status, 200);
}

// Requests that come at random moments have the answers that they have alone.
TEST(Service, RandomArrivalsChangeNoAnswer) {
  TestService t;
  Random random(11);
  const std::vector<std::string> sentences = small_text(40);
  std::vector<HttpRequest> requests;
  for (size_t i = 0; i < 40; ++i) {
    if (i % 2 == 0) {
      requests.push_back(
          post_request("/v1/translate", Json{{"text", {sentences[i], sentences[i + 1]}}, {"n_best", 2}}.dump()));
    } else {
      const Json body = {{"model", "lm"}, {"prompt", sentences[i].substr(0, 5)}, {"seed", i}, {"max_tokens", 1 + i}};
      requests.push_back(post_request("/v1/completions", body.dump()));
    }
  }
  const auto shown = [](const Answer& answer) {
    const Json json = answer.json();
    return json.contains("choices") ? json["choices"].dump() : json["translations"].dump();
  };
  std::vector<std::string> alone;
  for (const HttpRequest& request : requests) alone.push_back(shown(t.ask(request)));
  std::vector<std::shared_ptr<Exchange>> exchanges;
  for (const HttpRequest& request : requests) {
    exchanges.push_back(t.send(request));
    if (random.below(2) == 0) std::this_thread::sleep_for(std::chrono::milliseconds(random.below(10)));
    if (random.below(5) == 0) t.send(request)->abandon();  // and one whose client goes away
  }
  for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(shown(wait_for_answer(*exchanges[i])), alone[i]) << i;
}

TEST(Service, AClientThatGoesAwayLeavesNothingBehind) {
  TestService t;
  std::string text;
  for (const std::string& sentence : small_text(200)) text += sentence + "\n";
  const auto exchange = t.send(post_request("/v1/translate", Json{{"text", text}, {"beam_size", 8}}.dump()));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  exchange->abandon();
  t.wait_until_idle();
  EXPECT_EQ(t.service->open_calls(), 0);
  const auto model = t.service->models().find("en-de");
  EXPECT_EQ(model->load().running + model->load().waiting, 0);
  EXPECT_EQ(model->admission().requests(), 0);
}

TEST(Service, AFullQueueRefuses) {
  ServeConfig config;
  config.limits.requests = 1;
  TestService t(config);
  auto model = t.service->models().find("en-de");
  const auto place = model->admission().enter({});
  const Answer refused = t.post("/translate", {{"q", "a"}, {"source", "en"}, {"target", "de"}});
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST(Service, ADeadlineEndsARequestWithWhatItHas) {
  TestService t;
  HttpRequest request = post_request("/v1/completions", Json{{"prompt", "a"}, {"max_tokens", 30}}.dump());
  request.headers.emplace_back("x-timeout", "0.000001");
  const Answer answer = t.ask(request);
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.json()["choices"][0]["finish_reason"], "length");
  request.headers.back().second = "soon";
  EXPECT_EQ(t.ask(request).status, 400);
}

TEST(Service, KeysSayWhoMayAsk) {
  TemporaryFolder folder;
  write_file(folder / "keys.toml",
             "[alice]\nkey = \"0123456789abcdef\"\nadmin = true\n[bob]\nkey = \"fedcba9876543210\"\nrequests = 1\n");
  ServeConfig config;
  config.security.api_keys = (folder / "keys.toml").string();
  TestService t(config);
  EXPECT_EQ(t.get("/health").status, 200);
  EXPECT_EQ(t.get("/v1/models").status, 401);
  EXPECT_FALSE(t.service->knows_client({.headers = {{"authorization", "Bearer 0123456789abcdeg"}}}));
  EXPECT_TRUE(t.service->knows_client({.headers = {{"authorization", "Bearer fedcba9876543210"}}}));
  const auto ask = [&](const std::string& path, const std::string& key) {
    return t.ask({.method = "POST", .path = path, .headers = {{"authorization", "Bearer " + key}}, .body = "{}"});
  };
  const Answer reload = ask("/admin/reload", "0123456789abcdef");
  EXPECT_EQ(reload.status, 202);
  EXPECT_THAT(reload.json().at("status").get<std::string>(), HasSubstr("will be loaded again"));
  EXPECT_EQ(ask("/admin/reload", "fedcba9876543210").status, 403);
  EXPECT_EQ(ask("/admin/reload", "0123456789abcdeg").status, 401);
  Json body = {{"q", "a"}, {"source", "en"}, {"target", "de"}};
  EXPECT_EQ(t.post("/translate", body).status, 401);
  body["api_key"] = "fedcba9876543210";
  EXPECT_EQ(t.post("/translate", body).status, 200);
  body["api_key"] = "";  // counts as none: the header's is taken, whose scheme has either case
  HttpRequest with_header = post_request("/translate", body.dump());
  with_header.headers.emplace_back("authorization", "bearer fedcba9876543210");
  EXPECT_EQ(t.ask(with_header).status, 200);
  t.wait_until_idle();
  for (const std::string& line : t.log()) EXPECT_THAT(line, Not(HasSubstr("fedcba9876543210")));
}

TEST(Service, TheIdOfARequestIsKept) {
  TestService t;
  const Answer given = t.ask({.method = "GET", .path = "/health", .headers = {{"x-request-id", "abc-1"}}});
  EXPECT_EQ(given.header("X-Request-Id"), "abc-1");
  EXPECT_NE(t.get("/health").header("X-Request-Id"), "");
  const Answer bad = t.ask({.method = "GET", .path = "/health", .headers = {{"x-request-id", "a b"}}});
  EXPECT_NE(bad.header("X-Request-Id"), "a b");
  t.wait_until_idle();
  EXPECT_THAT(t.log(), ::testing::Contains(HasSubstr("\"id\":\"abc-1\"")));
}

TEST(Service, OriginsThatAreNotNamedGetNoHeader) {
  ServeConfig config;
  config.security.cors_origins = {"https://a.example"};
  TestService t(config);
  const auto ask = [&](const std::string& method, const std::string& origin) {
    return t.ask({.method = method, .path = "/health", .headers = {{"origin", origin}}});
  };
  EXPECT_EQ(ask("GET", "https://a.example").header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(ask("GET", "https://b.example").header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(ask("GET", "https://b.example").status, 403);
  EXPECT_EQ(ask("OPTIONS", "https://a.example").status, 204);
  EXPECT_EQ(ask("OPTIONS", "https://b.example").status, 405);
  const Answer preflight = t.ask({.method = "OPTIONS",
                                  .path = "/v1/completions",
                                  .headers = {{"origin", "https://a.example"},
                                              {"access-control-request-headers", "authorization,x-stainless-lang"}}});
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "authorization,x-stainless-lang");
}

TEST(Service, TheLogHasNoTextsOfRequestsThatAreRefused) {
  TestService t;
  EXPECT_EQ(
      t.ask(post_request("/translate", "q=Salt & my secret&source=en&target=de", "application/x-www-form-urlencoded"))
          .status,
      400);
  EXPECT_EQ(t.post("/v1/translate", {{"model", "en-de"}, {"text", "a"}, {"required", {"secret \xE6\xBC\xA2"}}}).status,
            400);
  EXPECT_EQ(t.post("/v1/completions", {{"model", "lm"}, {"prompt", "secret"}, {"top_p", 0}}).status, 400);
  t.wait_until_idle();
  for (const std::string& line : t.log()) EXPECT_THAT(line, Not(HasSubstr("secret")));
  EXPECT_THAT(t.log(), ::testing::Contains(HasSubstr("\"error\":\"top_p\"")));
}

TEST(Service, TextsOfAnotherStyleAreSaidOnceInTheLog) {
  TestService t({}, false);
  write_source_text(t.folder("en-de"), {.punctuation = Punctuation::separate});
  t.service->load();
  const Json body = {{"q", small_text(1).front() + "."}, {"source", "en"}, {"target", "de"}};
  for (int i = 0; i < 2; ++i) EXPECT_EQ(t.post("/translate", body).status, 200);
  t.wait_until_idle();
  const auto says = HasSubstr(
      "\"warning\":\"the input is not written as the model's training text: it has punctuation "
      "attached to words, the model's");
  EXPECT_THAT(t.log(), ::testing::Contains(says).Times(1));
}

TEST(Service, ARefusalOfTheConnectionHasAnIdAndALine) {
  TestService t;
  HttpRequest request{.method = "POST", .path = "/translate", .headers = {{"x-request-id", "abc-2"}}};
  const HttpResponse answer = t.service->refuse(request, HttpError(413, "the body has more than 9 bytes"));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(Json::parse(answer.body), (Json{{"error", "the body has more than 9 bytes"}})) << "as /translate has it";
  EXPECT_THAT(answer.headers, ::testing::Contains(std::pair<std::string, std::string>("X-Request-Id", "abc-2")));
  EXPECT_THAT(t.log(), ::testing::Contains(::testing::AllOf(HasSubstr("\"id\":\"abc-2\""), HasSubstr("413"))));
  EXPECT_EQ(t.service->refuse({}, HttpError(431, "x")).status, 431);
  EXPECT_EQ(t.service->open_calls(), 0);
}

TEST(Service, PagesThatMayAskSeeARefusalOfTheConnection) {
  ServeConfig config;
  config.security.cors_origins = {"https://a.example"};
  TestService t(config);
  const auto refused = [&](const std::string& origin) {
    const HttpRequest request{.method = "POST", .path = "/translate", .headers = {{"origin", origin}}};
    const HttpResponse answer = t.service->refuse(request, HttpError(413, "the body has more than 9 bytes"));
    return Answer{.status = answer.status, .headers = answer.headers, .body = answer.body};
  };
  const Answer named = refused("https://a.example"), other = refused("https://b.example");
  EXPECT_EQ(named.status, 413);
  EXPECT_EQ(named.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(named.header("Access-Control-Expose-Headers"), "X-Request-Id, Retry-After");
  EXPECT_EQ(named.header("Vary"), "Origin");
  EXPECT_EQ(other.status, 413);
  EXPECT_EQ(other.header("Access-Control-Allow-Origin"), "");
}

TEST(Service, ADeviceWhoseMemoryIsFullIsUnavailable) {
  const auto exchange = std::make_shared<Exchange>(HttpRequest{.method = "POST", .path = "/v1/embeddings"});
  Call(exchange, {}).fail(std::make_exception_ptr(DeviceOutOfMemory("device cuda:0: 4096 bytes do not fit")));
  const Answer answer = wait_for_answer(*exchange);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_THAT(answer.body, Not(HasSubstr("cuda")));
}

}  // namespace
}  // namespace attune::serve

// What language models answer: scores of tokens, and what is wrong by its name.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "attune/inference/text_generator.h"
#include "attune/models/build.h"
#include "attune/text/sentence_piece_tokenizer.h"
#include "tests/serve/routes/byte_tokens.h"
#include "tests/serve/service_fixture.h"
#include "tests/support/paths.h"

namespace attune::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TransformerConfig config_for(const Tokenizer& tokenizer) {
  TransformerConfig config;
  config.architecture = Architecture::decoder_lm;
  config.vocab = tokenizer.vocab_size();
  config.d_model = 32;
  config.heads = 4;
  config.layers = 1;
  config.d_ff = 64;
  config.positions = RotaryOptions{};
  config.context_length = 48;
  return config;
}

// A model whose tokens begin with spaces, as those of SentencePiece do.
void write_model_of_pieces(const std::filesystem::path& folder, TextUnit unit = TextUnit::line) {
  SentencePieceOptions options;
  options.vocab_size = 200;
  const auto tokenizer = train_sentence_piece(small_text(), options);
  save_model_folder(folder, *build_decoder_lm(config_for(*tokenizer), 1), *tokenizer, {.max_tokens = 20}, unit);
}

// A model that writes characters as runs of bytes.
void write_model_of_bytes(const std::filesystem::path& folder, const Tokenizer& tokenizer) {
  save_model_folder(folder, *build_decoder_lm(config_for(tokenizer), 1), tokenizer, {.max_tokens = 20}, TextUnit::line);
}

std::string joined_tokens(const Json& scores) {
  std::string text;
  for (const Json& token : scores["tokens"]) text += token.get<std::string>();
  return text;
}

class CompletionRoutes : public ::testing::Test {
 protected:
  CompletionRoutes() {
    write_model_of_pieces(folder_ / "pieces");
    write_model_of_bytes(folder_ / "runs", *write_tokenizer_with_bytes(folder_ / "tokenizer"));
    ServeConfig config;
    config.models["runs"].folder = (folder_ / "runs").string();
    config.models["pieces"].folder = (folder_ / "pieces").string();
    config.models["bytes"].folder = (source_dir() / "tests/hub/models/gpt2").string();
    config.models["tight"] = {.folder = (folder_ / "pieces").string(), .cache_bytes = 4096};
    service_.emplace(config);
  }
  // The first choice.
  Json completed(const std::string& model, int64_t seed) {
    const Answer answer = service_->post("/v1/completions", {{"model", model},
                                                             {"prompt", "the dog"},
                                                             {"seed", seed},
                                                             {"temperature", 1.5},
                                                             {"max_tokens", 20},
                                                             {"logprobs", 5}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["choices"][0];
  }

  TemporaryFolder folder_;
  std::optional<TestService> service_;
};

TEST_F(CompletionRoutes, TokensGiveTheText) {
  for (const char* model : {"pieces", "bytes", "lm", "runs"}) {
    bool has_spaces = false;
    for (int64_t seed = 1; seed <= 5; ++seed) {
      const Json choice = completed(model, seed);
      const std::string joined = joined_tokens(choice["logprobs"]);
      if (choice["finish_reason"] == "stop") continue;  // the last token is no text
      EXPECT_EQ(choice["text"].get<std::string>(), joined) << model;
      has_spaces = has_spaces || joined.find(' ') != std::string::npos;
    }
    EXPECT_TRUE(has_spaces) << model << ": or the test says nothing";
  }
}

// A text may end within a run of bytes; then its last token has what they are.
TEST_F(CompletionRoutes, TokensOfAStreamGiveTheTextToo) {
  int64_t with_half_characters = 0;
  Json body = {{"model", "runs"}, {"prompt", "the dog"}, {"temperature", 1.5}, {"max_tokens", 20}, {"logprobs", 1}};
  body["n"] = 16;
  for (int64_t seed = 1; seed <= 4; ++seed) {
    body["seed"] = seed;
    body["stream"] = false;
    const Json whole = service_->post("/v1/completions", body).json()["choices"];
    body["stream"] = true;
    std::vector<std::string> events = service_->post("/v1/completions", body).events();
    ASSERT_EQ(events.back(), "[DONE]");
    events.pop_back();
    std::vector<std::string> texts(16);
    std::vector<Json> tokens(16, Json::array());
    for (const std::string& event : events) {
      const Json choice = Json::parse(event)["choices"][0];
      const auto index = choice["index"].get<size_t>();
      texts[index] += choice["text"].get<std::string>();
      if (choice["logprobs"].is_null()) continue;
      for (const Json& token : choice["logprobs"]["tokens"]) tokens[index].push_back(token);
    }
    ASSERT_EQ(whole.size(), 16u);
    for (size_t i = 0; i < 16; ++i) {
      const auto text = whole[i]["text"].get<std::string>();
      EXPECT_EQ(texts[i], text);
      EXPECT_EQ(tokens[i], whole[i]["logprobs"]["tokens"]);
      if (whole[i]["finish_reason"] == "stop") continue;
      EXPECT_EQ(joined_tokens(whole[i]["logprobs"]), text);
      with_half_characters += text.ends_with("\uFFFD");
    }
  }
  EXPECT_GT(with_half_characters, 0) << "or the test says little";
}

TEST_F(CompletionRoutes, OffsetsCountCharacters) {
  for (const char* model : {"bytes", "runs"}) {
    for (int64_t seed = 1; seed <= 3; ++seed) {
      const Json scores = completed(model, seed)["logprobs"];
      int64_t characters = 0;
      for (size_t i = 0; i < scores["tokens"].size(); ++i) {
        EXPECT_EQ(scores["text_offset"][i], characters) << model;
        const auto token = scores["tokens"][i].get<std::string>();
        characters += std::ranges::count_if(token, [](char c) { return (c & 0xC0) != 0x80; });
      }
    }
  }
}

TEST_F(CompletionRoutes, TheTokenThatWasTakenIsAmongTheLikeliest) {
  const Json scores = completed("pieces", 1)["logprobs"];
  size_t more = 0;
  for (size_t i = 0; i < scores["tokens"].size(); ++i) {
    EXPECT_TRUE(scores["top_logprobs"][i].contains(scores["tokens"][i].get<std::string>())) << i;
    more += scores["top_logprobs"][i].size() == 6;
  }
  EXPECT_GT(more, 0u) << "or the test says nothing";
}

TEST_F(CompletionRoutes, EqualPromptsHaveTextsOfTheirOwnUnlessThereIsASeed) {
  const auto texts = [&](const Json& more) {
    Json body = {{"model", "pieces"}, {"prompt", {"the dog", "the dog", "the dog"}}, {"temperature", 1.5}};
    body.update(more);
    std::set<std::string> found;
    const Json answer = service_->post("/v1/completions", body).json();
    for (const Json& choice : answer["choices"]) found.insert(choice["text"].get<std::string>());
    return found.size();
  };
  EXPECT_EQ(texts(Json::object()), 3u);
  EXPECT_EQ(texts({{"seed", 3}}), 1u);
}

// The tokenizer drops the second space and, of lines, their ends.
TEST_F(CompletionRoutes, AnEchoIsThePromptAsItWas) {
  write_model_of_pieces(folder_ / "lines", TextUnit::stream);
  ServeConfig config;
  config.models["lines"].folder = (folder_ / "lines").string();
  config.models["pieces"].folder = (folder_ / "pieces").string();
  TestService service(config);
  const auto echo = [&](const char* model, const Json& prompt) {
    const Answer answer = service.post(
        "/v1/completions", {{"model", model}, {"prompt", prompt}, {"echo", true}, {"max_tokens", 1}, {"seed", 1}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["choices"].back()["text"].get<std::string>();
  };
  EXPECT_THAT(echo("pieces", "the  dog\nthe cat"), StartsWith("the  dog\nthe cat"));
  EXPECT_THAT(echo("lines", {"a", "the  dog\nthe cat"}), StartsWith("the  dog\nthe cat"));
  const std::string lines = "the dog\nthe cat";
  EXPECT_THAT(echo("lines", TextGenerator::load(folder_ / "lines").encode_prompt(lines)), StartsWith(lines));
}

TEST_F(CompletionRoutes, LogProbabilitiesOfAWholeAnswerAreBounded) {
  const Json body = {{"model", "pieces"},
                     {"prompt", std::vector<std::string>(1000, "the dog")},
                     {"max_tokens", 4096},
                     {"logprobs", 5}};
  const Answer refused = service_->post("/v1/completions", body);
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "logprobs");
  EXPECT_THAT(refused.body,
              HasSubstr("1000 texts of up to 4096 tokens with 6 numbers each are too many: at most 1048576"));
}

// What a connection throws when it hears of the answer stands for memory that is lacking.
TEST_F(CompletionRoutes, AnAnswerThatFailsEndsNoOther) {
  const Json body = {{"model", "pieces"}, {"prompt", "the dog"}, {"max_tokens", 2}};
  service_->service->handle(std::make_shared<Exchange>(post_request("/v1/completions", body.dump()),
                                                       [] { throw std::runtime_error("no memory"); }));
  service_->wait_until_idle();
  EXPECT_EQ(service_->post("/v1/completions", body).status, 200);
}

TEST_F(CompletionRoutes, WhatIsWrongIsSaid) {
  const auto refusal = [&](const Json& more) {
    Json body = {{"model", "lm"}, {"prompt", "the "}};
    body.update(more);
    const Answer answer = service_->post("/v1/completions", body);
    EXPECT_EQ(answer.status, 400);
    return answer.json()["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(refusal({{"prompt", std::vector<std::string>(300, "a")}, {"n", 4}}),
            "n: 4 texts for each of 300 prompts are 1200, at most 1024 are accepted");
  EXPECT_EQ(refusal({{"best_of", 2}, {"n", 3}}), "best_of: needs the same number as n, 3");
  EXPECT_EQ(refusal({{"prompt", {1, -1}}, {"n", 1}}), "prompt: needs token ids, whole numbers from 0 to 2147483647");
}

class ChatRoutes : public ::testing::Test {
 protected:
  ChatRoutes() : service_({}, false) {
    write_file(service_.folder("lm") / "chat_template.jinja",
               "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
               "{{ m.content }}{% endfor %}");
    service_.service->load();
  }
  Answer chat(const Json& more) {
    Json body = {
        {"model", "lm"}, {"messages", {{{"role", "user"}, {"content", "the "}}}}, {"max_tokens", 8}, {"seed", 7}};
    body.update(more);
    return service_.post("/v1/chat/completions", body);
  }

  TestService service_;
};

// Clients join what the events say of a text.
TEST_F(ChatRoutes, AStreamSaysWhoSpeaksOnceForEachText) {
  const Json whole = chat({{"n", 2}}).json()["choices"];
  std::vector<std::string> events = chat({{"n", 2}, {"stream", true}}).events();
  ASSERT_EQ(events.back(), "[DONE]");
  events.pop_back();
  std::vector<std::string> roles(2), texts(2);
  for (size_t i = 0; i < events.size(); ++i) {
    const Json choice = Json::parse(events[i])["choices"][0];
    const auto index = choice["index"].get<size_t>();
    EXPECT_TRUE(i >= 2 || index == i) << "the first events are in order";
    roles[index] += choice["delta"].value("role", "");
    texts[index] += choice["delta"]["content"].get<std::string>();
  }
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(roles[i], "assistant");
    EXPECT_EQ(texts[i], whole[i]["message"]["content"]);
    EXPECT_EQ(whole[i]["message"]["role"], "assistant");
  }
}

TEST_F(ChatRoutes, LogProbabilitiesAreBoundedToo) {
  const Answer refused = chat({{"n", 16}, {"max_tokens", 4096}, {"logprobs", true}, {"top_logprobs", 20}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "logprobs");
}

TEST_F(ChatRoutes, MessagesAreLimited) {
  Json many = Json::array();
  for (int i = 0; i < 2000; ++i) many.push_back({{"role", "user"}, {"content", "a"}});
  const Answer refused = chat({{"messages", many}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.body, HasSubstr("messages: has 2000 messages, at most 1024 are accepted"));
}

TEST_F(ChatRoutes, ATemplateThatRefusesNamesMessagesAndNoFolder) {
  const Answer refused = chat({{"messages", {{{"role", "system"}, {"content", "a"}}}}});
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.json()["error"]["param"], "messages");
  EXPECT_THAT(refused.body, HasSubstr("no system"));
  EXPECT_THAT(refused.body, Not(HasSubstr(service_.folder("lm").string())));
}

TEST_F(CompletionRoutes, OfAlikeTokensTheLikelierIsShown) {
  const Answer answer = service_->post(
      "/v1/completions",
      {{"model", "bytes"}, {"prompt", "the dog"}, {"temperature", 0}, {"max_tokens", 30}, {"logprobs", 5}});
  const Json scores = answer.json()["choices"][0]["logprobs"];
  for (size_t i = 0; i < scores["tokens"].size(); ++i) {
    const auto token = scores["tokens"][i].get<std::string>();
    EXPECT_EQ(scores["top_logprobs"][i][token], scores["token_logprobs"][i]) << i;
  }
}

TEST_F(CompletionRoutes, WhatIsTooLargeNamesItsField) {
  const auto error = [&](const char* model, const char* path, const Json& more, int status) {
    Json body = {{"model", model}};
    body.update(more);
    const Answer answer = service_->post(path, body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return answer.json()["error"];
  };
  const Json prompt = error("lm", "/v1/completions", {{"prompt", std::string(100, 'a')}}, 400);
  EXPECT_EQ(prompt["param"], "prompt");
  EXPECT_EQ(prompt["code"], "context_length_exceeded");
  EXPECT_THAT(prompt["message"].get<std::string>(), Not(HasSubstr("slide")));
  EXPECT_EQ(error("lm", "/v1/completions", {{"prompt", Json::array({1 << 20})}}, 400)["param"], "prompt");
  EXPECT_EQ(error("lm", "/v1/completions", {{"prompt", "a"}, {"top_p", 0}}, 400)["param"], "top_p");
  const Json cache = error("tight", "/v1/completions", {{"prompt", "the dog"}, {"max_tokens", 40}}, 413);
  EXPECT_EQ(cache["param"], "max_tokens");
  EXPECT_THAT(cache["message"].get<std::string>(), HasSubstr("cache_bytes = 4096"));
}

TEST_F(CompletionRoutes, WhatIsWrongWithATranslationNamesItsField) {
  const auto param = [&](const Json& more, int status) {
    Json body = {{"model", "en-de"}, {"text", "the dog"}};
    body.update(more);
    const Answer answer = service_->post("/v1/translate", body);
    EXPECT_EQ(answer.status, status) << answer.body;
    return answer.json()["error"]["param"];
  };
  std::string words;
  for (int i = 0; i < 2000; ++i) words += "dog ";
  EXPECT_EQ(param({{"text", words}}, 413), "text");
  EXPECT_EQ(param({{"banned", Json::array({""})}}, 400), "banned");
  EXPECT_EQ(param({{"required", std::vector<std::string>(100, "dog")}}, 400), "required");
  EXPECT_EQ(param({{"prefix", words}}, 400), "prefix");
  EXPECT_EQ(param({{"beam_size", 2}, {"n_best", 100}}, 400), "n_best");
  EXPECT_EQ(param({{"text", words}, {"stream", true}}, 413), "text") << "an error before the stream has its status";
  const Answer libre = service_->post("/translate", {{"q", words}, {"source", "en"}, {"target", "de"}});
  EXPECT_EQ(libre.status, 413);
  EXPECT_THAT(libre.json()["error"].get<std::string>(), StartsWith("q: text 1, sentence 1: has "));
}

}  // namespace
}  // namespace attune::serve

// OpenAI's API for language models.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>

#include "attune/base/cut_text.h"
#include "attune/base/json_fields.h"
#include "attune/inference/text_limits.h"
#include "attune/models/decoder_lm.h"
#include "attune/serve/http/http_error.h"
#include "attune/serve/routes/generation_answer.h"
#include "attune/serve/routes/routes.h"
#include "attune/text/tokenizer.h"

namespace attune::serve {
namespace {

using Prompts = std::vector<std::vector<int32_t>>;

// Fields that both kinds of completion have.
struct CompletionRequest {
  std::string model;
  GenerateOptions options = {};
  SamplingConfig sampling = {};
  GenerationForm form = {};
  int64_t samples = 1;
  std::optional<double> timeout = {};
};

uint64_t random_seed() {
  thread_local std::mt19937_64 random(std::random_device{}());
  return random() >> 1;  // below 2^63
}

// `sampling` holds the model's own settings.
void read_sampling(RequestFields& fields, const RequestLimits& limits, CompletionRequest& request) {
  SamplingConfig& sampling = request.sampling;
  constexpr double kMostTemperature = 100;
  constexpr int64_t kLargest = INT64_MAX;
  sampling.temperature = fields.number("temperature", 0, kMostTemperature).value_or(sampling.temperature);
  sampling.top_p = fields.number("top_p", 0, 1).value_or(sampling.top_p);
  sampling.top_k = fields.integer("top_k", 0, kLargest).value_or(sampling.top_k);
  sampling.min_p = fields.number("min_p", 0, 1).value_or(sampling.min_p);
  sampling.repetition_penalty = fields.number("repetition_penalty", 0.01, 100).value_or(sampling.repetition_penalty);
  const auto seed = fields.integer("seed", 0, kLargest);
  sampling.seed = seed ? static_cast<uint64_t>(*seed) : random_seed();
  request.form.seeded = seed.has_value();
  sampling.slide = false;
  request.samples = fields.integer("n", 1, limits.samples).value_or(1);
  request.options.stop = fields.texts("stop", limits.stop_strings);
  for (const std::string& stop : request.options.stop)
    if (stop.empty() || stop.size() > 4096) refuse_field("stop", "needs strings of 1 to 4096 bytes");
  request.form.stream = fields.flag("stream").value_or(false);
  if (const Json& options = fields.value("stream_options"); !options.is_null()) {
    if (!request.form.stream) refuse_field("stream_options", "needs stream");
    if (!options.is_object()) refuse_field("stream_options", "needs an object");
    for (const auto& [name, value] : options.items()) {
      if (name != "include_usage" || !value.is_boolean())
        refuse_field("stream_options", "needs include_usage, true or false, and nothing else");
      request.form.usage_event = value.get<bool>();
    }
  }
  request.timeout = fields.number("timeout", 0.001, 1e9);
  fields.refuse("frequency_penalty", 0);
  fields.refuse("presence_penalty", 0);
  fields.refuse("logit_bias", Json::object());
  fields.ignore({"user", "metadata", "store", "service_tier", "safety_identifier"});
}

int64_t tokens_in(const Prompts& prompts) {
  int64_t tokens = 0;
  for (const auto& prompt : prompts) tokens += static_cast<int64_t>(prompt.size());
  return tokens;
}

void check_prompts(const Prompts& prompts, int64_t samples, const RequestLimits& limits, const char* field) {
  check_tokens(field, tokens_in(prompts), limits.tokens);
  const int64_t texts = std::ssize(prompts) * samples, most = std::max(limits.samples, limits.texts);
  if (texts > most)
    refuse_field("n", fmt::format("{} texts for each of {} prompts are {}, at most {} are accepted", samples,
                                  prompts.size(), texts, most));
}

// Throws HttpError (400) for too many log probabilities. Those of a whole answer are in memory together; a stream sends
// each one as it comes.
void check_log_probabilities(const CompletionRequest& request, const Prompts& prompts, int64_t max_tokens,
                             const RequestLimits& limits) {
  if (request.form.stream || request.form.likeliest < 0) return;
  const int64_t texts = static_cast<int64_t>(prompts.size()) * request.samples, of_token = 1 + request.form.likeliest;
  if (max_tokens > limits.log_probabilities / (texts * of_token))
    refuse_field("logprobs",
                 fmt::format("{} texts of up to {} tokens with {} numbers each are too many: at most {} are "
                             "accepted without stream (limits.log_probabilities)",
                             texts, max_tokens, of_token, limits.log_probabilities));
}

// Returns work(), a prompt. One that is too long is refused as by OpenAI's API.
template <class Work>
std::vector<int32_t> prompt_of(const char* field, Work&& work) {
  try {
    return work();
  } catch (const TooManyTokens& error) {
    throw HttpError(400,
                    fmt::format("{}: has {} tokens, the model's context has {}", field, error.tokens(), error.most()),
                    field, "context_length_exceeded");
  }
}

// A string, strings, ids, or lists of ids, as a list.
Json list_of_prompts(const Json& json) {
  const bool is_one = json.is_string() || (json.is_array() && !json.empty() && json[0].is_number_integer());
  return is_one ? Json::array({json}) : json;
}

Prompts encode_prompts(const Service& service, const Json& list, const GenerationRequests& requests) {
  const RequestLimits& limits = service.config().limits;
  if (!list.is_array() || list.empty()) refuse_field("prompt", "needs a string, a list of strings, or token ids");
  if (list.size() > static_cast<size_t>(limits.texts))
    refuse_field("prompt", fmt::format("has {} texts, at most {} are accepted", list.size(), limits.texts));
  Prompts prompts;
  for (const Json& one : list) {
    if (one.is_string()) {
      const auto& text = one.get_ref<const std::string&>();
      service.check_text_bytes("prompt", text);
      prompts.push_back(prompt_of("prompt", [&] { return requests.encode(text, "prompt"); }));
      continue;
    }
    if (!one.is_array()) refuse_field("prompt", "needs a string, a list of strings, or token ids");
    std::vector<int32_t> ids;
    for (const Json& id : one) {
      if (!id.is_number_integer() || id < 0 || id > INT32_MAX)
        refuse_field("prompt", fmt::format("needs token ids, whole numbers from 0 to {}", INT32_MAX));
      ids.push_back(id.get<int32_t>());
    }
    prompts.push_back(prompt_of("prompt", [&] { return requests.checked(std::move(ids), "prompt"); }));
  }
  return prompts;
}

std::string text_of_ids(const TextGenerator& generator, std::span<const int32_t> ids) {
  const Tokenizer& tokenizer = generator.tokenizer();
  if (!generator.eos_is_line_end()) return tokenizer.decode(ids);
  std::string text;
  for (;;) {
    const auto line = static_cast<size_t>(std::find(ids.begin(), ids.end(), tokenizer.eos_id()) - ids.begin());
    text += tokenizer.decode(ids.first(line));
    if (line == ids.size()) return text;
    text += "\n";
    ids = ids.subspan(line + 1);
  }
}

// The prompts as they were given; of ids, their text.
std::vector<std::string> texts_of(const TextGenerator& generator, const Json& list, const Prompts& prompts) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < prompts.size(); ++i)
    texts.push_back(list[i].is_string() ? list[i].get<std::string>() : text_of_ids(generator, prompts[i]));
  return texts;
}

// The content of a message: a string, or parts of text.
std::string content_of(const Json& content) {
  if (content.is_string()) return content.get<std::string>();
  if (content.is_null()) return "";
  if (!content.is_array()) refuse_field("messages", "content needs a string or a list of parts");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("type") || part["type"] != "text" || !part.contains("text") ||
        !part["text"].is_string())
      refuse_field("messages", "only parts of type \"text\" are supported");
    text += part["text"].get<std::string>();
  }
  return text;
}

Json read_messages(const Service& service, const Json& given) {
  if (!given.is_array() || given.empty()) refuse_field("messages", "needs a list of messages");
  if (const int64_t most = service.config().limits.texts; std::ssize(given) > most)
    refuse_field("messages", fmt::format("has {} messages, at most {} are accepted", given.size(), most));
  Json messages = Json::array();
  for (const Json& message : given) {
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      refuse_field("messages", "each needs a role");
    for (const auto& [name, value] : message.items())
      if (name != "role" && name != "content" && name != "name" && !value.is_null())
        refuse_field("messages", "\"" + cut_text(name, 100) + "\" is not supported");
    const Json content = message.value("content", Json());
    messages.push_back({{"role", message["role"]}, {"content", content_of(content)}});
    service.check_text_bytes("messages", messages.back()["content"].get_ref<const std::string&>());
  }
  return messages;
}

// What the model's template makes of the messages. If it refuses them, the error begins with "FOLDER/FILE:LINE: ". The
// folder is left out: it is nothing for clients.
std::string chat_text(const ServedModel& model, const Json& messages) {
  try {
    return model.chat_template()->render_json(messages.dump());
  } catch (const DataError& error) {
    std::string_view what = error.what();
    what.remove_prefix(what.substr(0, what.find(": ")).rfind('/') + 1);  // 0 where there is none
    refuse_field("messages", std::string(what));
  }
}

int64_t most_tokens(RequestFields& fields, const char* name, const RequestLimits& limits, int64_t otherwise) {
  return std::min(fields.integer(name, 1, limits.max_tokens).value_or(otherwise), limits.max_tokens);
}

CompletionRequest begin(Service& service, Call& call, RequestFields& fields, bool chat) {
  CompletionRequest request{.model = fields.text("model").value_or("")};
  request.form.chat = chat;
  const ServedModel& model = service.enter(call, request.model, ModelKind::language_model);
  request.sampling = model.generator()->sampling();
  request.options.batch_texts = model.config().batch;
  request.options.adapter = model.adapter();
  read_sampling(fields, service.config().limits, request);
  service.set_deadline(call, request.timeout);
  return request;
}

}  // namespace

void answer_completions(Service& service, const std::shared_ptr<Call>& call) {
  constexpr int64_t kDefaultTokens = 16;  // as OpenAI's
  const RequestLimits& limits = service.config().limits;
  RequestFields fields(call->request());
  CompletionRequest request = begin(service, *call, fields, false);
  request.sampling.max_tokens = most_tokens(fields, "max_tokens", limits, kDefaultTokens);
  request.form.likeliest = fields.integer("logprobs", 0, 5).value_or(-1);
  const bool echo = fields.flag("echo").value_or(false);
  if (echo && request.form.likeliest >= 0) refuse_field("echo", "is not supported together with logprobs");
  const auto best_of = fields.integer("best_of", 1, limits.samples);
  if (best_of && *best_of != request.samples)
    refuse_field("best_of", fmt::format("needs the same number as n, {}", request.samples));
  fields.refuse("suffix", "");
  const Json list = list_of_prompts(fields.value("prompt"));
  fields.finish();
  request.options.sampling = request.sampling;
  const GenerationRequests requests(*call->model->generator(), request.options);
  Prompts prompts = encode_prompts(service, list, requests);
  check_prompts(prompts, request.samples, limits, "prompt");
  check_log_probabilities(request, prompts, request.sampling.max_tokens, limits);
  std::vector<std::string> before;
  if (echo) before = texts_of(*call->model->generator(), list, prompts);
  std::make_shared<GenerationAnswer>(service, call, requests, request.form)
      ->start(std::move(prompts), request.samples, before);
}

void answer_chat_completions(Service& service, const std::shared_ptr<Call>& call) {
  const RequestLimits& limits = service.config().limits;
  RequestFields fields(call->request());
  CompletionRequest request = begin(service, *call, fields, true);
  const ServedModel& model = *call->model;
  if (model.chat_template() == nullptr) refuse_field("model", "\"" + model.name() + "\" has no chat template");
  const int64_t otherwise = most_tokens(fields, "max_tokens", limits, request.sampling.max_tokens);
  request.sampling.max_tokens = most_tokens(fields, "max_completion_tokens", limits, otherwise);
  const bool scores = fields.flag("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, 20);
  if (top && !scores) refuse_field("top_logprobs", "needs logprobs");
  request.form.likeliest = scores ? top.value_or(0) : -1;
  for (const char* name : {"tools", "tool_choice", "functions", "function_call", "parallel_tool_calls", "modalities",
                           "audio", "prediction", "reasoning_effort", "web_search_options", "verbosity"})
    fields.refuse(name);
  fields.refuse("response_format", Json{{"type", "text"}});
  const Json messages = read_messages(service, fields.value("messages"));
  fields.finish();
  request.options.sampling = request.sampling;
  request.options.prompts_have_special_tokens = true;  // the template writes them
  GenerationRequests requests(*model.generator(), request.options);
  const std::string text = chat_text(model, messages);
  Prompts prompts = {prompt_of("messages", [&] { return requests.encode(text, "messages"); })};
  check_prompts(prompts, request.samples, limits, "messages");
  const int64_t longest = request.sampling.longest_continuation(tokens_in(prompts));
  requests.sampling().config.max_tokens = std::min(longest, limits.max_tokens);
  check_log_probabilities(request, prompts, requests.sampling().config.max_tokens, limits);
  std::make_shared<GenerationAnswer>(service, call, requests, request.form)
      ->start(std::move(prompts), request.samples, {});
}

}  // namespace attune::serve

#include "attune/serve/routes/generation_answer.h"

#include <utility>

#include "attune/base/json_fields.h"
#include "attune/serve/clock.h"

namespace attune::serve {
namespace {

const char* reason_of(FinishReason reason) {
  return reason == FinishReason::eos || reason == FinishReason::stop ? "stop" : "length";
}

}  // namespace

GenerationAnswer::GenerationAnswer(Service& service, std::shared_ptr<Call> call, GenerationRequests requests,
                                   const GenerationForm& form)
    : service_(service),
      call_(std::move(call)),
      model_(*call_->model),
      requests_(std::move(requests)),
      form_(form),
      created_(seconds_since_1970()) {
  requests_.sampling().likeliest = form_.likeliest;
}

void GenerationAnswer::start(std::vector<std::vector<int32_t>> prompts, int64_t samples,
                             const std::vector<std::string>& echo) {
  texts_.resize(prompts.size() * static_cast<size_t>(samples));
  reasons_.resize(texts_.size());
  requests_left_ = prompts.size();
  std::vector<DecodingRequest> requests;
  for (size_t p = 0; p < prompts.size(); ++p) {
    const size_t first = p * static_cast<size_t>(samples);
    tokens_in_ += static_cast<int64_t>(prompts[p].size());
    for (size_t i = first; i < first + static_cast<size_t>(samples); ++i) {
      Text& text = texts_[i];
      text.prompt = prompts[p];
      if (!echo.empty()) text.added = text.whole = echo[p];
      if (form_.likeliest >= 0)
        text.scores.emplace(model_.generator()->tokenizer(), text.prompt, model_.generator()->eos_is_line_end());
      text.growing = std::make_unique<GrowingText>(requests_.text(text.prompt, [&text](std::string_view added) {
        text.added += added;
        text.whole += added;
      }));
    }
    // Without a seed, equal prompts get different texts.
    DecodingRequest request =
        requests_.request(std::move(prompts[p]), form_.seeded ? 0 : static_cast<int64_t>(first), samples);
    request.cancel = call_->unwanted();
    request.deadline = call_->deadline;
    request.on_token = [self = shared_from_this(), first](const TokenEvent& event) {
      return self->take(first + static_cast<size_t>(event.sample), event);
    };
    request.on_done = [self = shared_from_this(), first](DecodingResult&& result) {
      self->finish(first, std::move(result));
    };
    requests.push_back(std::move(request));
  }
  call_->count_tokens(tokens_in_, 0);
  if (form_.stream) call_->begin_events();
  if (form_.stream && form_.chat) send_roles();
  model_.decoder().add(call_->client.name, std::move(requests));
}

// Sends who speaks, once for each text: clients join what the events of a text say.
void GenerationAnswer::send_roles() {
  for (size_t i = 0; i < texts_.size(); ++i) {
    Json json = head();
    json["choices"] = Json::array({{{"index", i},
                                    {"delta", {{"role", "assistant"}, {"content", ""}}},
                                    {"logprobs", nullptr},
                                    {"finish_reason", nullptr}}});
    if (form_.usage_event) json["usage"] = nullptr;
    call_->event(json);
  }
}

void GenerationAnswer::first_token() {
  if (begun_.exchange(true)) return;
  first_token_time_ = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(first_token_time_ - call_->arrival()).count();
  service_.metrics().observe_seconds("attune_time_to_first_token_seconds", metric_label("model", model_.name()),
                                     seconds);
}

// Whether there is something to send. Tokens wait until what they add to the text is certain.
bool GenerationAnswer::has_event(const Text& text) {
  return !text.added.empty() && (!text.scores || text.scores->are_certain());
}

bool GenerationAnswer::take(size_t index, const TokenEvent& event) {
  first_token();
  ++tokens_out_;
  Text& text = texts_[index];
  if (text.scores && event.scores != nullptr) text.scores->add(event);
  const bool goes_on = text.growing->push(event);
  const bool ended = event.end.has_value() || !goes_on;
  if (ended) {
    reasons_[index] = !goes_on ? "stop" : reason_of(*event.end);
    if (text.scores) text.scores->finish();
  }
  if (form_.stream && (ended || has_event(text))) send(text, index, ended ? reasons_[index].c_str() : nullptr);
  return goes_on;
}

void GenerationAnswer::finish(size_t first, DecodingResult&& result) {
  try {
    if (result.error) {
      failed_ = true;
      call_->fail(result.error, "max_tokens");
    }
    for (size_t s = 0; s < result.samples.size(); ++s) {
      const size_t index = first + s;
      texts_[index].growing->finish();
      if (texts_[index].scores) texts_[index].scores->finish();
      if (reasons_[index].empty()) reasons_[index] = reason_of(result.samples[s].finish_reason);
      if (form_.stream && !failed_ && !texts_[index].ended) send(texts_[index], index, reasons_[index].c_str());
    }
    if (--requests_left_ == 0) complete();
  } catch (...) {
    failed_ = true;
    call_->fail(std::current_exception());
  }
}

Json GenerationAnswer::head() const {
  const char* object = form_.chat ? (form_.stream ? "chat.completion.chunk" : "chat.completion") : "text_completion";
  return {{"id", (form_.chat ? "chatcmpl-" : "cmpl-") + call_->id()},
          {"object", object},
          {"created", created_},
          {"model", model_.name()}};
}

Json GenerationAnswer::usage() const {
  return {{"prompt_tokens", tokens_in_},
          {"completion_tokens", tokens_out_.load()},
          {"total_tokens", tokens_in_ + tokens_out_}};
}

Json GenerationAnswer::choice(Text& text, size_t index, const char* reason) const {
  Json choice = {{"index", index}};
  const std::string& shown = form_.stream ? text.added : text.whole;
  if (!form_.chat) {
    choice["text"] = shown;
  } else if (form_.stream) {
    choice["delta"] = Json{{"content", shown}};
  } else {
    choice["message"] = {{"role", "assistant"}, {"content", shown}};
  }
  choice["logprobs"] = text.scores ? text.scores->take(form_.chat) : Json(nullptr);
  choice["finish_reason"] = reason == nullptr ? Json(nullptr) : Json(reason);
  return choice;
}

void GenerationAnswer::send(Text& text, size_t index, const char* reason) {
  Json json = head();
  json["choices"] = Json::array({choice(text, index, reason)});
  if (form_.usage_event) json["usage"] = nullptr;
  text.added.clear();
  text.ended = reason != nullptr;
  call_->event(json);
}

void GenerationAnswer::complete() {
  call_->count_tokens(0, tokens_out_);
  if (tokens_out_ > 1) {
    const auto since = std::chrono::steady_clock::now() - first_token_time_;
    service_.metrics().observe_seconds(
        "attune_time_per_token_seconds", metric_label("model", model_.name()),
        std::chrono::duration<double>(since).count() / static_cast<double>(tokens_out_ - 1));
  }
  if (failed_) return;
  if (form_.stream) {
    if (form_.usage_event) {
      Json last = head();
      last["choices"] = Json::array();
      last["usage"] = usage();
      call_->event(last);
    }
    return call_->end_events();
  }
  Json answer = head();
  answer["choices"] = Json::array();
  for (size_t i = 0; i < texts_.size(); ++i)
    answer["choices"].push_back(choice(texts_[i], i, reasons_[i].empty() ? "length" : reasons_[i].c_str()));
  answer["usage"] = usage();
  call_->respond(answer);
}

}  // namespace attune::serve

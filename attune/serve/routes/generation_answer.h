#pragma once
// The continuations of a request's prompts, as OpenAI's API writes them: whole or as they grow.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attune/base/json.h"
#include "attune/inference/generation_requests.h"
#include "attune/serve/routes/scored_tokens.h"
#include "attune/serve/service.h"

namespace attune::serve {

/// What the answer looks like.
struct GenerationForm {
  bool chat = false;         // chat.completion, else text_completion
  bool stream = false;       // events, else one answer
  bool usage_event = false;  // of a stream: counts of tokens at the end
  bool seeded = false;       // the request has a seed: a text depends on it and on its prompt alone
  int64_t likeliest = -1;    // log probabilities with so many alternatives; -1: none
};

/// Thread-safe where the scheduler calls it. It shares its call, and lives as long as there are requests.
class GenerationAnswer : public std::enable_shared_from_this<GenerationAnswer> {
 public:
  GenerationAnswer(Service& service, std::shared_ptr<Call> call, GenerationRequests requests,
                   const GenerationForm& form);

  /// `samples` continuations for each prompt; `echo` are the texts that come first in each, or none. Hands the requests
  /// to the model's worker.
  void start(std::vector<std::vector<int32_t>> prompts, int64_t samples, const std::vector<std::string>& echo);

 private:
  struct Text {
    std::vector<int32_t> prompt;
    std::string added = {};  // the part of the text that is not yet sent
    std::string whole = {};  // all of it
    bool ended = false;      // its last event is sent
    std::unique_ptr<GrowingText> growing = {};
    std::optional<ScoredTokens> scores = {};  // of tokens that are not yet sent, or of all, where they are wanted
  };
  void send_roles();
  void first_token();
  bool take(size_t index, const TokenEvent& event);
  static bool has_event(const Text& text);
  void finish(size_t first, DecodingResult&& result);
  void send(Text& text, size_t index, const char* reason);
  void complete();
  Json head() const;
  Json choice(Text& text, size_t index, const char* reason) const;
  Json usage() const;

  Service& service_;
  const std::shared_ptr<Call> call_;
  const ServedModel& model_;
  GenerationRequests requests_;
  const GenerationForm form_;
  const int64_t created_;
  std::vector<Text> texts_;
  std::vector<std::string> reasons_;  // of each text, why it ended
  std::atomic<size_t> requests_left_{0};
  std::atomic<bool> begun_{false}, failed_{false};
  std::atomic<int64_t> tokens_out_{0};
  int64_t tokens_in_ = 0;
  std::chrono::steady_clock::time_point first_token_time_{};
};

}  // namespace attune::serve

#pragma once
// Requests to the scheduler, and their results.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "attune/inference/decoding/beam_search.h"
#include "attune/inference/decoding/decoding_model.h"
#include "attune/inference/decoding/finish_reason.h"
#include "attune/models/sampling_config.h"
#include "attune/nn/adapters/adapter_rows.h"

namespace attune {

/// The likeliest outputs, see beam_search().
struct BeamSearchRequest {
  explicit BeamSearchRequest(BeamSearchOptions o = {}, SentenceConstraints c = {})
      : BeamSearchRequest(std::make_shared<const BeamSearchOptions>(std::move(o)), std::move(c)) {}
  explicit BeamSearchRequest(std::shared_ptr<const BeamSearchOptions> o, SentenceConstraints c = {})
      : options(std::move(o)), constraints(std::move(c)) {}

  std::shared_ptr<const BeamSearchOptions> options;  // shared by the sentences of a call; not null
  SentenceConstraints constraints;                   // who makes a request calls check_not_banned() for them
};

/// Texts that are drawn token by token, see token_distribution(). The random numbers of text i are a function of the
/// seed, of first_sample + i and of the token's position.
struct SamplingRequest {
  SamplingConfig config = {};
  std::vector<int32_t> never_drawn = {};  // beside the config's suppressed_tokens
  std::vector<int32_t> eos = {};          // each of them ends a text
  int64_t samples = 1;                    // texts
  uint64_t first_sample = 0;
  /// A smaller model of the same tokens that proposes up to draft_tokens at once, see speculative_strategy.h. Null:
  /// none.
  std::shared_ptr<const DecodingModel> draft = {};
  int64_t draft_tokens = 4;
  /// How many of the likeliest tokens TokenEvent::scores has; -1: there are no scores. Not with a draft.
  int64_t likeliest = -1;
  /// Only ids below it are among the likeliest: those of the tokenizer, where the model's vocabulary is padded.
  int64_t named_tokens = std::numeric_limits<int64_t>::max();

  bool ends_with(int32_t token) const { return std::find(eos.begin(), eos.end(), token) != eos.end(); }
};

/// What the model itself says of a token that was drawn, before SamplingConfig changes the distribution.
struct TokenScores {
  double log_probability = 0;
  std::vector<std::pair<int32_t, double>> likeliest = {};  // tokens with their log probabilities, best first
};

struct TokenEvent {
  int64_t sample;                       // counted from 0
  int32_t token;                        // the next one of this text
  std::optional<FinishReason> end;      // why the text ends with it; none: it goes on
  const TokenScores* scores = nullptr;  // on request; gone after the call
};

struct SampledTokens {
  std::vector<int32_t> tokens;  // without the prompt
  FinishReason finish_reason = FinishReason::length;
};

struct DecodingResult {
  uint64_t id = 0;
  std::exception_ptr error = {};               // then there is nothing else
  std::optional<FinishReason> cut_short = {};  // interrupted or deadline, if that ended the request
  std::vector<Hypothesis> hypotheses = {};     // of a beam search, best first; cut short: those that were finished
  std::vector<SampledTokens> samples = {};     // of sampling
};

/// The most that is decoded together in one lane. A single request may be larger. This changes speed and memory only:
/// no result depends on it.
struct BatchLimits {
  int64_t sequences = 64;        // sentences, or texts
  int64_t source_tokens = 8192;  // of all sources together
  int64_t lanes = 0;             // that share the requests, each with a thread of its own; 0: one for each thread
};

struct DecodingRequest {
  std::vector<int32_t> source = {};  // for the encoder; empty where the model has none
  std::vector<int32_t> prompt = {};  // what the output continues, at least one token: bos for a translation
  std::variant<BeamSearchRequest, SamplingRequest> search = {};
  int32_t adapter = kNoAdapter;  // of those that the model has to choose from; a draft has none
  BatchLimits batch = {};
  /// true: enters before requests that wait, even if a batch is full. Memory and the rows of a step still limit it, and
  /// so does a waiting request that others have overtaken too often, see Scheduler.
  bool at_once = false;

  /// Once true, the request ends with what it has so far.
  std::shared_ptr<const std::atomic<bool>> cancel = {};
  /// The same, for a flag that outlives the request.
  const std::atomic<bool>* interrupt = nullptr;
  /// The time at which the request ends with what it has so far.
  std::optional<std::chrono::steady_clock::time_point> deadline = {};
  /// Called with each token of sampling; false ends the text. An exception that it throws is the request's error.
  std::function<bool(const TokenEvent&)> on_token = {};
  /// Called once, with the result. Must not throw.
  std::function<void(DecodingResult&&)> on_done = {};
};

}  // namespace attune

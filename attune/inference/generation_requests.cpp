#include "attune/inference/generation_requests.h"

#include "attune/base/check.h"
#include "attune/base/fail.h"
#include "attune/inference/adapter_choice.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/decoding/speculative_strategy.h"
#include "attune/inference/text_limits.h"
#include "attune/models/decoder_lm.h"
#include "attune/text/tokenizer.h"

namespace attune {
namespace {

SamplingRequest sampling_request(const TextGenerator& generator, const GenerateOptions& options) {
  const Tokenizer& tokenizer = generator.tokenizer();
  SamplingRequest request{.config = options.sampling.value_or(generator.sampling()),
                          .draft_tokens = options.draft_tokens,
                          .named_tokens = tokenizer.vocab_size()};
  const SamplingConfig& sampling = request.config;
  request.eos.assign(sampling.eos_tokens.begin(), sampling.eos_tokens.end());
  if (request.eos.empty() && !generator.eos_is_line_end()) request.eos = {tokenizer.eos_id()};
  if (!sampling.special_tokens)
    for (const int32_t id : {tokenizer.bos_id(), tokenizer.pad_id(), tokenizer.unk_id()})
      if (id >= 0 && id != tokenizer.eos_id() && !request.ends_with(id)) request.never_drawn.push_back(id);
  // The model's vocabulary may be padded: these have no text.
  for (int64_t id = tokenizer.vocab_size(); id < generator.model().config().vocab; ++id)
    request.never_drawn.push_back(static_cast<int32_t>(id));
  if (options.draft != nullptr)
    request.draft = std::make_shared<LanguageDecodingModel>(
        std::shared_ptr<const DecoderLm>(std::shared_ptr<const DecoderLm>(), options.draft));
  return request;
}

void check_options(const GenerateOptions& options) {
  check_range<int64_t>("samples", options.samples, 1, 1 << 16);
  check_range<int64_t>("batch_texts", options.batch_texts, 1, 1 << 16);
  check_range<int64_t>("draft_tokens", options.draft_tokens, 1, kMostDraftTokens);
}

}  // namespace

GenerationRequests::GenerationRequests(const TextGenerator& generator, const GenerateOptions& options)
    : generator_(generator),
      options_(options),
      adapter_(adapter_number(generator.adapters(), options.adapter)),
      sampling_(sampling_request(generator, options)) {
  check_options(options);
  sampling_.config.validate();
}

std::vector<int32_t> GenerationRequests::encode(const std::string& prompt, const std::string& name) const {
  check_text(prompt, name);
  std::vector<int32_t> ids;
  try {
    ids = generator_.encode_prompt(prompt, options_.prompts_have_special_tokens);
  } catch (const DataError& error) {
    fail<DataError>("{}: {}", name, error.what());
  }
  return checked(std::move(ids), name);
}

std::vector<int32_t> GenerationRequests::checked(std::vector<int32_t> prompt, const std::string& name) const {
  if (prompt.empty()) fail<DataError>("{}: has no tokens", name);
  for (const int32_t id : prompt)
    if (id < 0 || id >= generator_.tokenizer().vocab_size())
      fail<DataError>("{}: has token {}, the model has {}", name, id, generator_.tokenizer().vocab_size());
  const SamplingConfig& sampling = sampling_.config;
  if (sampling.max_tokens == 0 && static_cast<int64_t>(prompt.size()) >= sampling.max_length)
    fail<DataError>(
        "{}: has {} tokens, but max_length = {} limits the prompt and its continuation together; set max_tokens to "
        "limit the continuation alone",
        name, prompt.size(), sampling.max_length);
  const int64_t context = generator_.scheduler().model().longest_sequence();
  const auto tokens = static_cast<int64_t>(prompt.size());
  if (tokens > context && !sampling_.config.slide)
    throw TooManyTokens(
        fmt::format("{}: has {} tokens, the model's context_length is {}; with slide its end would be used", name,
                    tokens, context),
        tokens, context);
  // The model reads the same end of a prompt and of its last context + 1 tokens, so that these are enough. But
  // max_length counts the whole prompt.
  if (tokens > context + 1 && sampling.max_tokens > 0)
    prompt.erase(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(context + 1));
  return prompt;
}

DecodingRequest GenerationRequests::request(std::vector<int32_t> prompt, int64_t first_sample, int64_t samples) const {
  SamplingRequest sampling = sampling_;
  sampling.samples = samples;
  sampling.first_sample = static_cast<uint64_t>(first_sample);
  return {.prompt = std::move(prompt),
          .search = std::move(sampling),
          .adapter = adapter_,
          .batch = {.sequences = options_.batch_texts, .lanes = 1},
          .interrupt = options_.interrupt,
          .deadline = options_.deadline};
}

GrowingText GenerationRequests::text(const std::vector<int32_t>& prompt,
                                     std::function<void(std::string_view)> on_text) const {
  return GrowingText(IncrementalDecoder(generator_.tokenizer(), prompt, generator_.eos_is_line_end()),
                     StopStrings(options_.stop, options_.keep_stop), std::move(on_text));
}

}  // namespace attune

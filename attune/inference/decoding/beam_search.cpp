#include "attune/inference/decoding/beam_search.h"

#include <algorithm>
#include <limits>

#include "attune/base/fail.h"
#include "attune/inference/decoding/phrases.h"
#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/decoding/shortlist.h"
#include "attune/models/transformer.h"

namespace attune {
namespace {

void check_id(const char* field, int32_t id, int64_t vocab) {
  if (id < 0 || id >= vocab) fail<ConfigError>("{} = {}: is outside the target vocabulary of {}", field, id, vocab);
}

void check_phrase(const char* field, const std::vector<int32_t>& phrase, const SpecialIds& special,
                  const SearchTokens& tokens, int64_t vocab) {
  for (const int32_t id : phrase) {
    check_id(field, id, vocab);
    if (id == special.pad || id == special.bos || id == special.eos || tokens.ends_with(id))
      fail<ConfigError>("{}: token {} is pad, bos or eos", field, id);
  }
}

void check_phrases(const char* field, const TokenSequences& phrases, size_t most, const BeamSearchOptions& options,
                   int64_t vocab) {
  constexpr size_t kMostTokens = 1 << 15;  // of all phrases: each is looked for in each output
  if (phrases.size() > most) fail<ConfigError>("{}: {} phrases, at most {} are accepted", field, phrases.size(), most);
  const SearchTokens tokens(options);
  size_t in_all = 0;
  for (const std::vector<int32_t>& phrase : phrases) {
    in_all += phrase.size();
    if (in_all > kMostTokens) fail<ConfigError>("{}: the phrases have more than {} tokens in all", field, kMostTokens);
    if (phrase.empty()) fail<ConfigError>("{}: a phrase without tokens", field);
    if (static_cast<int64_t>(phrase.size()) > options.generation.max_length)
      fail<ConfigError>("{}: a phrase of {} tokens, max_length = {}", field, phrase.size(),
                        options.generation.max_length);
    check_phrase(field, phrase, options.special, tokens, vocab);
  }
}

}  // namespace

SearchTokens::SearchTokens(const BeamSearchOptions& options) {
  const GenerationConfig& g = options.generation;
  const SpecialIds& special = options.special;
  start = g.start_token >= 0 ? static_cast<int32_t>(g.start_token) : special.bos;
  ends.assign(g.eos_tokens.begin(), g.eos_tokens.end());
  if (ends.empty()) ends = {special.eos};
  if (!g.special_tokens) {
    never = {special.bos};
    if (!ends_with(special.pad)) never.push_back(special.pad);
  }
  never.insert(never.end(), g.suppressed_tokens.begin(), g.suppressed_tokens.end());
  std::sort(never.begin(), never.end());
  never.erase(std::unique(never.begin(), never.end()), never.end());
}

void BeamSearchOptions::validate(int64_t target_vocab) const {
  constexpr size_t kMostBanned = 1 << 12;
  generation.validate();
  if (n_best < 1 || n_best > generation.beam_size)
    fail<ConfigError>("n_best = {}: needs a number from 1 to beam_size = {}", n_best, generation.beam_size);
  if (!generation.special_tokens) {
    check_id("pad", special.pad, target_vocab);
    check_id("bos", special.bos, target_vocab);
  }
  if (generation.eos_tokens.empty()) check_id("eos", special.eos, target_vocab);
  const SearchTokens tokens(*this);
  check_id("start_token", tokens.start, target_vocab);
  for (const int32_t id : tokens.ends) check_id("eos_tokens", id, target_vocab);
  if (tokens.ends_with(special.bos) && !generation.special_tokens)
    fail<ConfigError>("bos = {}: is eos too", special.bos);
  for (const int64_t id : {generation.forced_first_token, generation.forced_last_token})
    if (id >= 0) check_id("forced_first_token and forced_last_token", static_cast<int32_t>(id), target_vocab);
  for (const std::vector<int64_t>& phrase : generation.suppressed_phrases)
    for (const int64_t id : phrase) check_id("suppressed_phrases", static_cast<int32_t>(id), target_vocab);
  check_phrases("banned", banned, kMostBanned, *this, target_vocab);
  if (shortlist != nullptr && shortlist->target_vocab() != target_vocab)
    fail<ConfigError>("shortlist: is for {} target tokens, the model has {}", shortlist->target_vocab(), target_vocab);
}

void SentenceConstraints::validate(const BeamSearchOptions& options, int64_t target_vocab) const {
  if (empty()) return;
  check_phrase("prefix", prefix, options.special, SearchTokens(options), target_vocab);
  check_phrases("required", required, RequiredPhrases::kMost, options, target_vocab);
  const bool forced = options.generation.forced_first_token >= 0;
  const int64_t least = static_cast<int64_t>(prefix.size()) + RequiredPhrases(required).tokens() + (forced ? 2 : 1);
  if (least > options.generation.max_length)
    fail<ConfigError>("prefix and required: {} tokens with eos{}, max_length = {}", least,
                      forced ? " and forced_first_token" : "", options.generation.max_length);
}

void check_not_banned(const TokenSequences& required, const BeamSearchOptions& options) {
  for (const std::vector<int32_t>& phrase : required) {
    const auto refuse_within = [&](const auto& phrases, const char* what) {
      for (const auto& no : phrases)
        if (std::search(phrase.begin(), phrase.end(), no.begin(), no.end()) != phrase.end())
          fail<ConfigError>("required: a phrase of {} tokens contains one that is {}", phrase.size(), what);
    };
    refuse_within(options.banned, "banned");
    refuse_within(options.generation.suppressed_phrases, "suppressed");
  }
}

std::vector<std::vector<Hypothesis>> beam_search(const Transformer& model, const PackedTokens& source,
                                                 const BeamSearchOptions& options,
                                                 std::span<const SentenceConstraints> constraints) {
  if (!constraints.empty() && static_cast<int64_t>(constraints.size()) != source.sequences.count())
    fail<ConfigError>("constraints: {} for {} sentences", constraints.size(), source.sequences.count());
  options.validate(model.config().target_vocab);
  for (const SentenceConstraints& c : constraints) {
    c.validate(options, model.config().target_vocab);
    check_not_banned(c.required, options);
  }
  const auto shared = std::make_shared<const BeamSearchOptions>(options);
  const std::shared_ptr<const Transformer> borrowed(std::shared_ptr<const Transformer>(), &model);
  Scheduler scheduler(std::make_shared<TranslationDecodingModel>(borrowed),
                      {.cache_bytes = std::numeric_limits<int64_t>::max()});
  SchedulerClient client(scheduler);
  std::vector<std::vector<Hypothesis>> result(static_cast<size_t>(source.sequences.count()));
  const auto ids = source.ids.values();
  for (size_t i = 0; i < result.size(); ++i) {
    const auto begin = static_cast<size_t>(source.sequences.begin(static_cast<int64_t>(i)));
    const auto own = ids.subspan(begin, static_cast<size_t>(source.sequences.length(static_cast<int64_t>(i))));
    client.submit(
        i, {.source = {own.begin(), own.end()},
            .prompt = {SearchTokens(options).start},
            .search = BeamSearchRequest(shared, constraints.empty() ? SentenceConstraints{} : constraints[i]),
            .batch = {.sequences = source.sequences.count(), .source_tokens = source.sequences.total(), .lanes = 1}});
  }
  while (client.outstanding() > 0) {
    for (auto& [i, found] : client.work()) {
      if (found.error) std::rethrow_exception(found.error);
      result[i] = std::move(found.hypotheses);
    }
  }
  return result;
}

}  // namespace attune

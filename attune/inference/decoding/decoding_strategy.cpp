#include "attune/inference/decoding/decoding_strategy.h"

#include "attune/base/fail.h"

namespace attune {
namespace {

void check_ids(const char* what, const std::vector<int32_t>& ids, int64_t vocab) {
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab) fail<DataError>("{}: token id {} is outside the vocabulary of {}", what, id, vocab);
}

}  // namespace

void RowInputs::clear() {
  parents.clear();
  keep.clear();
  counts.clear();
  tokens.clear();
  wanted.clear();
}

void RowInputs::add_row(int32_t parent, int32_t kept, std::span<const int32_t> new_tokens, int32_t wanted_logits) {
  parents.push_back(parent);
  keep.push_back(kept);
  counts.push_back(static_cast<int32_t>(new_tokens.size()));
  tokens.insert(tokens.end(), new_tokens.begin(), new_tokens.end());
  wanted.push_back(wanted_logits);
}

const std::shared_ptr<const DecodingModel>& DecodingStrategy::draft() const {
  static const std::shared_ptr<const DecodingModel> none;
  return none;
}

std::unique_ptr<DecodingStrategy> make_strategy(const DecodingModel& model, DecodingRequest& request) {
  if (request.prompt.empty()) fail<DataError>("prompt: has no tokens");
  if (request.source.empty() != (model.source_vocab() == 0))
    fail<DataError>("source: has {} tokens, the model {}", request.source.size(),
                    model.source_vocab() == 0 ? "reads none" : "needs some");
  if (static_cast<int64_t>(request.source.size()) > model.longest_sequence())
    fail<DataError>("source: has {} tokens, the model reads at most {}", request.source.size(),
                    model.longest_sequence());
  check_ids("source", request.source, model.source_vocab());
  check_ids("prompt", request.prompt, model.vocab());
  if (std::holds_alternative<BeamSearchRequest>(request.search)) return make_beam_strategy(model, request);
  return std::get<SamplingRequest>(request.search).draft == nullptr ? make_sampling_strategy(model, request)
                                                                    : make_speculative_strategy(model, request);
}

}  // namespace attune

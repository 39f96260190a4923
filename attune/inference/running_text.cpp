#include "attune/inference/running_text.h"

#include <algorithm>

namespace attune {

void RunningText::slide(size_t context) {
  if (window().size() > context) window_begin = tokens.size() - std::max<size_t>(1, context / 2);
}

void RunningText::add(const GenerationRun& run, const std::string& piece) {
  const std::string added = stop.push(piece);
  result.text += added;
  if (!added.empty() && run.options.on_text) run.options.on_text(index, added);
}

void RunningText::finish(const GenerationRun& run, FinishReason reason) {
  if (reason != FinishReason::stop) {
    add(run, decoder.finish());
    const std::string rest = stop.finish();
    result.text += rest;
    if (!rest.empty() && run.options.on_text) run.options.on_text(index, rest);
  }
  result.finish_reason = stop.found() ? FinishReason::stop : reason;
}

bool RunningText::accept(const GenerationRun& run, int32_t token) {
  tokens.push_back(token);
  result.tokens.push_back(token);
  const auto ends = [&](FinishReason reason) {
    finish(run, reason);
    return false;
  };
  if (token == run.generator.tokenizer().eos_id() && !run.generator.eos_is_line_end()) return ends(FinishReason::eos);
  add(run, decoder.push(token));
  if (stop.found()) return ends(FinishReason::stop);
  if (static_cast<int64_t>(result.tokens.size()) == run.sampling.max_tokens) return ends(FinishReason::length);
  if (window().size() > run.context() && !run.sampling.slide) return ends(FinishReason::context);
  return true;
}

}  // namespace attune

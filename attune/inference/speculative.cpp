#include "attune/inference/speculative.h"

#include <algorithm>
#include <unordered_map>

#include "attune/base/fail.h"

namespace attune {
namespace {

// Numbers for one place of one text that are independent of those which plain sampling uses.
enum class Purpose : uint64_t { draft = 1, judge = 2, replace = 3 };

double number_for(const GenerationRun& run, const RunningText& text, size_t step, Purpose purpose) {
  return random_number(run.sampling.seed, text.sample + (static_cast<uint64_t>(purpose) << 48), step);
}

double probability_of(const TokenDistribution& distribution, int32_t token) {
  const auto at = std::find(distribution.tokens.begin(), distribution.tokens.end(), token);
  if (at == distribution.tokens.end()) return 0;
  return distribution.probabilities[static_cast<size_t>(at - distribution.tokens.begin())];
}

// A model with its cache. Row i is text i; it has been given the first position(i) tokens of the window.
class Reader {
 public:
  explicit Reader(const DecoderLm& model) : model_(model) {}

  int64_t context() const { return model_.config().context_length; }
  int64_t position(size_t i) const { return cache_.position(static_cast<int64_t>(i)); }
  void keep(size_t i, int64_t tokens) {
    cache_.truncate(static_cast<int64_t>(i), static_cast<int32_t>(std::min(tokens, position(i))));
  }
  void select(const std::vector<int32_t>& parents) { cache_.select(parents); }

  /// All windows but their last token, those of one prompt once; nothing of one that does not fit.
  void begin(const std::vector<RunningText*>& texts) {
    std::vector<int32_t> ids, offsets = {0}, parents;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (i == 0 || texts[i]->prompt != texts[i - 1]->prompt) {
        const auto window = texts[i]->window();
        if (static_cast<int64_t>(window.size()) <= context()) ids.insert(ids.end(), window.begin(), window.end() - 1);
        offsets.push_back(static_cast<int32_t>(ids.size()));
      }
      parents.push_back(static_cast<int32_t>(offsets.size()) - 2);
    }
    cache_ = model_.start(static_cast<int64_t>(offsets.size()) - 1);
    model_.read(pack_tokens(ids, offsets), cache_);
    cache_.select(parents);
  }

  /// Text i is read up to its first ends[i] tokens, of which the last ones may be proposals. Returns the logits after
  /// each token that is new, text after text.
  Tensor read(const std::vector<std::vector<int32_t>>& windows, const std::vector<size_t>& ends) {
    std::vector<int32_t> tokens, counts;
    for (size_t i = 0; i < windows.size(); ++i) {
      const auto from = static_cast<size_t>(position(i)), to = std::max(from, ends[i]);
      tokens.insert(tokens.end(), windows[i].begin() + static_cast<std::ptrdiff_t>(from),
                    windows[i].begin() + static_cast<std::ptrdiff_t>(to));
      counts.push_back(static_cast<int32_t>(to - from));
    }
    return tokens.empty() ? Tensor{} : model_.steps(tokens, counts, cache_);
  }

 private:
  const DecoderLm& model_;
  KvCache cache_;
};

std::span<const float> row_of(const Tensor& logits, int64_t row) {
  const auto vocab = static_cast<size_t>(logits.size(1));
  return logits.values<float>().subspan(static_cast<size_t>(row) * vocab, vocab);
}

// What the draft proposes for the texts, and from which distributions.
struct Proposals {
  std::vector<std::vector<int32_t>> windows;  // with the proposals at their ends
  std::vector<std::vector<TokenDistribution>> distributions;
};

// How many tokens make sense: one more is drawn behind them, and both models have to have room.
size_t proposals_for(const GenerationRun& run, const RunningText& text, const Reader& draft) {
  const auto window = static_cast<int64_t>(text.window().size());
  const int64_t left = run.sampling.max_tokens - static_cast<int64_t>(text.result.tokens.size());
  const int64_t room = std::min(static_cast<int64_t>(run.context()) - window, draft.context() - window + 1);
  return static_cast<size_t>(std::max<int64_t>(0, std::min({run.options.draft_tokens, left - 1, room})));
}

// The tokens that the repetition penalty sees: those of the text, also before the window, and proposals.
std::vector<int32_t> past_of(const RunningText& text, std::span<const int32_t> window, size_t end) {
  std::vector<int32_t> past(text.tokens.begin(), text.tokens.begin() + static_cast<std::ptrdiff_t>(text.window_begin));
  past.insert(past.end(), window.begin(), window.begin() + static_cast<std::ptrdiff_t>(end));
  return past;
}

Proposals propose(const GenerationRun& run, const std::vector<RunningText*>& texts, Reader& draft) {
  Proposals p;
  p.distributions.resize(texts.size());
  std::vector<size_t> wanted;
  for (const RunningText* text : texts) {
    p.windows.emplace_back(text->window().begin(), text->window().end());
    wanted.push_back(proposals_for(run, *text, draft));
  }
  for (size_t step = 0; step < *std::max_element(wanted.begin(), wanted.end()); ++step) {
    std::vector<size_t> ends(texts.size(), 0);
    for (size_t i = 0; i < texts.size(); ++i)
      if (step < wanted[i]) ends[i] = p.windows[i].size();
    std::vector<int64_t> last;  // of each text in the logits
    int64_t row = -1;
    for (size_t i = 0; i < texts.size(); ++i) {
      row += std::max<int64_t>(0, static_cast<int64_t>(ends[i]) - draft.position(i));
      last.push_back(row);
    }
    const Tensor logits = draft.read(p.windows, ends);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (step >= wanted[i]) continue;
      p.distributions[i].push_back(token_distribution(row_of(logits, last[i]),
                                                      past_of(*texts[i], p.windows[i], p.windows[i].size()),
                                                      run.sampling, run.never_drawn));
      p.windows[i].push_back(draw(p.distributions[i].back(),
                                  number_for(run, *texts[i], texts[i]->result.tokens.size() + step, Purpose::draft)));
    }
  }
  return p;
}

// The model's logits after the last token and after each proposal begin at `row`. False when the text ends.
bool judge(const GenerationRun& run, RunningText& text, const Tensor& logits, int64_t row,
           const std::vector<int32_t>& window, const std::vector<TokenDistribution>& q) {
  const size_t known = window.size() - q.size();
  for (size_t j = 0; j <= q.size(); ++j) {
    const size_t step = text.result.tokens.size();
    const TokenDistribution p = token_distribution(row_of(logits, row + static_cast<int64_t>(j)),
                                                   past_of(text, window, known + j), run.sampling, run.never_drawn);
    if (j == q.size()) return text.accept(run, draw(p, random_number(run.sampling.seed, text.sample, step)));
    const int32_t token = window[known + j];
    if (number_for(run, text, step, Purpose::judge) * probability_of(q[j], token) >= probability_of(p, token))
      return text.accept(run, draw(residual(p, q[j]), number_for(run, text, step, Purpose::replace)));
    if (!text.accept(run, token)) return false;
  }
  return true;
}

}  // namespace

TokenDistribution residual(const TokenDistribution& p, const TokenDistribution& q) {
  std::unordered_map<int32_t, double> of_q;
  for (size_t i = 0; i < q.tokens.size(); ++i) of_q[q.tokens[i]] = q.probabilities[i];
  TokenDistribution rest;
  double sum = 0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    const auto at = of_q.find(p.tokens[i]);
    const double more = p.probabilities[i] - (at == of_q.end() ? 0 : at->second);
    if (more <= 0) continue;
    rest.tokens.push_back(p.tokens[i]);
    rest.probabilities.push_back(more);
    sum += more;
  }
  if (sum <= 0) return p;
  for (double& probability : rest.probabilities) probability /= sum;
  return rest;
}

void check_draft(const GenerationRun& run) {
  const int64_t vocab = run.generator.model().config().vocab, of_draft = run.options.draft->config().vocab;
  if (of_draft != vocab) fail<ConfigError>("draft: has {} tokens, the model has {}", of_draft, vocab);
  if (run.sampling.slide) fail<ConfigError>("slide: does not go with a draft");
}

void generate_speculatively(const GenerationRun& run, std::vector<RunningText*> texts) {
  Reader model(run.generator.model()), draft(*run.options.draft);
  if (!run.interrupted()) {
    model.begin(texts);
    draft.begin(texts);
  }
  while (!texts.empty() && !run.interrupted()) {
    const Proposals p = propose(run, texts, draft);
    std::vector<size_t> ends;
    std::vector<int64_t> first;  // of each text in the logits: after the last token that is certain
    int64_t row = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      ends.push_back(p.windows[i].size());
      first.push_back(row);
      row += static_cast<int64_t>(ends[i]) - model.position(i);
    }
    const Tensor logits = model.read(p.windows, ends);
    std::vector<RunningText*> alive;
    std::vector<int32_t> parents;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!judge(run, *texts[i], logits, first[i], p.windows[i], p.distributions[i])) continue;
      const auto certain = static_cast<int64_t>(texts[i]->window().size()) - 1;
      model.keep(i, certain);
      draft.keep(i, certain);
      parents.push_back(static_cast<int32_t>(i));
      alive.push_back(texts[i]);
    }
    model.select(parents);
    draft.select(parents);
    texts = std::move(alive);
  }
  for (RunningText* text : texts) text->finish(run, FinishReason::interrupted);
}

}  // namespace attune

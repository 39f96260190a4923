#include "attune/inference/decoding/decoding_model.h"

#include <algorithm>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/models/decoder_lm.h"
#include "attune/models/transformer.h"
#include "attune/nn/adapters/adapter_rows.h"
#include "attune/ops/gather.h"

namespace attune {
namespace {

// States that logits are wanted of: those of all tokens, or some of them.
Tensor states_of(const Tensor& states, const std::vector<int32_t>& tokens) {
  if (static_cast<int64_t>(tokens.size()) == states.size(0)) return states;
  return gather(states, Indices(tokens));
}

void begin_output(const DecodingInput& input, const KvCache& cache, DecodingOutput& output) {
  constexpr size_t kMostParts = 2;  // rows point into `logits`, which may not move
  if (input.wanted.size() != input.counts.size() || static_cast<int64_t>(input.counts.size()) != cache.rows() ||
      (!input.columns.empty() && input.columns.size() != input.counts.size()))
    fail<ShapeError>("step: {} counts, {} wanted and {} columns for a cache of {} rows", input.counts.size(),
                     input.wanted.size(), input.columns.size(), cache.rows());
  for (size_t r = 0; r < input.counts.size(); ++r) {
    if (input.wanted[r] < 0 || input.wanted[r] > input.counts[r])
      fail<ShapeError>("step: logits after {} of {} tokens of row {}", input.wanted[r], input.counts[r], r);
  }
  output.clear();
  output.logits.reserve(kMostParts);
}

// The rows of a step of which `takes` is true: their tokens, and the logits that are wanted of them.
struct Part {
  std::vector<int32_t> tokens, counts;
  std::vector<int32_t> adapters;  // of the tokens, where some have one
  std::vector<int32_t> wanted;    // tokens of this part
  std::vector<size_t> rows;       // of the cache: for each wanted token

  template <class Takes>
  Part(const DecodingInput& input, Takes&& takes) {
    size_t begin = 0;
    for (size_t r = 0; r < input.counts.size(); ++r) {
      const auto count = static_cast<size_t>(input.counts[r]);
      const bool taken = count > 0 && takes(r);
      counts.push_back(taken ? input.counts[r] : 0);
      if (taken) {
        const auto own = input.tokens.subspan(begin, count);
        tokens.insert(tokens.end(), own.begin(), own.end());
        if (const AdapterRows* const all = execution().adapter_rows; all != nullptr)
          for (const int32_t adapter : all->adapters().subspan(begin, count)) adapters.push_back(adapter);
        for (int32_t later = input.wanted[r]; later > 0; --later) {
          wanted.push_back(static_cast<int32_t>(tokens.size()) - later);
          rows.push_back(r);
        }
      }
      begin += count;
    }
  }
};

}  // namespace

HostRow::HostRow(const LogitsRow& row) : logits_(row.host) {
  if (!logits_.empty()) return;
  view_.emplace(row.logits->rows(row.row, row.row + 1));
  logits_ = view_->as<float>().first(static_cast<size_t>(row.size));
}

void DecodingOutput::clear() {
  rows.clear();
  logits.clear();
  views.clear();
}

void DecodingOutput::read_on_host() {
  const size_t first = views.size();
  for (const Tensor& part : logits) views.emplace_back(part);
  for (LogitsRow& row : rows) {
    const HostView& view = views[first + static_cast<size_t>(row.logits - logits.data())];
    const auto columns = static_cast<size_t>(row.logits->size(1));
    row.host = view.as<float>().subspan(static_cast<size_t>(row.row) * columns, static_cast<size_t>(row.size));
  }
}

TranslationDecodingModel::TranslationDecodingModel(std::shared_ptr<const Transformer> model)
    : model_(std::move(model)), empty_(model_->start()) {}

int64_t TranslationDecodingModel::vocab() const {
  return model_->config().target_vocab;
}
int64_t TranslationDecodingModel::source_vocab() const {
  return model_->config().source_vocab;
}
int64_t TranslationDecodingModel::longest_sequence() const {
  return model_->config().longest_sequence();
}
int64_t TranslationDecodingModel::cache_bytes(int64_t tokens, int64_t source_tokens) const {
  return empty_.bytes_of(tokens, source_tokens);
}
KvCache TranslationDecodingModel::start() const {
  return model_->start();
}

void TranslationDecodingModel::add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const {
  const NoGrad no_grad;
  std::vector<int32_t> packed, offsets = {0};
  for (const auto source : sources) {
    packed.insert(packed.end(), source.begin(), source.end());
    offsets.push_back(static_cast<int32_t>(packed.size()));
  }
  const PackedTokens tokens = pack_tokens(packed, offsets);
  model_->add(model_->encode(tokens), tokens.sequences, cache);
}

void TranslationDecodingModel::step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const {
  const NoGrad no_grad;
  begin_output(input, cache, output);
  const DecoderStep step = model_->step_states(input.tokens, input.counts, cache, input.source_attention);
  std::span<const float> attention;
  size_t longest_source = 0;
  if (input.source_attention) {
    const HostView& view = output.views.emplace_back(step.cross_weights.to(DType::f32));
    attention = view.as<float>();
    longest_source = static_cast<size_t>(step.cross_weights.size(1));
  }
  std::vector<int32_t> whole, some;  // tokens with logits of the whole vocabulary, and of some columns
  std::vector<std::span<const int32_t>> columns;
  int32_t end = 0;
  for (size_t r = 0; r < input.counts.size(); ++r) {
    end += input.counts[r];
    const auto of_row = input.columns.empty() ? std::span<const int32_t>{} : input.columns[r];
    for (int32_t token = end - input.wanted[r]; token < end; ++token) {
      auto& part = of_row.empty() ? whole : some;
      output.rows.push_back(
          {.row = static_cast<int64_t>(part.size()),
           .size = of_row.empty() ? vocab() : static_cast<int64_t>(of_row.size()),
           .attention = attention.empty()
                            ? attention
                            : attention.subspan(static_cast<size_t>(token) * longest_source, longest_source)});
      part.push_back(token);
      if (!of_row.empty()) columns.push_back(of_row);
    }
  }
  const Tensor *of_whole = nullptr, *of_some = nullptr;
  if (!whole.empty()) of_whole = &output.logits.emplace_back(model_->project(states_of(step.states, whole)));
  if (!some.empty()) of_some = &output.logits.emplace_back(model_->project(states_of(step.states, some), columns));
  size_t i = 0;
  for (size_t r = 0; r < input.counts.size(); ++r) {
    const bool has_columns = !input.columns.empty() && !input.columns[r].empty();
    for (int32_t n = 0; n < input.wanted[r]; ++n) output.rows[i++].logits = has_columns ? of_some : of_whole;
  }
}

LanguageDecodingModel::LanguageDecodingModel(std::shared_ptr<const DecoderLm> model)
    : model_(std::move(model)), empty_(model_->start()) {}

int64_t LanguageDecodingModel::vocab() const {
  return model_->config().vocab;
}
int64_t LanguageDecodingModel::longest_sequence() const {
  return model_->config().context_length;
}
int64_t LanguageDecodingModel::cache_bytes(int64_t tokens, int64_t) const {
  return empty_.bytes_of(tokens, 0);
}
KvCache LanguageDecodingModel::start() const {
  return model_->start();
}

void LanguageDecodingModel::add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const {
  for (const auto source : sources)
    if (!source.empty()) fail<ShapeError>("language model: a source of {} tokens, it reads none", source.size());
  cache.add_rows(static_cast<int64_t>(sources.size()));
}

void LanguageDecodingModel::step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const {
  const NoGrad no_grad;
  begin_output(input, cache, output);
  const auto is_prompt = [&](size_t r) { return cache.position(static_cast<int64_t>(r)) == 0; };
  bool prompts = false;
  for (size_t r = 0; r < input.counts.size(); ++r) prompts = prompts || (input.counts[r] > 0 && is_prompt(r));
  const Part first(input, [&](size_t r) { return is_prompt(r); });
  const Part later(input, [&](size_t r) { return !is_prompt(r); });
  const auto logits = [&](const Part& part, auto&& read) -> const Tensor* {
    const AdapterRowsScope scope(part.adapters);
    const Tensor states = read(part.tokens, part.counts, cache);
    if (part.wanted.empty()) return nullptr;
    return &output.logits.emplace_back(model_->project(states_of(states, part.wanted)));
  };
  const Tensor *of_first = nullptr, *of_later = nullptr;
  if (prompts) of_first = logits(first, [&](auto&&... in) { return model_->prompt_states(in...); });
  if (!later.tokens.empty()) of_later = logits(later, [&](auto&&... in) { return model_->step_states(in...); });
  // In the order of the rows of the cache.
  size_t i = 0, j = 0;
  while (i < first.rows.size() || j < later.rows.size()) {
    const bool takes_first = j == later.rows.size() || (i < first.rows.size() && first.rows[i] < later.rows[j]);
    output.rows.push_back({.logits = takes_first ? of_first : of_later,
                           .row = static_cast<int64_t>(takes_first ? i++ : j++),
                           .size = vocab()});
  }
}

}  // namespace attune

#include "attune/inference/decoding/ensemble_decoding_model.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "attune/autograd/graph.h"
#include "attune/base/fail.h"
#include "attune/ops/log_mean_exp.h"
#include "attune/ops/softmax.h"

namespace attune {
namespace {

// The layers of one model, taken out of the cache of all with a copy of its lists of slots, and put back at the end
// whatever happens.
class CachePart {
 public:
  CachePart(KvCache& whole, size_t begin, size_t count) : whole_(whole), begin_(begin) {
    const auto first = whole.layers.begin() + static_cast<std::ptrdiff_t>(begin);
    cache.layers.assign(std::make_move_iterator(first),
                        std::make_move_iterator(first + static_cast<std::ptrdiff_t>(count)));
    cache.past = whole.past;
    cache.source = whole.source;
  }
  CachePart(const CachePart&) = delete;
  CachePart& operator=(const CachePart&) = delete;
  ~CachePart() {
    std::move(cache.layers.begin(), cache.layers.end(), whole_.layers.begin() + static_cast<std::ptrdiff_t>(begin_));
  }
  KvCache cache;

 private:
  KvCache& whole_;
  size_t begin_;
};

}  // namespace

EnsembleDecodingModel::EnsembleDecodingModel(std::vector<std::shared_ptr<const DecodingModel>> models)
    : models_(std::move(models)) {
  if (models_.empty()) fail<ConfigError>("ensemble: expected at least one model, found none");
  for (const auto& model : models_) {
    if (model->vocab() != vocab() || model->source_vocab() != source_vocab())
      fail<ConfigError>(
          "ensemble: vocabularies of {} and {} tokens for source and target, of the first model {} and {}",
          model->source_vocab(), model->vocab(), source_vocab(), vocab());
    layers_.push_back(model->start().layers.size());
  }
}

int64_t EnsembleDecodingModel::vocab() const {
  return models_.front()->vocab();
}
int64_t EnsembleDecodingModel::source_vocab() const {
  return models_.front()->source_vocab();
}
int64_t EnsembleDecodingModel::longest_sequence() const {
  int64_t longest = models_.front()->longest_sequence();
  for (const auto& model : models_) longest = std::min(longest, model->longest_sequence());
  return longest;
}
int64_t EnsembleDecodingModel::cache_bytes(int64_t tokens, int64_t source_tokens) const {
  int64_t sum = 0;
  for (const auto& model : models_) sum += model->cache_bytes(tokens, source_tokens);
  return sum;
}

KvCache EnsembleDecodingModel::start() const {
  KvCache whole;
  for (const auto& model : models_) {
    KvCache own = model->start();
    std::move(own.layers.begin(), own.layers.end(), std::back_inserter(whole.layers));
  }
  return whole;
}

// Every model changes its copy of the lists in the same way; those of the last one become the cache's.
template <class F>
void EnsembleDecodingModel::for_each_part(KvCache& cache, F&& f) const {
  size_t begin = 0;
  SlotLists past, source;
  for (size_t m = 0; m < models_.size(); ++m) {
    CachePart part(cache, begin, layers_[m]);
    f(*models_[m], part.cache);
    begin += layers_[m];
    past = std::move(part.cache.past);
    source = std::move(part.cache.source);
  }
  cache.past = std::move(past);
  cache.source = std::move(source);
}

void EnsembleDecodingModel::add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const {
  for_each_part(cache, [&](const DecodingModel& model, KvCache& part) { model.add(sources, part); });
}

void EnsembleDecodingModel::step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const {
  const NoGrad no_grad;
  std::vector<DecodingOutput> outputs(models_.size());
  size_t done = 0;
  for_each_part(cache, [&](const DecodingModel& model, KvCache& part) {
    DecodingInput own = input;
    own.source_attention = input.source_attention && done == 0;
    model.step(own, part, outputs[done++]);
  });
  // All models give the same rows in the same places; columns that a row does not have are -inf.
  std::vector<Tensor> means;
  for (size_t i = 0; i < outputs.front().logits.size(); ++i) {
    std::vector<Tensor> logarithms;
    for (const DecodingOutput& of_model : outputs) logarithms.push_back(log_softmax(of_model.logits[i]));
    means.push_back(log_mean_exp(logarithms));
  }
  const Tensor* const before = outputs.front().logits.data();
  output = std::move(outputs.front());
  for (LogitsRow& row : output.rows) row.logits = &means[static_cast<size_t>(row.logits - before)];
  output.logits = std::move(means);  // where the rows point: a vector that is moved keeps its place
}

}  // namespace attune

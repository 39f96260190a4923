#pragma once

#include <memory>
#include <span>
#include <utility>

#include "attune/inference/decoding/decoding_model.h"

namespace attune {

/// A model that does what another does; tests override what they watch or change.
class WrappedModel : public DecodingModel {
 public:
  explicit WrappedModel(std::shared_ptr<const DecodingModel> model) : model_(std::move(model)) {}
  int64_t vocab() const override { return model_->vocab(); }
  int64_t source_vocab() const override { return model_->source_vocab(); }
  int64_t longest_sequence() const override { return model_->longest_sequence(); }
  int64_t cache_bytes(int64_t tokens, int64_t sources) const override { return model_->cache_bytes(tokens, sources); }
  KvCache start() const override { return model_->start(); }
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override {
    model_->add(sources, cache);
  }
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override {
    model_->step(input, cache, output);
  }

 private:
  std::shared_ptr<const DecodingModel> model_;
};

}  // namespace attune

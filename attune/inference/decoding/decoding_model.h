#pragma once
// The interface between models and the scheduler.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attune/cache/kv_cache.h"
#include "attune/tensor/host_view.h"
#include "attune/tensor/tensor.h"

namespace attune {

class DecoderLm;
class Transformer;

/// New tokens of the rows of a cache.
struct DecodingInput {
  std::span<const int32_t> tokens;  // row after row
  std::span<const int32_t> counts;  // of each row of the cache: its number of new tokens; 0: the row waits
  std::span<const int32_t> wanted;  // of each row: how many of its last new tokens give logits
  /// Of each row the tokens whose logits are wanted, rising; an empty list: all tokens. No lists: all tokens for every
  /// row.
  std::span<const std::span<const int32_t>> columns = {};
  bool source_attention = false;  // whether LogitsRow::attention is wanted
};

/// The logits after one token.
struct LogitsRow {
  const Tensor* logits = nullptr;  // [rows, at least `size`]
  int64_t row = 0;
  int64_t size = 0;                       // how many logits: the vocabulary, or the columns of the row
  std::span<const float> host = {};       // the same on the host, for strategies that ask for it
  std::span<const float> attention = {};  // on request: DecoderStep::cross_weights of the token, on the host
};

/// The logits of a row on the host: LogitsRow::host where that is filled, else a copy of this row alone.
class HostRow {
 public:
  explicit HostRow(const LogitsRow& row);
  std::span<const float> logits() const { return logits_; }

 private:
  std::optional<HostView> view_;
  std::span<const float> logits_;
};

/// What a step returns. The next step uses its memory again.
struct DecodingOutput {
  std::vector<LogitsRow> rows;  // one for each token whose logits are wanted, in the order of the tokens
  std::vector<Tensor> logits;   // that the rows point to
  std::vector<HostView> views;  // that own the memory of LogitsRow::host and attention

  void clear();
  /// Fills LogitsRow::host.
  void read_on_host();
};

/// A model that continues sequences, one or several tokens at a time. It has no state of its own: the sequences are the
/// rows of a cache. Several threads may use one model, each with a cache of its own. KvCache::select() doubles,
/// reorders and drops rows, KvCache::truncate() removes their last tokens. The logits of a row depend only on that row
/// and on how its tokens were cut into steps. execution().adapter_rows has a row for each token of the sources in
/// add(), and for each new token in step().
class DecodingModel {
 public:
  virtual ~DecodingModel() = default;

  virtual int64_t vocab() const = 0;
  /// The number of different tokens of sources; 0: the model reads no sources.
  virtual int64_t source_vocab() const = 0;
  /// The most tokens of a row.
  virtual int64_t longest_sequence() const = 0;
  /// Whether its logits are log probabilities, on which a penalty for logits would have another effect.
  virtual bool gives_log_probabilities() const { return false; }
  /// The bytes of a cache that has so many tokens of rows and so many of sources.
  virtual int64_t cache_bytes(int64_t tokens, int64_t source_tokens) const = 0;

  /// A cache without rows.
  virtual KvCache start() const = 0;
  /// Appends one row for each source. The sources are empty where the model reads none. Throws ShapeError.
  virtual void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const = 0;
  /// Reads the new tokens and writes the logits into `output`. Throws ShapeError when the counts do not fit, DataError
  /// when a row gets too long.
  virtual void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const = 0;
};

/// An encoder-decoder model.
class TranslationDecodingModel final : public DecodingModel {
 public:
  explicit TranslationDecodingModel(std::shared_ptr<const Transformer> model);

  int64_t vocab() const override;
  int64_t source_vocab() const override;
  int64_t longest_sequence() const override;
  int64_t cache_bytes(int64_t tokens, int64_t source_tokens) const override;
  KvCache start() const override;
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override;
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override;

 private:
  std::shared_ptr<const Transformer> model_;
  KvCache empty_;
};

/// A decoder-only model. The first tokens of a row are read as a whole prompt, all later ones over the cache.
class LanguageDecodingModel final : public DecodingModel {
 public:
  explicit LanguageDecodingModel(std::shared_ptr<const DecoderLm> model);

  int64_t vocab() const override;
  int64_t source_vocab() const override { return 0; }
  int64_t longest_sequence() const override;
  int64_t cache_bytes(int64_t tokens, int64_t source_tokens) const override;
  KvCache start() const override;
  void add(std::span<const std::span<const int32_t>> sources, KvCache& cache) const override;
  void step(const DecodingInput& input, KvCache& cache, DecodingOutput& output) const override;

 private:
  std::shared_ptr<const DecoderLm> model_;
  KvCache empty_;
};

}  // namespace attune

#pragma once

#include <memory>
#include <mutex>

#include "attune/nn/dropout.h"
#include "attune/nn/module.h"
#include "attune/nn/sinusoid_options.h"
#include "attune/tensor/indices.h"

namespace [[gnu::visibility("default")]] attune {

/// PE(pos, 2i) = sin(pos / base^(2i / d_model)), PE(pos, 2i + 1) = cos(pos / base^(2i / d_model)), or in another order
/// and with other frequencies, see SinusoidOptions. Row r is position options.first + r. With options.padding_token a
/// row of zeros, for that token, comes before the others. Returns float32 [length, d_model], with the row of zeros
/// [length + 1, d_model]. Throws ConfigError unless d_model is even, and at least 4 with full_range. Source: Vaswani et
/// al. 2017, section 3.5.
Tensor sinusoidal_positions(int64_t length, int64_t d_model, double base = 10000.0,
                            const SinusoidOptions& options = {});

/// Adds the encoding of each token's position: [tokens, d_model] and positions [tokens] -> [tokens, d_model]
class Positions : public Module {
 public:
  virtual Tensor operator()(const Tensor& x, const Indices& positions) const = 0;
  /// The token without a position, which is passed as position -1; see SinusoidOptions. -1: there is none.
  virtual int64_t padding_token() const { return -1; }
};

/// dropout(x + PE(position)). The table grows with the largest position that has been seen.
class PositionalEncoding final : public Positions {
 public:
  PositionalEncoding(int64_t d_model, double dropout, const SinusoidOptions& options = {});
  Tensor operator()(const Tensor& x, const Indices& positions) const override;
  int64_t padding_token() const override { return options_.padding_token; }
  void visit(Visitor& v) override { v("dropout", dropout_); }

 private:
  Tensor table_for(int64_t rows, const Tensor& x) const;  // the table, with at least so many rows

  int64_t d_model_;
  SinusoidOptions options_;
  Dropout dropout_;
  mutable std::mutex mutex_;  // of the table: threads that decode share models
  mutable Tensor table_;
};

/// dropout(x + table[position]) with a learned table: Gehring et al. 2017; Devlin et al. 2019. Throws DataError for a
/// position beyond the table.
class LearnedPositionalEncoding final : public Positions {
 public:
  LearnedPositionalEncoding(int64_t max_length, int64_t d_model, double dropout);
  Tensor operator()(const Tensor& x, const Indices& positions) const override;
  void visit(Visitor& v) override;

 private:
  Parameter weight_;  // [max_length, d_model]
  Dropout dropout_;
};

}  // namespace attune

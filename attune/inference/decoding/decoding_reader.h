#pragma once
// A model with its cache, and what requests read with it.

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "attune/inference/decoding/active_request.h"
#include "attune/inference/decoding/decoding_model.h"

namespace attune {

/// The rows of its users stand in the cache one request after the other.
class DecodingReader {
 public:
  /// `owner`: of a draft; else the model has to outlive the reader.
  DecodingReader(const DecodingModel& model, ReadBy by, std::shared_ptr<const DecodingModel> owner = nullptr);

  /// Reads the sources of the newcomers, which become users. Throws what the model throws. Then, and where all
  /// newcomers end meanwhile, the cache is as it was and there are no new users.
  void add(const std::vector<ActiveRequest*>& newcomers);
  /// Changes the rows of the users as their new inputs say: rows are doubled, reordered or dropped, or forget their
  /// last tokens. The rows of requests that are over leave.
  void apply_inputs();
  /// Reads the next piece of each row of the users that take part, and shows the logits to their strategies. Returns
  /// false if there was nothing to read. The logits stay until clear_output().
  bool read(bool source_attention);
  void clear_output() { output_.clear(); }

  ReadBy by() const { return by_; }
  const std::shared_ptr<const DecodingModel>& owner() const { return owner_; }
  const KvCache& cache() const { return cache_; }
  const std::vector<ActiveRequest*>& users() const { return users_; }
  /// Those that read() has read for; none where all of them ended meanwhile.
  const std::vector<ActiveRequest*>& participants() const { return participants_; }

 private:
  struct Look {
    ActiveRequest* request;
    size_t row, first, count;  // in the request; among the logits
    std::exception_ptr error = {};
  };

  void gather_inputs();
  void look();
  void look_at(std::span<Look> some) const;
  std::span<const LogitsRow> logits_of(const Look& l) const {
    return std::span(output_.rows).subspan(l.first, l.count);
  }

  const DecodingModel& model_;
  const ReadBy by_;
  std::shared_ptr<const DecodingModel> owner_;
  KvCache cache_;
  std::vector<ActiveRequest*> users_;

  // Of the pass at work; kept for their memory.
  std::vector<int32_t> parents_, tokens_, counts_, wanted_;
  std::vector<int32_t> adapters_;  // of the tokens
  std::vector<std::span<const int32_t>> columns_;
  std::vector<ActiveRequest*> participants_;
  std::vector<Look> looks_;
  DecodingOutput output_;
};

}  // namespace attune

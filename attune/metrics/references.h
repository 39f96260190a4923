#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "attune/base/fail.h"

namespace attune {

/// The references of a corpus: one translation of each sentence, or several. A view: the lists have to outlive it.
class References {
 public:
  using Sentences = std::vector<std::string>;
  References(const Sentences& one) : lists_(&one, 1) {}
  References(const std::vector<Sentences>& several) : lists_(several) {}  // one list for each reference

  std::size_t size() const { return lists_.size(); }
  auto begin() const { return lists_.begin(); }
  auto end() const { return lists_.end(); }

  /// Throws DataError, which begins with `metric`, unless there is at least one hypothesis and one reference and every
  /// reference has `hypotheses` sentences.
  void check(const char* metric, std::size_t hypotheses) const {
    if (lists_.empty()) fail<DataError>("{}: expected at least one reference, found none", metric);
    for (const Sentences& list : lists_)
      if (list.size() != hypotheses)
        fail<DataError>("{}: {} hypotheses but {} references", metric, hypotheses, list.size());
    if (hypotheses == 0) fail<DataError>("{}: expected at least one sentence, found none", metric);
  }

 private:
  std::span<const Sentences> lists_;
};

}  // namespace attune

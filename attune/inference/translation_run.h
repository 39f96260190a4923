#pragma once
// Sentences on their way through the search, those before and those after.

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "attune/inference/batched_search.h"
#include "attune/inference/translator.h"

namespace attune {

/// Translates what is added while other sentences are at work, and hands it out in the order in which it was added.
class TranslationRun {
 public:
  /// The translator has to outlive the run. Throws ConfigError for options that do not fit; constraints of theirs are
  /// not looked at.
  TranslationRun(const Translator& translator, const TranslateOptions& options);

  /// Sentences with constraints for each or none at all; they are taken into the search longest first, after all that
  /// were added before. Throws DataError and ConfigError naming the sentence, counted from 1 over all, and then adds
  /// none.
  void add(std::span<const std::string> sentences, std::span<const TranslationConstraints> constraints = {});
  /// Some tokens more for what is at work, which others join where there is room.
  void step();
  /// The translations that are next in the order and done.
  std::vector<Translation> take();

  bool waiting() const { return next_ < order_.size(); }  // whether something that was added is not yet at work
  bool busy() const { return waiting() || at_work() > 0; }
  /// That were added and not yet taken.
  int64_t outstanding() const { return static_cast<int64_t>(entries_.size()); }
  int64_t done() const { return done_; }

 private:
  struct Entry {
    std::vector<int32_t> source = {};  // with eos; empty where the sentence has no tokens
    SentenceConstraints constraints = {};
    Translation translation = {};
    bool done = false;
  };
  Entry& entry(size_t id) { return entries_[id - taken_]; }
  Entry new_entry(const std::string& sentence, size_t number) const;
  void add_constraints(const TranslationConstraints& constraints, size_t number, Entry& entry) const;
  int64_t at_work() const;
  void enter();
  void enter(BatchedSearch& search, std::span<const size_t> ids);
  bool enter_next(BatchedSearch& search);
  Translation to_text(const std::vector<Hypothesis>& hypotheses, std::span<const int32_t> source) const;

  const Translator& translator_;
  TranslateOptions options_;
  TokenSequences required_;  // of every sentence
  BeamSearchOptions search_options_;
  std::deque<BatchedSearch> searches_;  // one, or one for each thread
  std::deque<Entry> entries_;           // from the first that is not taken
  size_t taken_ = 0;
  int64_t done_ = 0;
  std::vector<size_t> order_;  // of entering: ids, which count what was added
  size_t next_ = 0;
  std::mutex next_mutex_;  // where several threads take what is next
};

}  // namespace attune

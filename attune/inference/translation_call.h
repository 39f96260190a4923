#pragma once
// The sentences of one call of Translator::translate(): before, in and after the search.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "attune/inference/decoding/scheduler.h"
#include "attune/inference/translation_requests.h"
#include "attune/inference/translator.h"

namespace attune {

/// Translates sentences, to which more can be added meanwhile, and returns them in the order in which they were added.
class TranslationCall {
 public:
  /// Translator and scheduler have to outlive the call. Throws ConfigError for options that do not fit; does not read
  /// options.constraints.
  TranslationCall(const Translator& translator, Scheduler& scheduler, const TranslateOptions& options);

  /// Adds a sentence. Of those added before the next work(), the longest enters the search first. Throws DataError and
  /// ConfigError naming `place`, or the sentence's number counted from 1, and then does not add it.
  void add(const std::string& sentence, const TranslationConstraints& constraints, const std::string& place = {});
  /// Adds a sentence that is skipped: its translation is empty, not finished, and has the message.
  void add_skipped(const std::string& what);
  /// Searches for some more tokens; waiting sentences enter where there is room. Throws what ends all of them, and
  /// Interrupted.
  void work();
  /// Calls options.on_translation for each translation that is done since the last report. Throws what it throws.
  void report();
  /// Reports, then returns the translations that are done and next in the order.
  std::vector<Translation> take();
  /// What is wrong with the sentence that is next in the order: logits that are not finite, or a search that could need
  /// more than cache_bytes. Null where nothing is.
  const std::string* failure() const;
  /// Throws failure() as NumericError or as ConfigError. It must not be null.
  [[noreturn]] void throw_failure() const;
  /// Throws ConfigError for the longest of the sentences so far whose search could need more than cache_bytes.
  void refuse_too_large() const;
  /// Skips the sentence of failure(), as add_skipped() does with this message.
  void pass_over_failure();

  /// Whether a sentence that was added is not yet with the scheduler.
  bool waiting() const { return next_ < order_.size(); }
  bool busy() const { return waiting() || client_.outstanding() > 0; }
  /// Sentences that were added and not yet taken.
  int64_t outstanding() const { return static_cast<int64_t>(entries_.size()); }
  int64_t done() const { return done_; }

 private:
  struct Entry {
    std::vector<int32_t> source = {};  // with eos; empty where the sentence has no tokens
    SentenceConstraints constraints = {};
    std::string name = {};  // where it is from
    Translation translation = {};
    std::string failure = {};  // then there is no translation
    bool too_large = false;    // what the failure is: the search is too large for cache_bytes
    bool done = false;
  };
  void add(Entry entry);
  Entry& entry(size_t id) { return entries_[id - taken_]; }
  void submit();
  void sort_new();

  TranslationRequests requests_;
  int64_t most_submitted_;
  std::deque<Entry> entries_;  // from the first that is not taken
  size_t taken_ = 0;
  int64_t done_ = 0;
  std::string too_large_ = {};       // the first failure of that kind
  std::vector<size_t> unreported_;   // ids of translations that are done
  std::vector<size_t> order_;        // ids in the order of entering; ids count what was added
  size_t next_ = 0, first_new_ = 0;  // in order_: the first to submit, the first to sort
  SchedulerClient client_;           // goes first: it ends what is at work
};

}  // namespace attune

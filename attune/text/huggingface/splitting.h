#pragma once
// Cuts words at matches.

#include <string_view>
#include <vector>

#include "attune/text/huggingface/pattern.h"
#include "attune/text/huggingface/pre_tokenizers.h"

namespace attune::huggingface {

/// What becomes of a match (SplitDelimiterBehavior).
enum class Delimiters {
  removed,               // it is left out
  isolated,              // it is a word
  merged_with_previous,  // it ends the word before it
  merged_with_next,      // it begins the word behind it
  contiguous,            // it is one word with the matches that follow it at once
};

/// Receives the matches of a word and what is between them, in order, and makes words of them.
class Splitter {
 public:
  Splitter(std::vector<Words::Range>& result, Delimiters behavior) : result_(result), behavior_(behavior) {}

  /// `word`: where the next word is.
  void begin(Words::Range word) {
    first_ = result_.size();
    previous_match_ = false;
    pending_ = false;
    done_ = word.begin;
  }

  /// The next match; `inverted`: what is between matches counts as match.
  void match(size_t begin, size_t end, bool inverted = false) {
    if (begin > done_) part(done_, begin, inverted);
    part(begin, end, !inverted);
    done_ = end;
  }

  void finish(size_t end, bool inverted = false) {
    if (end > done_) part(done_, end, inverted);
    if (pending_) result_.push_back(pending_range_);
    pending_ = false;
  }

 private:
  void part(size_t begin, size_t end, bool is_match) {
    if (begin == end) {  // no word, but what stands on its sides is not contiguous
      if (behavior_ == Delimiters::contiguous) previous_match_ = is_match;
      return;
    }
    const bool extends = result_.size() > first_;
    switch (behavior_) {
      case Delimiters::removed:
        if (!is_match) result_.push_back({begin, end});
        break;
      case Delimiters::isolated:
        result_.push_back({begin, end});
        break;
      case Delimiters::contiguous:
        extends&& is_match == previous_match_ ? void(result_.back().end = end) : result_.push_back({begin, end});
        break;
      case Delimiters::merged_with_previous:
        extends&& is_match && !previous_match_ ? void(result_.back().end = end) : result_.push_back({begin, end});
        break;
      case Delimiters::merged_with_next:
        if (pending_ && is_match) result_.push_back(pending_range_);
        if (is_match) {
          pending_range_ = {begin, end};
        } else {
          result_.push_back({pending_ ? pending_range_.begin : begin, end});
        }
        pending_ = is_match;
        break;
    }
    previous_match_ = is_match;
  }

  std::vector<Words::Range>& result_;
  Delimiters behavior_;
  size_t first_ = 0, done_ = 0;
  bool previous_match_ = false, pending_ = false;
  Words::Range pending_range_{0, 0};
};

/// Puts the new ranges in place of the old ones.
inline void take_ranges(Words& words, std::vector<Words::Range>&& ranges) {
  words.from_start = words.from_start && !ranges.empty() && ranges.front().begin == words.ranges.front().begin;
  words.ranges = std::move(ranges);
}

/// Cuts at the matches of a pattern.
inline void split_at(Words& words, const Pattern& pattern, Delimiters behavior, bool inverted) {
  std::vector<Words::Range> ranges;
  ranges.reserve(words.ranges.size() + words.text.size() / 4);
  Splitter splitter(ranges, behavior);
  for (const Words::Range& range : words.ranges) {
    splitter.begin(range);
    const auto found = [&](Match match) {
      splitter.match(range.begin + match.begin, range.begin + match.end, inverted);
    };
    pattern.search(words.word(range), found, *words.budget);
    splitter.finish(range.end, inverted);
  }
  take_ranges(words, std::move(ranges));
}

}  // namespace attune::huggingface

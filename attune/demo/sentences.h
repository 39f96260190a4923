#pragma once
// What all kinds of sentences of the grammar corpus share.

#include <string>

#include "attune/demo/writer.h"

namespace attune::grammar {

// Tenses to draw from; repeated ones weigh more.
inline constexpr Tense kAnyTense[] = {Tense::present,     Tense::present, Tense::present, Tense::progressive,
                                      Tense::progressive, Tense::past,    Tense::past,    Tense::past,
                                      Tense::past,        Tense::perfect, Tense::perfect, Tense::perfect,
                                      Tense::future,      Tense::future,  Tense::modal,   Tense::modal};
inline constexpr Tense kStates[] = {Tense::present, Tense::present, Tense::present, Tense::past};

/// Returns both sides with a capital letter and the closing punctuation, and links the words with common marks
/// (marks.h).
SentencePair pair(const std::string& english, const std::string& german, char mark = '.');

/// A date and a time of day as phrases whose words are linked.
Phrase date(int64_t day, int64_t month, int64_t year);
Phrase clock(int64_t hour, int64_t minute);

/// Whether the subject is "every ...". Such a clause is not negated: "not every man" is another thought.
inline bool has_every(const Clause& clause) {
  return clause.subject.english.starts_with("every");
}

/// Takes the time away from the front of a clause that begins with a conjunction, a question word or a relative
/// pronoun.
inline void settle(Clause& clause) {
  clause.time_in_front = false;
}

}  // namespace attune::grammar

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

/// Returns both sides with a capital letter and the closing mark.
SentencePair pair(const std::string& english, const std::string& german, char mark = '.');

/// A clause that begins with a conjunction, a question word or a relative pronoun does not begin with its time.
inline void settle(Clause& clause) {
  clause.time_in_front = false;
}

}  // namespace attune::grammar

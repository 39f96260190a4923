#pragma once
// A clause as both languages share it, and its rendering in each.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attune/demo/morphology.h"

namespace attune::grammar {

/// A constituent in both languages, the German one in the case that its role asks for. Empty: absent. Words may have
/// marks (marks.h).
struct Phrase {
  std::string english, german;
  bool pronoun = false;     // German pronoun objects stand right after verb and subject
  bool indefinite = false;  // German indefinite accusatives stand after adverbials
};

/// Returns the phrase with the letter before each of its marks. A phrase without marks gets some first: where both
/// languages have the same number of words, the first word is linked with the first and so on, else every word with
/// every word. "_" in place of a space makes two words count as one: "by train" and "mit dem_Zug".
Phrase linked(char scope, Phrase phrase);

/// A noun with determiner, adjective and number.
struct NounPhrase {
  const Noun* noun = nullptr;
  Determiner determiner = Determiner::definite;
  Person owner = Person::i;              // of `possessive`
  const Adjective* adjective = nullptr;  // or null
  bool plural = false;
  int64_t count = 0;    // 2 or more, with Determiner::none and plural: "three apples"
  Phrase owner_phrase;  // "the teacher's" and "des Lehrers": English has it in place of the article, German behind

  Agreement agreement() const { return plural ? Agreement::plural : Agreement::third_singular; }
  std::string english() const;

  /// `negative` puts "kein" in place of an indefinite or absent article.
  std::string german(Case grammatical_case, bool negative = false) const;
};

/// Both progressives are the German tense without them: "is reading" and "reads" are "liest".
enum class Tense { present, progressive, past, past_progressive, perfect, future, modal };

struct Clause {
  Phrase subject;
  Agreement agreement = Agreement::third_singular;
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  const Modal* modal = nullptr;  // with Tense::modal
  bool negated = false;          // "not"; German "nicht" unless `negative_accusative`
  bool negative_accusative = false;
  bool yet = false;    // with `negated`: "not ... yet", "noch nicht"
  bool likes = false;  // "likes to read": "liest gern"; with Tense::present
  Phrase time;
  bool time_inside = false;  // English "often", "already" stand before the main verb
  bool time_in_front = false;
  bool dative_with_to = false;
  Phrase dative, accusative, oblique, predicate, direction, manner, place;
};

/// Words and phrases in a row, one space between, the empty ones left out.
std::string join(std::initializer_list<std::string_view> words);

// Clauses as text with marks. The words of a phrase have the marks of the phrase, each behind a small letter for the
// phrase's role in the clause. The verb, the negation and the like have marks that are capital letters.

std::string english_statement(const Clause& clause);
/// "Does the teacher read the book"; after a wh-word as well.
std::string english_question(const Clause& clause);
/// "open the window", for "Please ..."
std::string english_imperative(const Clause& clause);

/// Verb second; `front` is the text before the verb; empty: the subject (or the time, if it is in front).
std::string german_statement(const Clause& clause, std::string_view front = "");
/// Verb first: "Liest der Lehrer das Buch"; after a wh-word as well.
std::string german_question(const Clause& clause);
/// Verb last: "der Lehrer das Fenster aufmacht".
std::string german_subordinate(const Clause& clause);
/// "machen Sie das Fenster auf", for "Bitte ..."
std::string german_imperative(const Clause& clause);

}  // namespace attune::grammar

#pragma once
// Draws the content of the grammar corpus: phrases, clauses and sentences. Every draw is a statement of its own,
// because the order in which C++ evaluates arguments differs between compilers, and the corpus must not.

#include <span>

#include "attune/base/random.h"
#include "attune/demo/clause.h"
#include "attune/demo/corpus.h"

namespace attune::grammar {

/// The subject of a clause; `person` says which possessives suit it ("his" for "the man").
struct Subject {
  Phrase phrase;  // nominative
  Agreement agreement = Agreement::third_singular;
  Person person = Person::he;
  bool pronoun = false;
  bool neuter = false;  // "the child": has no pronoun that both languages share
};

/// What a clause may have.
struct ClauseOptions {
  std::span<const Tense> tenses;  // drawn from with equal chances; one that is there twice weighs double
  bool time = true;
  bool negation = true;
  bool extras = true;  // manner, place
  bool adjectives = true;
};

class Writer {
 public:
  explicit Writer(Random& random) : random_(random) {}

  /// A sentence of any kind and length.
  SentencePair sentence();

 private:
  bool chance(uint64_t percent) { return random_.below(100) < percent; }
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_.below(static_cast<uint64_t>(high - low + 1)));
  }
  template <class T>
  const T& pick(std::span<const T> values) {
    return values[random_.below(values.size())];
  }
  template <class T, size_t N>
  const T& pick(const std::array<T, N>& values) {
    return pick(std::span<const T>(values));
  }
  template <class T, size_t N>
  const T& pick(const T (&values)[N]) {
    return pick(std::span<const T>(values));
  }

  // Phrases: phrases.cpp
  const Noun& noun(Tags tags);
  const Adjective* adjective(Tags tags, Tags Adjective::*role = &Adjective::attributive);
  void own(NounPhrase& phrase, const Subject* subject);
  NounPhrase person(Tags tags, bool adjectives);
  NounPhrase thing(const Noun& noun, const Subject* subject, bool adjectives);
  NounPhrase known_thing(Tags tags);
  Subject subject(Tags tags, bool adjectives);
  Phrase person_object(Tags tags, Case grammatical_case, const Subject& subject, bool pronouns, bool adjectives);
  Phrase place(Tags tags);
  Phrase direction(const Verb& verb);
  Phrase companion(const Subject& subject);

  // Clauses: clauses.cpp
  Clause clause(const ClauseOptions& options);
  const Verb& verb();
  Clause clause(const ClauseOptions& options, const Verb& verb, const Subject& subject);
  void add_objects(Clause& clause, const Subject& subject, bool adjectives);
  void add_extras(Clause& clause, const Subject& subject);
  void add_accusative(Clause& clause, const Subject& subject, bool adjectives);
  void add_time(Clause& clause);
  Phrase day(Tense tense, bool negated, unsigned traits);
  Phrase past_epoch();
  Phrase date(bool with_year);
  void add_tense(Clause& clause, std::span<const Tense> tenses);
  void add_predicate(Clause& clause, const Adjective& quality);
  Clause mood(const Subject& who, Tense tense);
  Clause state(std::span<const Tense> tenses);
  Clause weather(Tense tense);

  // Sentences: sentences.cpp, complex.cpp
  SentencePair plain();
  SentencePair joined();
  SentencePair reported();
  SentencePair conditional();
  SentencePair description();
  SentencePair comparison();
  SentencePair question();
  SentencePair wh_question();
  SentencePair position();
  SentencePair relative();
  SentencePair imperative();
  SentencePair amount();
  SentencePair dated();

  Random& random_;
};

}  // namespace attune::grammar

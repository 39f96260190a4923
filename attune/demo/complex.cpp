// Sentences of two clauses: conjunctions, reported speech, conditions, relative clauses.
#include "attune/demo/marks.h"
#include "attune/demo/sentences.h"

namespace attune::grammar {

using enum Tense;

namespace {

constexpr Tense kPresents[] = {progressive, progressive, perfect, modal};
constexpr Tense kPasts[] = {past, past, past_progressive};
constexpr Tense kPlans[] = {future, modal};
constexpr Tense kPresent[] = {present};

/// Two clauses joined by a conjunction, the subordinate one first or last.
SentencePair subordinate(const Clause& main, const Adverbial& conjunction, const Clause& clause, bool clause_first) {
  const std::string english = join({marked(conjunction.english, "j"), scoped('c', english_statement(clause))});
  const std::string german = join({marked(conjunction.german, "j"), scoped('c', german_subordinate(clause))});
  if (clause_first) return pair(english + ", " + english_statement(main), german_statement(main, german + ","));
  return pair(join({english_statement(main), english}), german_statement(main) + ", " + german);
}

/// "Could" and "had to" speak of the past; where the other clause does not, they become a future without its time.
void keep_present(Clause& clause) {
  if (clause.tense != modal || !*clause.modal->past) return;
  clause.tense = future;
  clause.time = {};
  settle(clause);
}

/// The same subject, named again: "he" for "the man".
Subject again(const Subject& who) {
  const Phrase pronoun{english_pronoun(who.person, false), german_pronoun(who.person, Case::nominative)};
  return {pronoun, agreement(who.person), who.person, true};
}

}  // namespace

/// "because", "although", "when", "but": both clauses speak of the same time, and most often of the same person.
SentencePair Writer::joined() {
  constexpr Adverbial kConjunctions[] = {
      {"because", "weil"}, {"although", "obwohl"}, {"because", "weil"}, {"when", "als"}};
  const bool in_past = chance(60);
  const std::span<const Tense> tenses = in_past ? std::span<const Tense>(kPasts) : kPresents;
  const Verb* verb = &this->verb();
  while (verb->subject && !(verb->subject & kPerson)) verb = &this->verb();
  const Subject who = subject(kPerson | kRelative, false);
  Clause main = clause({.tenses = tenses, .extras = false, .adjectives = false}, *verb, who);
  keep_present(main);
  if (main.time.english.starts_with("because")) {  // one reason is enough
    main.time = {};
    settle(main);
  }
  const Subject same = who.neuter ? subject(kAdult, false) : again(who);
  Clause reason;
  const uint64_t kind = random_.below(100);
  if (kind < 55) {
    reason = mood(same, in_past ? past : present);
  } else if (kind < 80) {
    reason = weather(in_past ? past_progressive : progressive);
  } else {
    const Verb* other = &this->verb();
    while (other->subject) other = &this->verb();
    reason = clause({.tenses = tenses, .time = false, .extras = chance(50), .adjectives = false}, *other, same);
    keep_present(reason);
  }
  settle(reason);
  if (chance(15)) {
    return pair(join({english_statement(main) + ",", marked("but", "j"), scoped('c', english_statement(reason))}),
                join({german_statement(main) + ",", marked("aber", "j"), scoped('c', german_statement(reason))}));
  }
  const Adverbial& conjunction = kConjunctions[random_.below(in_past ? 4 : 3)];
  const bool first = chance(35);
  if (first) settle(main);
  return subordinate(main, conjunction, reason, first);
}

/// "I know that ..." and "we do not know whether ...".
SentencePair Writer::reported() {
  constexpr Adverbial kJudgements[] = {{"it is good", "es ist gut"},
                                       {"it is possible", "es ist möglich"},
                                       {"it is important", "es ist wichtig"},
                                       {"it is a_pity", "es ist schade"}};
  const Verb& verb = pick(matrix_verbs());
  const Subject who = subject(kPerson | kRelative, false);
  Clause main = clause({.tenses = kPresent, .time = false, .negation = false, .extras = false}, verb, who);
  main.likes = false;
  const bool judged = chance(20);
  Clause content;
  if (chance(judged ? 0 : 30)) {
    content = state(kStates);
  } else {
    content = clause({.tenses = kAnyTense, .extras = false, .adjectives = false});
  }
  settle(content);
  if (judged) {
    const Adverbial& drawn = pick(kJudgements);
    const Phrase judgement = linked('w', {drawn.english, drawn.german});
    return pair(join({judgement.english, marked("that", "j"), scoped('c', english_statement(content))}),
                join({judgement.german + ",", marked("dass", "j"), scoped('c', german_subordinate(content))}));
  }
  if (std::string_view(verb.english) == "know" && chance(60) && !has_every(main)) {
    main.negated = true;
    return subordinate(main, {"whether", "ob"}, content, false);
  }
  return subordinate(main, {"that", "dass"}, content, false);
}

/// "If the weather is good tomorrow, we will ..."
SentencePair Writer::conditional() {
  const Verb* verb = &this->verb();
  while (verb->subject || verb->traits & (kAccident | kStative)) verb = &this->verb();
  const Subject who = subject(kPerson | kRelative, false);
  Clause main = clause({.tenses = kPlans, .time = false, .extras = false, .adjectives = false}, *verb, who);
  keep_present(main);
  Clause condition;
  if (chance(60) || who.neuter) {
    condition = weather(present);
  } else {
    condition = mood(again(who), present);
  }
  constexpr Adverbial kDays[] = {{"tomorrow", "morgen"}, {"today", "heute"}, {"on Sunday", "am Sonntag"}};
  if (condition.subject.german == "es" || condition.subject.german == "das Wetter") {
    if (chance(60)) {
      const Adverbial& day = pick(kDays);
      condition.time = {day.english, day.german};
    }
  }
  return subordinate(main, {"if", "wenn"}, condition, chance(60));
}

/// "The man who bought the car lives in Berlin"; "the book that I am reading is long".
SentencePair Writer::relative() {
  constexpr Tense kTold[] = {progressive, past, past, perfect, modal};
  const bool of_object = chance(45);
  const Verb* verb = &this->verb();
  while (verb->subject || (of_object && (verb->frame != Frame::accusative || verb->object & (kPerson | kRelative)))) {
    verb = &this->verb();
  }
  NounPhrase head;
  head.noun = of_object ? &noun(verb->object) : &noun(kPerson);
  if (chance(20)) head.adjective = adjective(head.noun->tags);
  const Gender gender = head.noun->gender;
  const Case role = of_object ? Case::accusative : Case::nominative;
  const std::string pronoun = german_determiner(Determiner::definite, Person::i, gender, role, false);
  const Subject who = of_object ? subject(kPerson | kRelative, false) : Subject{};
  Clause inner = clause({.tenses = kTold, .extras = false, .adjectives = false}, *verb, who);
  settle(inner);
  std::string english, german;
  if (of_object) {
    inner.accusative = {};
    inner.negative_accusative = false;
    english = join({scoped('h', head.english()), marked("that", "r"), scoped('i', english_statement(inner))});
  } else {
    english = join({scoped('h', head.english()), marked("who", "r"), scoped('i', english_statement(inner))});
  }
  german = join({scoped('h', head.german(Case::nominative)) + ",", marked(pronoun, "r"),
                 scoped('i', german_subordinate(inner))}) +
           ",";
  Clause main;
  if (!of_object && chance(60)) {
    Subject described;
    described.phrase = {english, german};
    const Verb* action = &this->verb();
    while (action->subject) action = &this->verb();
    main = clause({.tenses = kAnyTense, .extras = chance(50), .adjectives = false}, *action, described);
    settle(main);
  } else {
    const Tags tags = of_object ? head.noun->tags : kRelative;
    const Adjective* quality = adjective(tags, &Adjective::predicative);
    if (!quality || quality == head.adjective) return relative();
    main.verb = &kBe;
    main.tense = chance(75) ? present : past;
    main.subject = {english, german};
    main.predicate = {quality->english, quality->german};
  }
  return pair(english_statement(main), german_statement(main));
}

}  // namespace attune::grammar

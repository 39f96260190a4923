#include "attune/demo/sentences.h"

#include <fmt/format.h>

#include "attune/demo/marks.h"

namespace attune::grammar {

using enum Tense;

namespace {

/// In questions the past is a Perfekt in German, except with "be".
Clause asked_in_german(Clause clause) {
  if (clause.tense == past && clause.verb != &kBe) clause.tense = perfect;
  return clause;
}

/// Capitalises the first letter, which is ASCII or "ä", "ö", "ü", and adds the closing mark.
std::string closed(std::string line, char mark) {
  if (line[0] >= 'a' && line[0] <= 'z') line[0] = static_cast<char>(line[0] - 'a' + 'A');
  if (line.starts_with("ä") || line.starts_with("ö") || line.starts_with("ü")) {
    line[1] = static_cast<char>(line[1] - 0x20);
  }
  return line + mark;
}

/// Makes several words count as one in linked(), where the text has them in a row.
std::string tied(std::string text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return text;
  for (size_t i = at; i < at + words.size(); ++i)
    if (text[i] == ' ') text[i] = '_';
  return text;
}

}  // namespace

SentencePair pair(const std::string& english, const std::string& german, char mark) {
  return {closed(without_marks(english), mark), closed(without_marks(german), mark), linked_words(english, german)};
}

Phrase date(int64_t day, int64_t month, int64_t year) {
  return linked('a', {tied(tied(english_date(day, month, year), "on the"), english_ordinal(day) + " of"),
                      german_date(day, month, year)});
}

Phrase clock(int64_t hour, int64_t minute) {
  Phrase time{english_clock(hour, minute), german_clock(hour, minute)};
  for (const char* words : {"half past", "a quarter", "twenty-five past", "twenty-five to"})
    time.english = tied(time.english, words);
  for (const char* words : {"fünf vor halb", "fünf nach halb"}) time.german = tied(time.german, words);
  return linked('a', time);
}

SentencePair Writer::sentence() {
  const uint64_t kind = random_.below(100);
  if (kind < 38) return plain();
  if (kind < 46) return joined();
  if (kind < 51) return reported();
  if (kind < 55) return conditional();
  if (kind < 59) return description();
  if (kind < 64) return comparison();
  if (kind < 71) return question();
  if (kind < 77) return wh_question();
  if (kind < 83) return position();
  if (kind < 89) return relative();
  if (kind < 92) return imperative();
  return kind < 97 ? amount() : dated();
}

SentencePair Writer::plain() {
  const Clause c = clause({.tenses = kAnyTense});
  return pair(english_statement(c), german_statement(c));
}

SentencePair Writer::description() {
  const Clause c = state(kStates);
  return pair(english_statement(c), german_statement(c));
}

/// "X is older than Y", "X is not as old as Y".
SentencePair Writer::comparison() {
  const Adjective* adjective = &pick(adjectives());
  while (!*adjective->english_comparative) adjective = &pick(adjectives());
  const bool people = (adjective->predicative & kRelative) != 0;
  Tags tags = kPerson | kRelative;
  if (!people) {  // two nouns of one kind
    Tags kinds[64];
    size_t count = 0;
    for (int bit = 0; bit < 64; ++bit) {
      if (adjective->predicative & (Tags{1} << bit)) kinds[count++] = Tags{1} << bit;
    }
    tags = kinds[random_.below(count)];
  }
  Clause c;
  c.verb = &kBe;
  c.tense = chance(75) ? present : past;
  Phrase other;
  if (people) {
    const Subject who = subject(tags, false);
    c.subject = who.phrase;
    c.agreement = who.agreement;
    other = person_object(tags, Case::nominative, who, false, false);
  } else {
    NounPhrase first = thing(noun(tags), nullptr, false);
    NounPhrase second = thing(noun(tags), nullptr, false);
    if (first.noun == second.noun) return comparison();
    for (NounPhrase* p : {&first, &second}) {
      p->count = 0;
      if (p->determiner == Determiner::indefinite || p->determiner == Determiner::none)
        p->determiner = Determiner::definite;
    }
    c.subject = {first.english(), first.german(Case::nominative)};
    c.agreement = first.agreement();
    other = {second.english(), second.german(Case::nominative)};
  }
  other = linked('x', other);
  if (chance(65)) {
    const bool much = chance(20);
    c.predicate = {join({marked(much ? "much" : "", "m"), marked(adjective->english_comparative, "a"),
                         marked("than", "t"), other.english}),
                   join({marked(much ? "viel" : "", "m"), marked(adjective->german_comparative, "a"),
                         marked("als", "t"), other.german})};
  } else {
    c.negated = chance(60) && !has_every(c);
    c.predicate = {join({marked("as", "s"), marked(adjective->english, "a"), marked("as", "t"), other.english}),
                   join({marked("so", "s"), marked(adjective->german, "a"), marked("wie", "t"), other.german})};
  }
  return pair(english_statement(c), german_statement(c));
}

SentencePair Writer::question() {
  constexpr Tense kAsked[] = {present, progressive, past, past, perfect, future, modal};
  Clause c = chance(15) ? state(kStates) : clause({.tenses = kAsked, .negation = false});
  c.negated = false;
  if (c.verb->traits & kStative && c.tense == past && c.verb != &kBe) c.tense = present;
  settle(c);
  return pair(english_question(c), german_question(asked_in_german(c)), '?');
}

/// When, where, why, who, what, which.
SentencePair Writer::wh_question() {
  constexpr Tense kAsked[] = {present, progressive, past, past, perfect, future, modal};
  constexpr Adverbial kAdverbs[] = {
      {"when", "wann"}, {"why", "warum"}, {"where", "wo"}, {"how often", "wie oft"}, {"with whom", "mit wem"}};
  const Verb* verb = &this->verb();
  while (verb->traits & kStative) verb = &this->verb();
  const uint64_t kind = random_.below(100);
  const bool of_object = verb->frame == Frame::accusative && !(verb->object & (kPerson | kRelative)) && kind < 60;
  if (kind >= 60 && kind < 80 && (verb->subject == 0 || verb->subject & kAdult)) {
    const Subject who{{"who", "wer"}, Agreement::third_singular, Person::he, false};
    Clause c = clause({.tenses = kAsked, .negation = false}, *verb, who);
    settle(c);
    return pair(english_statement(c), german_statement(asked_in_german(c)), '?');
  }
  const Subject who = subject(verb->subject ? verb->subject : kPerson | kRelative, false);
  Clause c = clause({.tenses = kAsked, .time = of_object, .negation = false, .extras = of_object}, *verb, who);
  settle(c);
  c.likes = false;
  Phrase asked;
  if (of_object) {
    c.accusative = {};
    asked = {"what", "was"};
    if (chance(40)) {
      const Noun& n = noun(verb->object);
      const char* ending = n.gender == Gender::masculine ? "en" : n.gender == Gender::feminine ? "e" : "es";
      asked = {join({marked("which", "d"), marked(n.english, "n")}),
               join({marked(std::string("welch") + ending, "d"), marked(decline(n, Case::accusative, false), "n")})};
    }
  } else {
    size_t choice = random_.below(4);
    if (choice == 2 && (verb->place == 0 || verb->frame == Frame::direction)) choice = 0;
    if (choice == 3 && c.tense != present && c.tense != past) choice = 1;
    asked = {kAdverbs[choice].english, kAdverbs[choice].german};
  }
  asked = linked('w', asked);
  return pair(join({asked.english, english_question(c)}), join({asked.german, german_question(asked_in_german(c))}),
              '?');
}

/// Two-way prepositions: where a thing is (dative), and where somebody puts it (accusative).
SentencePair Writer::position() {
  constexpr Adverbial kOn[] = {
      {"on", "auf"}, {"under", "unter"}, {"next to", "neben"}, {"behind", "hinter"}, {"in front of", "vor"}};
  const bool stands = chance(50);
  const Adverbial& preposition = pick(kOn);
  const NounPhrase spot = known_thing(kFurniture);
  const Noun& n = noun(stands ? kStanding : kLying);
  const bool put = chance(50);
  Clause c;
  Subject who;
  if (put) who = subject(kPerson | kRelative, false);
  const NounPhrase p = thing(n, put ? &who : nullptr, true);
  const std::string where =
      german_prepositional(marked(preposition.german, "p"), spot.german(put ? Case::accusative : Case::dative));
  const Phrase there{join({marked(preposition.english, "p"), spot.english()}), where};
  if (!put) {
    constexpr Tense kLying[] = {progressive, progressive, past_progressive};
    c.verb = stands ? &kStand : &kLie;
    c.subject = {p.english(), p.german(Case::nominative)};
    c.agreement = p.agreement();
    c.tense = pick(kLying);
    c.place = there;
  } else {
    constexpr Tense kPutting[] = {progressive, past, perfect, future, modal};
    c.verb = stands ? &kPlace : &kLay;
    c.subject = who.phrase;
    c.agreement = who.agreement;
    add_tense(c, kPutting);
    c.accusative = {p.english(), p.german(Case::accusative)};
    c.direction = there;
    if (chance(30)) add_time(c);
  }
  return pair(english_statement(c), german_statement(c));
}

SentencePair Writer::imperative() {
  const Verb* verb = &this->verb();
  while (verb->subject || verb->traits & (kStative | kPunctual | kSlow)) verb = &this->verb();
  const Subject you{{"", ""}, Agreement::plural, Person::you, true};
  constexpr Tense kOrdered[] = {future};
  const Clause c = clause({.tenses = kOrdered, .negation = false, .extras = chance(40)}, *verb, you);
  Clause order = c;
  settle(order);
  return pair(join({marked("please", "P"), english_imperative(order)}),
              join({marked("bitte", "P"), german_imperative(order)}));
}

/// Numbers in words: prices, lengths, ages, inhabitants, and what there is.
SentencePair Writer::amount() {
  const auto say = [](const NounPhrase& p, std::string_view en_verb, std::string_view de_verb, int64_t number,
                      std::string_view en_unit, std::string_view de_unit) {
    const Phrase what = linked('s', {p.english(), p.german(Case::nominative)});
    const Phrase unit = linked('u', {std::string(en_unit), std::string(de_unit)});
    return pair(join({what.english, marked(en_verb, "V"), marked(english_number(number), "C"), unit.english}),
                join({what.german, marked(de_verb, "V"), marked(german_number(number), "C"), unit.german}));
  };
  const uint64_t kind = random_.below(100);
  if (kind < 50) {
    const NounPhrase p = known_thing(kPriced);
    const bool dear = (p.noun->tags & (kVehicle | kDevice | kFurniture | kAnimal)) != 0;
    const int64_t price = dear ? between(100, 9999) : between(2, 999);
    const bool past = chance(30);
    return say(p, past ? "cost" : "costs", past ? "kostete" : "kostet", price, "euros", "Euro");
  }
  if (kind < 60) {
    NounPhrase p = person(kRelative, false);
    p.plural = false;
    const int64_t age = between(18, 99);
    return say(p, "is", "ist", age, "years old", "Jahre alt");
  }
  if (kind < 70) {
    const NounPhrase p = known_thing(kReadable);
    const int64_t pages = between(2, 999);
    return say(p, "has", "hat", pages, "pages", "Seiten");
  }
  if (kind < 80) {
    const NounPhrase p = known_thing(kSettlement);
    const int64_t people = between(200, 9999);
    return say(p, "has", "hat", people, "inhabitants", "Einwohner");
  }
  const bool people = chance(50);
  const NounPhrase where = known_thing(people ? kSettlement | kLeisure : kRoom | kStudy | kDining);
  NounPhrase what;
  what.noun = &noun(people ? kPerson : kFurniture);
  what.determiner = Determiner::none;
  what.plural = true;
  what.count = people ? between(13, 999) : between(2, 40);
  const bool past = chance(30);
  const Phrase in = linked('l', {join({marked("in", "p"), where.english()}),
                                 german_prepositional(marked("in", "p"), where.german(Case::dative))});
  const Phrase things = linked('o', {what.english(), what.german(Case::accusative)});
  const std::string there = join({marked("there", "E"), marked(past ? "were" : "are", "V"), things.english});
  const std::string gives = marked(past ? "gab" : "gibt", "V"), es = marked("es", "E");
  if (chance(50)) return pair(join({in.english, there}), join({in.german, gives, es, things.german}));
  return pair(join({there, in.english}), join({es, gives, in.german, things.german}));
}

/// Births, buildings and the dates of events.
SentencePair Writer::dated() {
  const int64_t day = between(1, 28);
  const int64_t month = between(1, 12);
  const int64_t year = between(1950, 2023);
  const uint64_t kind = random_.below(100);
  if (kind < 45) {
    Subject who = subject(kPerson | kRelative, false);
    const std::string_view was = who.agreement == Agreement::plural ? "were" : "was";
    const std::string_view wurde = who.agreement == Agreement::plural ? "wurden" : "wurde";
    const Phrase name = linked('s', who.phrase), when = linked('t', grammar::date(day, month, year));
    return pair(join({name.english, marked(was, "A"), marked("born", "V"), when.english}),
                join({name.german, marked(wurde, "A"), when.german, marked("geboren", "V")}));
  }
  if (kind < 70) {
    const NounPhrase p = known_thing(kBuilding);
    const Phrase what = linked('s', {p.english(), p.german(Case::nominative)});
    const Phrase when = linked('t', {fmt::format("in {}", year), fmt::format("im_Jahr {}", year)});
    return pair(join({what.english, marked("was", "A"), marked("built", "V"), when.english}),
                join({what.german, marked("wurde", "A"), when.german, marked("gebaut", "V")}));
  }
  const NounPhrase p = known_thing(kEvent);
  const bool with_time = chance(50);
  const int64_t hour = between(1, 12);
  const int64_t minute = between(0, 11) * 5;
  const Phrase what = linked('s', {p.english(), p.german(Case::nominative)});
  const Phrase on = linked('t', grammar::date(day, month, 0));
  const Phrase at = with_time ? linked('k', clock(hour, minute)) : Phrase{};
  return pair(join({what.english, marked("takes place", "V"), on.english, at.english}),
              join({what.german, marked("findet", "V"), on.german, at.german, marked("statt", "V")}));
}

}  // namespace attune::grammar

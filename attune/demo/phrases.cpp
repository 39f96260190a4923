#include <algorithm>

#include "attune/demo/marks.h"
#include "attune/demo/writer.h"

namespace attune::grammar {
namespace {

constexpr Tags kOwnable = kAnimal | kReadable | kWearable | kSmall | kVehicle | kDevice | kFurniture | kPortable |
                          kStanding | kRoom | kGift | kAbstract;
constexpr Tags kPublic = kInside | kStop | kTransport | kEvent | kBuilding | kAbstract;  // "the", rarely "a"

/// Whether both are or include the speaker ("I see me", "we see me"), or both are "you".
bool clash(Person a, Person b) {
  const auto speaker = [](Person p) { return p == Person::i || p == Person::we; };
  return (speaker(a) && speaker(b)) || (a == b && a == Person::you);
}

Phrase prepositional(std::string_view english, std::string_view german, const NounPhrase& phrase,
                     Case grammatical_case) {
  return {join({marked(english, "p"), phrase.english()}),
          german_prepositional(marked(german, "p"), phrase.german(grammatical_case))};
}

}  // namespace

const Noun& Writer::noun(Tags tags) {
  const auto fits = [&](const Noun& n) { return (n.tags & tags) != 0; };
  uint64_t skip = random_.below(static_cast<uint64_t>(std::ranges::count_if(nouns(), fits)));
  for (const Noun& n : nouns()) {
    if (fits(n) && skip-- == 0) return n;
  }
  return nouns().front();  // not reached: `skip` is below the number that fit
}

/// An adjective that may stand before such a noun, or be said of it; null when there is none.
const Adjective* Writer::adjective(Tags tags, Tags Adjective::*role) {
  const auto fits = [&](const Adjective& a) { return (a.*role & tags) != 0; };
  const auto count = static_cast<uint64_t>(std::ranges::count_if(adjectives(), fits));
  uint64_t skip = count == 0 ? 0 : random_.below(count);
  for (const Adjective& a : adjectives()) {
    if (fits(a) && skip-- == 0) return &a;
  }
  return nullptr;
}

/// A possessive, most often of the subject itself.
void Writer::own(NounPhrase& phrase, const Subject* subject) {
  constexpr std::array kOwners{Person::i, Person::he, Person::she, Person::we, Person::they, Person::you};
  phrase.determiner = Determiner::possessive;
  phrase.owner = pick(kOwners);
  if (subject && chance(70)) phrase.owner = subject->person;
}

NounPhrase Writer::person(Tags tags, bool adjectives) {
  NounPhrase p;
  p.noun = &noun(tags);
  p.plural = chance(20);
  if (p.noun->tags & kRelative) {
    own(p, nullptr);
    p.plural = p.plural && !(p.noun->tags & kParent);
  } else if (const uint64_t d = random_.below(100); d < 12) {
    p.determiner = p.plural ? Determiner::demonstrative : Determiner::indefinite;
  } else if (d < 20) {
    p.determiner = Determiner::demonstrative;
  } else if (d < 24 && !p.plural) {
    p.determiner = Determiner::every;
  } else if (d < 30 && p.plural) {
    p.determiner = Determiner::none;
    p.count = between(2, 12);
  }
  if (adjectives && chance(30)) p.adjective = adjective(p.noun->tags);
  if ((p.noun->tags & kRelative) && chance(10)) {  // "the teacher's brother"
    NounPhrase owner;
    owner.noun = &noun(kAdult);
    p.owner_phrase = {owner.english() + "'s", owner.german(Case::genitive)};
    p.determiner = Determiner::definite;
  }
  return p;
}

/// Any determiner that suits the noun. `subject` may own it.
NounPhrase Writer::thing(const Noun& noun, const Subject* subject, bool adjectives) {
  NounPhrase p;
  p.noun = &noun;
  const uint64_t d = random_.below(100);
  if (!*noun.english_plural) {
    p.determiner = d < 70 ? Determiner::none : Determiner::definite;
  } else if (noun.tags & kPublic & ~(kRoom | kAbstract)) {
    p.determiner = d < 75 ? Determiner::definite : d < 88 ? Determiner::indefinite : Determiner::demonstrative;
  } else if (d < 30) {
    p.plural = d < 7;
  } else if (d < 52) {
    p.determiner = Determiner::indefinite;
  } else if (d < 74) {
    if (noun.tags & kOwnable) own(p, subject);
    p.plural = d < 57;
  } else if (d < 82) {
    p.determiner = Determiner::demonstrative;
    p.plural = d < 76;
  } else if (d < 90) {
    p.determiner = Determiner::none;
    p.plural = true;
  } else if (d < 96) {
    p.determiner = Determiner::none;
    p.plural = true;
    p.count = between(2, 12);
  } else if ((noun.tags & kOwnable) && !(noun.tags & kAbstract)) {  // "the teacher's car"
    NounPhrase owner;
    owner.noun = &this->noun(kPerson | kRelative);
    if (owner.noun->tags & kRelative) own(owner, nullptr);
    p.owner_phrase = {owner.english() + "'s", owner.german(Case::genitive)};
  }
  if (adjectives && chance(35)) p.adjective = adjective(noun.tags);
  return p;
}

/// "the station", "the old garden": one that everybody knows.
NounPhrase Writer::known_thing(Tags tags) {
  NounPhrase p;
  p.noun = &noun(tags);
  if (chance(20)) p.adjective = adjective(p.noun->tags);
  return p;
}

Subject Writer::subject(Tags tags, bool adjectives) {
  constexpr std::array kPersons{Person::i, Person::he, Person::she, Person::we, Person::they, Person::you};
  Subject s;
  const Tags people = kPerson | kRelative;
  const uint64_t kind = (tags & people) == people ? random_.below(100) : 100;
  if (kind < 32) {
    s.person = pick(kPersons);
    s.pronoun = true;
    s.agreement = agreement(s.person);
    s.phrase = {english_pronoun(s.person, false), german_pronoun(s.person, Case::nominative)};
    return s;
  }
  if (kind < 45) {
    const size_t name = random_.below(kFirstNames.size());
    const Adverbial& names = kFirstNames[name];
    const std::string_view german = names.german;
    const bool woman = german.ends_with("a") || german.starts_with("Frau");
    s.person = woman ? Person::she : Person::he;
    s.phrase = {names.english, names.german};
    return s;
  }
  NounPhrase p;
  if (tags & people) {
    p = person(tags, adjectives);
  } else {
    p = known_thing(tags);
    p.plural = chance(15);
  }
  s.agreement = p.agreement();
  const Gender gender = p.noun->gender;
  s.neuter = gender == Gender::neuter && !p.plural;
  const bool female = gender == Gender::feminine || std::string_view(p.noun->english) == "girl";
  s.person = p.plural ? Person::they : female ? Person::she : Person::he;
  s.phrase = {p.english(), p.german(Case::nominative)};
  return s;
}

/// A person as an object. Datives are never indefinite, so that "nicht" finds its place.
Phrase Writer::person_object(Tags tags, Case grammatical_case, const Subject& subject, bool pronouns, bool adjectives) {
  const uint64_t kind = random_.below(100);
  if (kind < 28 && pronouns) {
    constexpr std::array kPersons{Person::i, Person::he, Person::she, Person::we, Person::they, Person::you};
    const Person object = pick(kPersons);
    if (!clash(subject.person, object) || !subject.pronoun) {
      return {english_pronoun(object, true), german_pronoun(object, grammatical_case), true};
    }
  }
  const Adverbial& name = pick(kFirstNames);
  if (kind < 40 && name.english != subject.phrase.english) {
    std::string german = name.german;
    if (german.starts_with("Herr ")) german.insert(german.begin() + 4, 'n');
    return {name.english, german};
  }
  NounPhrase p = person(tags, adjectives);
  if (p.noun->tags & kRelative && p.owner_phrase.english.empty()) own(p, &subject);
  if (p.determiner == Determiner::indefinite || p.determiner == Determiner::every || p.count > 1) {
    p.determiner = Determiner::definite;
    p.count = 0;
  }
  return {p.english(), p.german(grammatical_case)};
}

/// Where: "in the old garden", "at the station", "in Vienna", "at home".
Phrase Writer::place(Tags tags) {
  if ((tags & kSettlement) && chance(40)) {
    const Adverbial& city = pick(kCities);
    return {std::string("in ") + city.english, std::string("in ") + city.german};
  }
  if ((tags & kRoom) && chance(20)) return {"at home", "zu Hause"};
  const NounPhrase p = known_thing(tags);
  const bool stop = (p.noun->tags & kStop) != 0;
  return prepositional(stop ? "at" : "in", stop ? "an" : "in", p, Case::dative);
}

/// Where to: "to the station", "into the kitchen", "to Vienna", "home".
Phrase Writer::direction(const Verb& verb) {
  if (verb.place == 0) {
    const Adverbial& city = pick(kCities);
    return {std::string("to ") + city.english, std::string("nach ") + city.german};
  }
  if (chance(15)) return {"home", "nach Hause"};
  const NounPhrase p = known_thing(verb.place);
  if (p.noun->tags & kStop) return prepositional("to", "zu", p, Case::dative);
  return prepositional(p.noun->tags & kRoom ? "into" : "to", "in", p, Case::accusative);
}

/// "with my brother": a person other than the subject.
Phrase Writer::companion(const Subject& subject) {
  const Phrase other = linked('x', person_object(kRelative, Case::dative, subject, true, false));
  return {join({marked("with", "p"), other.english}), join({marked("mit", "p"), other.german})};
}

}  // namespace attune::grammar

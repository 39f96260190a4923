#include "attune/demo/marks.h"
#include "attune/demo/sentences.h"

namespace attune::grammar {
namespace {

constexpr Adverbial kHabits[] = {{"every day", "jeden Tag"},     {"every morning", "jeden Morgen"},
                                 {"every week", "jede Woche"},   {"every evening", "jeden Abend"},
                                 {"on_Sundays", "sonntags"},     {"on_Fridays", "freitags"},
                                 {"in_the winter", "im Winter"}, {"in_the summer", "im Sommer"}};
constexpr Adverbial kFrequencies[] = {
    {"often", "oft"}, {"always", "immer"}, {"sometimes", "manchmal"}, {"never", "nie"}, {"rarely", "selten"}};
constexpr Adverbial kNow[] = {{"now", "jetzt"}, {"at_the moment", "im Moment"}, {"today", "heute"}};
constexpr Adverbial kPastDays[] = {{"yesterday", "gestern"},
                                   {"yesterday evening", "gestern Abend"},
                                   {"the day before yesterday", "vorgestern"},
                                   {"this morning", "heute Morgen"}};
constexpr Adverbial kPastEpochs[] = {
    {"last week", "letzte Woche"}, {"last year", "letztes Jahr"}, {"last month", "letzten Monat"}};
constexpr Adverbial kComingDays[] = {{"tomorrow", "morgen"},
                                     {"the day after tomorrow", "übermorgen"},
                                     {"this evening", "heute Abend"},
                                     {"tomorrow evening", "morgen Abend"}};
constexpr Adverbial kComingEpochs[] = {{"next week", "nächste Woche"},
                                       {"next year", "nächstes Jahr"},
                                       {"next month", "nächsten Monat"},
                                       {"in_the summer", "im Sommer"}};
constexpr Adverbial kSoFar[] = {{"today", "heute"}, {"this week", "diese Woche"}, {"this morning", "heute Morgen"}};
constexpr Adverbial kWeekdays[] = {{"on Monday", "am Montag"},      {"on Tuesday", "am Dienstag"},
                                   {"on Wednesday", "am Mittwoch"}, {"on Thursday", "am Donnerstag"},
                                   {"on Friday", "am Freitag"},     {"on Saturday", "am Samstag"},
                                   {"on Sunday", "am Sonntag"}};
constexpr Adverbial kCauses[] = {{"because_of the rain", "wegen des Regens"},
                                 {"because_of the snow", "wegen des Schnees"},
                                 {"because_of the weather", "wegen des Wetters"},
                                 {"during the holidays", "während der Ferien"}};
constexpr Adverbial kUnits[] = {{"weeks", "Wochen"}, {"months", "Monaten"}, {"years", "Jahren"}};
constexpr Adverbial kMeans[] = {
    {"by train", "mit dem_Zug"}, {"by bus", "mit dem_Bus"}, {"by car", "mit dem_Auto"}, {"by ship", "mit dem_Schiff"}};

Phrase phrase(const Adverbial& adverbial) {
  return {adverbial.english, adverbial.german};
}

bool generic_article(const NounPhrase& p) {
  return p.determiner == Determiner::indefinite || p.determiner == Determiner::none;
}

}  // namespace

const Verb& Writer::verb() {
  return pick(verbs());
}

Clause Writer::clause(const ClauseOptions& options) {
  const Verb& drawn = verb();
  const Subject who = subject(drawn.subject ? drawn.subject : kPerson | kRelative, options.adjectives);
  return clause(options, drawn, who);
}

Clause Writer::clause(const ClauseOptions& options, const Verb& drawn, const Subject& who) {
  Clause c;
  c.subject = who.phrase;
  c.agreement = who.agreement;
  c.verb = &drawn;
  add_tense(c, options.tenses);
  const bool habit = c.tense == Tense::present && !(drawn.traits & kStative);
  c.likes = habit && !(drawn.traits & kPunctual) && drawn.subject == 0 && chance(15);
  c.negated = options.negation && !c.likes && chance(16) && !has_every(c) &&
              (c.tense != Tense::modal || c.modal->negatable) && !(habit && (drawn.traits & kPunctual));
  c.yet = c.negated && c.tense == Tense::perfect && chance(60);
  add_objects(c, who, options.adjectives);
  if (options.extras) add_extras(c, who);
  if (options.time && !c.yet && !c.likes && (habit || chance(55))) add_time(c);
  return c;
}

/// Draws a tense, and replaces it by another where it does not suit the verb. What is past stays past.
void Writer::add_tense(Clause& c, std::span<const Tense> tenses) {
  const unsigned traits = c.verb->traits;
  c.tense = pick(tenses);
  if (c.tense == Tense::modal) c.modal = &pick(modals());
  const bool thing = c.verb->subject && !(c.verb->subject & kRelative) && !(c.verb->subject & kPerson);
  if (c.tense == Tense::modal && thing) c.tense = Tense::future;  // a train wants nothing
  if ((traits & kAccident) && (c.tense == Tense::modal || c.tense == Tense::future)) c.tense = Tense::perfect;
  const bool past = c.tense == Tense::past_progressive;
  if ((traits & (kStative | kPunctual)) && (past || c.tense == Tense::progressive)) {
    c.tense = past ? Tense::past : Tense::present;
  }
  if (c.tense == Tense::present && (traits & kPunctual) && (traits & kOnce))
    c.tense = Tense::perfect;  // nobody's habit
  if ((traits & kStative) && c.tense == Tense::perfect) c.tense = Tense::past;
  if ((traits & kStative) && (c.tense == Tense::modal || c.tense == Tense::future)) c.tense = Tense::present;
  // "They read" is present and past: the progressive tells them apart.
  if (c.agreement != Agreement::third_singular && std::string_view(c.verb->english) == c.verb->english_past) {
    if (c.tense == Tense::present) c.tense = Tense::progressive;
    if (c.tense == Tense::past) c.tense = Tense::past_progressive;
  }
}

void Writer::add_objects(Clause& c, const Subject& who, bool adjectives) {
  const Verb& v = *c.verb;
  constexpr Tags kPeople = kPerson | kRelative;
  switch (v.frame) {
    case Frame::intransitive:
      return;
    case Frame::accusative:
      return add_accusative(c, who, adjectives);
    case Frame::ditransitive:
    case Frame::to_dative:
      c.dative_with_to = v.frame == Frame::to_dative;
      c.dative = person_object(kPeople, Case::dative, who, true, adjectives && chance(50));
      return add_accusative(c, who, adjectives);
    case Frame::dative:
      c.dative = person_object(v.object, Case::dative, who, true, adjectives);
      return;
    case Frame::direction:
      c.direction = direction(v);
      return;
    case Frame::oblique:
      break;
  }
  const Noun& n = noun(v.object);
  if (n.tags & kPeople) {
    const Phrase other = linked('x', person_object(kPeople, v.preposition_case, who, true, adjectives));
    c.oblique = {other.english, join({v.preposition, other.german})};
  } else {
    const NounPhrase p = thing(n, &who, adjectives);
    c.oblique = {p.english(), german_prepositional(v.preposition, p.german(v.preposition_case))};
  }
}

void Writer::add_accusative(Clause& c, const Subject& who, bool adjectives) {
  const Verb& v = *c.verb;
  constexpr Tags kPeople = kPerson | kRelative;
  const Noun& n = noun(v.object);
  if (n.tags & kPeople) {
    c.accusative = person_object(kPeople, Case::accusative, who, !(v.traits & kParticle), adjectives);
    return;
  }
  NounPhrase p = thing(n, &who, adjectives);
  if (c.likes || (c.tense == Tense::present && (v.traits & kOnce))) {  // a habit: things in general
    p.determiner = Determiner::none;
    p.plural = *n.english_plural != 0;
    p.count = 0;
    p.owner_phrase = {};
  }
  const bool single = v.object == kDevice || v.object == kOpenable;  // nobody "turns on lamps"
  if (single && !c.likes && p.determiner == Determiner::none && p.count == 0) p.determiner = Determiner::definite;
  if (c.negated) p.count = 0;
  c.negative_accusative = c.negated && generic_article(p);
  c.accusative = {p.english(), p.german(Case::accusative, c.negative_accusative), false, generic_article(p)};
}

/// Where, with whom, and by which means.
void Writer::add_extras(Clause& c, const Subject& who) {
  const Verb& v = *c.verb;
  constexpr Tags kShared = kFood | kDrink | kRoom | kSettlement | kAbstract;
  const bool personal = v.subject == 0 || (v.subject & kPerson);
  bool shared = v.frame == Frame::intransitive || v.frame == Frame::direction;
  if (v.frame == Frame::oblique) shared = !(v.traits & kNoPlace);
  if (v.frame == Frame::accusative) shared = (v.object & kShared) != 0;
  shared = shared && personal && !(v.traits & (kPunctual | kStative | kAlone));
  if (v.frame == Frame::direction && v.place == 0 && std::string_view(v.english) == "travel" && chance(35)) {
    c.manner = phrase(pick(kMeans));
  } else if (shared && chance(15)) {
    c.manner = companion(who);
  }
  const bool always = std::string_view(v.english) == "live";
  if (v.place != 0 && v.frame != Frame::direction && (always || chance(35))) c.place = place(v.place);
}

/// A day or a frequency, and for routines a time of day.
void Writer::add_time(Clause& c) {
  if (c.verb->traits & kStative) return;
  const bool habit = c.tense == Tense::present;
  const bool scheduled = habit && c.verb->subject && !(c.verb->subject & kRelative);  // trains and concerts
  const bool routine = (c.verb->traits & kRoutine) && !c.negated && c.tense != Tense::perfect &&
                       c.tense != Tense::progressive && c.tense != Tense::past_progressive;
  if (routine && (scheduled || chance(35))) {
    const int64_t hour = between(1, 12);
    const int64_t minute = between(0, 11) * 5;
    c.time = clock(hour, minute);
    c.time_in_front = chance(35);
    return;
  }
  if ((habit && !c.negated && chance(45)) || (c.tense == Tense::perfect && !c.negated && chance(65))) {
    constexpr Adverbial kDone[] = {{"already", "schon"}, {"never", "noch nie"}, {"often", "oft"}};
    c.time = phrase(habit ? pick(kFrequencies) : pick(kDone));
    c.time_inside = true;
    return;
  }
  if (habit && c.negated) return;  // "not every day" is another thought than "every day not"
  const bool past_modal = c.tense == Tense::modal && *c.modal->past;
  c.time = day(past_modal ? Tense::past : c.tense, c.negated, c.verb->traits);
  c.time_in_front = chance(35);
}

/// A time or a cause that suits the tense and the verb: kEpoch and kSlow in its `traits` take times longer than a day.
Phrase Writer::day(Tense tense, bool negated, unsigned traits) {
  const bool epoch = (traits & kEpoch) != 0;
  const bool slow = (traits & kSlow) != 0;
  const uint64_t kind = random_.below(100);
  if (kind < 7 && tense != Tense::perfect && !(tense == Tense::present)) return phrase(pick(kCauses));
  switch (tense) {
    case Tense::present:
      return phrase(pick(kHabits));
    case Tense::progressive:
      return phrase(pick(kNow));
    case Tense::perfect:
      return phrase(pick(kSoFar));
    case Tense::past_progressive:
      return phrase(pick(kPastDays));
    case Tense::past:
      if (slow || (epoch && kind < 40)) return past_epoch();
      if (kind < 60) return phrase(pick(kPastDays));
      if (kind < 75 && !negated) return date(epoch && chance(50));
      return phrase(pick(kWeekdays));
    default:
      if (kind < 11 && !negated) return {"soon", "bald"};
      if (slow || (epoch && kind < 40)) return phrase(pick(kComingEpochs));
      if (kind < 60) return phrase(pick(kComingDays));
      if (kind < 70 && !negated) return date(false);
      return phrase(pick(kWeekdays));
  }
}

/// "last year", "three months ago".
Phrase Writer::past_epoch() {
  if (chance(50)) return phrase(pick(kPastEpochs));
  const int64_t count = between(2, 12);
  const Adverbial& unit = pick(kUnits);
  return {join({marked(english_number(count), "c"), marked(unit.english, "n"), marked("ago", "p")}),
          join({marked("vor", "p"), marked(german_number(count), "c"), marked(unit.german, "n")})};
}

Phrase Writer::date(bool with_year) {
  const int64_t day = between(1, 28);
  const int64_t month = between(1, 12);
  const int64_t year = with_year ? between(1950, 2023) : 0;
  return grammar::date(day, month, year);
}

/// "too tired", "sehr müde".
void Writer::add_predicate(Clause& c, const Adjective& quality) {
  constexpr Adverbial kDegrees[] = {{"very", "sehr"}, {"too", "zu"}, {"really", "wirklich"}};
  c.verb = &kBe;
  c.negated = !has_every(c) && chance(18);
  const bool gradable = *quality.english_comparative || (quality.predicative & kMood);
  const Adverbial degree = !c.negated && gradable && chance(45) ? pick(kDegrees) : Adverbial{"", ""};
  c.predicate = {join({degree.english, quality.english}), join({degree.german, quality.german})};
}

/// How people feel: "because she was tired".
Clause Writer::mood(const Subject& who, Tense tense) {
  Clause c;
  c.tense = tense;
  c.subject = who.phrase;
  c.agreement = who.agreement;
  add_predicate(c, *adjective(kMood, &Adjective::predicative));
  return c;
}

/// A person or thing and how they are: "the soup was cold".
Clause Writer::state(std::span<const Tense> tenses) {
  Clause c;
  c.tense = pick(tenses);
  const Adjective* quality = &pick(adjectives());
  while (quality->predicative == 0) quality = &pick(adjectives());
  if ((quality->predicative & kRelative) && chance(75)) {
    const Subject who = subject(kPerson | kRelative, false);
    c.subject = who.phrase;
    c.agreement = who.agreement;
  } else {
    const Tags things = quality->predicative & ~(kPerson | kRelative | kMood);
    NounPhrase p = thing(noun(things ? things : kAdult), nullptr, false);
    if (generic_article(p)) p.determiner = Determiner::definite;
    p.count = 0;
    c.subject = {p.english(), p.german(Case::nominative)};
    c.agreement = p.agreement();
  }
  add_predicate(c, *quality);
  return c;
}

Clause Writer::weather(Tense tense) {
  static constexpr Verb kRain{"rain",   "rained", "rained",  "raining",  "",
                              "regnen", "regnet", "regnete", "geregnet", Frame::intransitive};
  static constexpr Verb kSnow{"snow",     "snowed",  "snowed",   "snowing",   "",
                              "schneien", "schneit", "schneite", "geschneit", Frame::intransitive};
  static constexpr Verb kShine{"shine",    "shone",   "shone",  "shining",    "",
                               "scheinen", "scheint", "schien", "geschienen", Frame::intransitive};
  Clause c;
  c.tense = tense;
  c.subject = {"it", "es"};
  switch (random_.below(4)) {
    case 0:
      c.verb = &kRain;
      break;
    case 1:
      c.verb = &kSnow;
      break;
    case 2:
      c.verb = &kShine;
      c.subject = {"the sun", "die Sonne"};
      break;
    default: {
      constexpr Adverbial kWeather[] = {{"good", "gut"}, {"bad", "schlecht"}, {"beautiful", "schön"}};
      c.verb = &kBe;
      if (c.tense == Tense::progressive) c.tense = Tense::present;
      if (c.tense == Tense::past_progressive) c.tense = Tense::past;
      c.subject = {"the weather", "das Wetter"};
      c.predicate = phrase(pick(kWeather));
    }
  }
  return c;
}

}  // namespace attune::grammar

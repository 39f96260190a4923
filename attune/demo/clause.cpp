#include "attune/demo/clause.h"

namespace attune::grammar {
namespace {

bool third(const Clause& c) {
  return c.agreement == Agreement::third_singular;
}

std::string_view english_be(const Clause& c, bool past) {
  if (past) return c.agreement == Agreement::plural ? "were" : "was";
  if (third(c)) return "is";
  return c.agreement == Agreement::plural ? "are" : "am";
}

/// The English verb: with an auxiliary, `rest` follows it; without one, `finite` stands alone and questions and
/// negation are "do" with `rest`.
struct EnglishVerb {
  std::string auxiliary, finite, rest;
  std::string_view do_form;
};

EnglishVerb english_modal(const Clause& c) {
  const Modal& modal = *c.modal;
  const std::string base = modal.base + std::string(c.verb->english);
  if (*modal.auxiliary) return {modal.auxiliary, "", base, ""};
  const bool past = *modal.past != 0;
  const std::string_view inflected = past || third(c) ? modal.third : modal.base;
  return {"", std::string(inflected).append(c.verb->english), base, past ? "did" : third(c) ? "does" : "do"};
}

EnglishVerb english_verb(const Clause& c) {
  const Verb& verb = *c.verb;
  const std::string_view do_form = third(c) ? "does" : "do";
  switch (c.tense) {
    case Tense::present:
      if (&verb == &kBe) return {std::string(english_be(c, false)), "", "", ""};
      if (c.likes)
        return {"", join({third(c) ? "likes to" : "like to", verb.english}), join({"like to", verb.english}), do_form};
      return {"", third(c) ? english_third_person(verb.english) : verb.english, verb.english, do_form};
    case Tense::past:
      if (&verb == &kBe) return {std::string(english_be(c, true)), "", "", ""};
      return {"", verb.english_past, verb.english, "did"};
    case Tense::progressive:
    case Tense::past_progressive:
      return {std::string(english_be(c, c.tense == Tense::past_progressive)), "", verb.english_gerund, ""};
    case Tense::perfect:
      return {third(c) ? "has" : "have", "", verb.english_participle, ""};
    case Tense::future:
      return {"will", "", verb.english, ""};
    case Tense::modal:
      break;
  }
  return english_modal(c);
}

std::string english_complements(const Clause& c) {
  const std::string to = c.dative_with_to ? join({"to", c.dative.english}) : "";
  const bool time_last = !c.time_inside && !c.time_in_front;
  return join({c.dative_with_to ? "" : c.dative.english, c.accusative.english, to, c.oblique.english,
               c.predicate.english, c.direction.english, c.manner.english, c.place.english,
               time_last ? c.time.english : "", c.yet ? "yet" : ""});
}

/// The German verb: the finite part stands second, first or last, the tail closes the clause before it.
struct GermanVerb {
  std::string finite, tail;
};

GermanVerb german_verb(const Clause& c) {
  const Verb& verb = *c.verb;
  const bool plural = c.agreement == Agreement::plural;
  const bool first = c.agreement == Agreement::first_singular;
  const std::string infinitive = std::string(verb.prefix) + verb.german;
  switch (c.tense) {
    case Tense::present:
    case Tense::progressive:
      return {german_finite(verb, c.agreement, false), verb.prefix};
    case Tense::past:
    case Tense::past_progressive:
      return {german_finite(verb, c.agreement, true), verb.prefix};
    case Tense::perfect:
      return {german_finite((verb.traits & kSein) ? kBe : kHave, c.agreement, false), verb.german_participle};
    case Tense::future:
      return {plural ? "werden" : first ? "werde" : "wird", infinitive};
    case Tense::modal:
      break;
  }
  return {plural ? c.modal->german_plural : c.modal->german_singular, infinitive};
}

/// What stands between subject and verb: pronouns, time, definite objects, negation, manner and place, indefinite
/// object, and what belongs closest to the verb.
std::string german_middle(const Clause& c, bool with_time) {
  const std::string_view none;
  const std::string_view accusative = c.accusative.german;
  const bool late = c.accusative.indefinite || c.negative_accusative;
  const bool nicht = c.negated && !c.negative_accusative;
  return join({c.accusative.pronoun ? accusative : none, c.dative.pronoun ? c.dative.german : none,
               with_time ? c.time.german : none, c.dative.pronoun ? none : c.dative.german,
               c.accusative.pronoun || late ? none : accusative, nicht && c.yet ? "noch" : none, nicht ? "nicht" : none,
               c.likes ? "gern" : none, c.manner.german, c.place.german, late && c.yet && c.negated ? "noch" : none,
               late ? accusative : none, c.oblique.german, c.direction.german, c.predicate.german});
}

}  // namespace

std::string join(std::initializer_list<std::string_view> words) {
  std::string line;
  for (const std::string_view word : words) {
    if (word.empty()) continue;
    if (!line.empty()) line += ' ';
    line += word;
  }
  return line;
}

std::string NounPhrase::english() const {
  const std::string word = plural ? noun->english_plural : noun->english;
  const std::string described = adjective ? join({adjective->english, word}) : word;
  if (!owner_phrase.english.empty()) return join({owner_phrase.english, described});
  switch (determiner) {
    case Determiner::none:
      return count > 1 ? join({english_number(count), described}) : described;
    case Determiner::definite:
      return join({"the", described});
    case Determiner::indefinite:
      return plural ? described : join({english_indefinite(described), described});
    case Determiner::negative:
      return join({"no", described});
    case Determiner::possessive:
      return join({english_possessive(owner), described});
    case Determiner::demonstrative:
      return join({plural ? "these" : "this", described});
    case Determiner::every:
      return join({"every", described});
  }
  return described;
}

std::string NounPhrase::german(Case grammatical_case, bool negative) const {
  const Determiner used = negative ? Determiner::negative : determiner;
  const std::string word = decline(*noun, grammatical_case, plural);
  const std::string number = count > 1 ? german_number(count) : "";
  std::string described;
  if (adjective) {
    described = adjective->german_stem + adjective_ending(used, noun->gender, grammatical_case, plural);
  }
  return join({german_determiner(used, owner, noun->gender, grammatical_case, plural), number, described, word,
               owner_phrase.german});
}

std::string english_statement(const Clause& c) {
  const EnglishVerb verb = english_verb(c);
  const std::string_view inside = c.time_inside ? std::string_view(c.time.english) : "";
  const std::string_view front = c.time_in_front ? std::string_view(c.time.english) : "";
  std::string group;
  if (!verb.auxiliary.empty()) {
    group = c.negated && verb.auxiliary == "can" ? "cannot" : join({verb.auxiliary, c.negated ? "not" : ""});
    group = join({group, inside, verb.rest});
  } else {
    group = c.negated ? join({verb.do_form, "not", inside, verb.rest}) : join({inside, verb.finite});
  }
  return join({front, c.subject.english, group, english_complements(c)});
}

std::string english_question(const Clause& c) {
  const EnglishVerb verb = english_verb(c);
  const std::string_view inside = c.time_inside ? std::string_view(c.time.english) : "";
  const std::string_view first = verb.auxiliary.empty() ? verb.do_form : std::string_view(verb.auxiliary);
  return join({first, c.subject.english, c.negated ? "not" : "", inside, verb.rest, english_complements(c)});
}

std::string english_imperative(const Clause& c) {
  return join({c.verb->english, english_complements(c)});
}

std::string german_statement(const Clause& c, std::string_view front) {
  const GermanVerb verb = german_verb(c);
  const bool time_first = front.empty() && c.time_in_front;
  const std::string middle = german_middle(c, !time_first);
  if (time_first) front = c.time.german;
  if (front.empty()) return join({c.subject.german, verb.finite, middle, verb.tail});
  return join({front, verb.finite, c.subject.german, middle, verb.tail});
}

std::string german_question(const Clause& c) {
  const GermanVerb verb = german_verb(c);
  return join({verb.finite, c.subject.german, german_middle(c, true), verb.tail});
}

std::string german_subordinate(const Clause& c) {
  const GermanVerb verb = german_verb(c);
  const bool separable = *c.verb->prefix && verb.tail == c.verb->prefix;
  const std::string closing = separable ? verb.tail + verb.finite : join({verb.tail, verb.finite});
  return join({c.subject.german, german_middle(c, true), closing});
}

std::string german_imperative(const Clause& c) {
  return join({c.verb->german, "Sie", german_middle(c, true), c.verb->prefix});
}

}  // namespace attune::grammar

#include "attune/demo/clause.h"

#include <algorithm>

#include "attune/demo/marks.h"

namespace attune::grammar {
namespace {

// Marks of a clause. A verb in one word has those of the auxiliary and of the verb, so that "sang" is linked with both
// words of "hat gesungen".
constexpr std::string_view kAuxiliary = "A", kMain = "V", kNot = "N", kYet = "Y", kLikes = "L";

std::string both_marked(std::string_view text) {
  return marked(marked(text, kAuxiliary), kMain);
}

bool third(const Clause& c) {
  return c.agreement == Agreement::third_singular;
}

std::string_view english_be(const Clause& c, bool past) {
  if (past) return c.agreement == Agreement::plural ? "were" : "was";
  if (third(c)) return "is";
  return c.agreement == Agreement::plural ? "are" : "am";
}

/// The English verb. With an auxiliary, `rest` follows it. Without one, `finite` stands alone in a statement, and
/// questions and negations have `do_form` and `rest`.
struct EnglishVerb {
  std::string auxiliary, finite, rest, do_form;
};

EnglishVerb with_auxiliary(std::string_view auxiliary, std::string_view rest) {
  return {marked(auxiliary, kAuxiliary), "", marked(rest, kMain), ""};
}

EnglishVerb english_modal(const Clause& c) {
  const Modal& modal = *c.modal;
  const std::string verb = marked(c.verb->english, kMain);
  const std::string base = join({marked(modal.base, kAuxiliary), verb});
  if (*modal.auxiliary) return {marked(modal.auxiliary, kAuxiliary), "", base, ""};
  const bool past = *modal.past != 0;
  const std::string_view inflected = past || third(c) ? modal.third : modal.base;
  return {"", join({marked(inflected, kAuxiliary), verb}), base,
          marked(past       ? "did"
                 : third(c) ? "does"
                            : "do",
                 kAuxiliary)};
}

EnglishVerb english_present(const Clause& c) {
  const std::string verb = c.verb->english, rest = marked(verb, kMain);
  const std::string do_form = marked(third(c) ? "does" : "do", kAuxiliary);
  if (c.likes)
    return {"", join({marked(third(c) ? "likes to" : "like to", kLikes), both_marked(verb)}),
            join({marked("like to", kLikes), rest}), do_form};
  return {"", both_marked(third(c) ? english_third_person(verb) : verb), rest, do_form};
}

EnglishVerb english_verb(const Clause& c) {
  const Verb& verb = *c.verb;
  switch (c.tense) {
    case Tense::present:
      return &verb == &kBe ? with_auxiliary(english_be(c, false), "") : english_present(c);
    case Tense::past:
      if (&verb == &kBe) return with_auxiliary(english_be(c, true), "");
      return {"", both_marked(verb.english_past), marked(verb.english, kMain), marked("did", kAuxiliary)};
    case Tense::progressive:
    case Tense::past_progressive:
      return with_auxiliary(english_be(c, c.tense == Tense::past_progressive), verb.english_gerund);
    case Tense::perfect:
      return with_auxiliary(third(c) ? "has" : "have", verb.english_participle);
    case Tense::future:
      return with_auxiliary("will", verb.english);
    case Tense::modal:
      break;
  }
  return english_modal(c);
}

/// The words of both languages with marks, in the places of the clause.
Clause with_marks(Clause c) {
  for (const auto& [scope, phrase] : {std::pair{'s', &c.subject},
                                      {'t', &c.time},
                                      {'d', &c.dative},
                                      {'o', &c.accusative},
                                      {'p', &c.oblique},
                                      {'q', &c.predicate},
                                      {'r', &c.direction},
                                      {'m', &c.manner},
                                      {'l', &c.place}})
    *phrase = linked(scope, *phrase);
  if (c.negative_accusative) c.accusative.german = first_marked(c.accusative.german, kNot);       // "kein"
  if (c.verb->frame == Frame::oblique) c.oblique.german = first_marked(c.oblique.german, kMain);  // "auf": "wait for"
  return c;
}

std::string english_complements(const Clause& c) {
  const std::string to = c.dative_with_to ? join({"to", c.dative.english}) : "";
  const bool time_last = !c.time_inside && !c.time_in_front;
  return join({c.dative_with_to ? "" : c.dative.english, c.accusative.english, to, c.oblique.english,
               c.predicate.english, c.direction.english, c.manner.english, c.place.english,
               time_last ? c.time.english : "", c.yet ? marked("yet", kYet) : ""});
}

/// The German verb. The finite part stands second, first or last. The tail closes the clause; where the finite part
/// stands last, the tail comes right before it.
struct GermanVerb {
  std::string finite, tail;
  bool separated = false;  // the tail is the finite part's prefix
};

GermanVerb german_verb(const Clause& c) {
  const Verb& verb = *c.verb;
  const bool plural = c.agreement == Agreement::plural;
  const bool first = c.agreement == Agreement::first_singular;
  const std::string infinitive = std::string(verb.prefix) + verb.german;
  const auto simple = [&](bool past) {
    return GermanVerb{both_marked(german_finite(verb, c.agreement, past)), marked(verb.prefix, kMain),
                      *verb.prefix != 0};
  };
  const auto compound = [](std::string_view finite, std::string_view tail) {
    return GermanVerb{marked(finite, kAuxiliary), marked(tail, kMain)};
  };
  switch (c.tense) {
    case Tense::present:
    case Tense::progressive:
      return simple(false);
    case Tense::past:
    case Tense::past_progressive:
      return simple(true);
    case Tense::perfect:
      return compound(german_finite((verb.traits & kSein) ? kBe : kHave, c.agreement, false), verb.german_participle);
    case Tense::future:
      return compound(plural ? "werden" : first ? "werde" : "wird", infinitive);
    case Tense::modal:
      break;
  }
  return compound(plural ? c.modal->german_plural : c.modal->german_singular, infinitive);
}

/// What stands between subject and verb: pronouns, time, definite objects, negation, manner and place, indefinite
/// object, and what belongs closest to the verb.
std::string german_middle(const Clause& c, bool with_time) {
  const std::string_view none;
  const std::string_view accusative = c.accusative.german;
  const bool late = c.accusative.indefinite || c.negative_accusative;
  const bool nicht = c.negated && !c.negative_accusative;
  const std::string noch = c.yet && c.negated ? marked("noch", kYet) : "";
  return join({c.accusative.pronoun ? accusative : none, c.dative.pronoun ? c.dative.german : none,
               with_time ? c.time.german : none, c.dative.pronoun ? none : c.dative.german,
               c.accusative.pronoun || late ? none : accusative, nicht ? noch : none,
               nicht ? marked("nicht", kNot) : none, c.likes ? marked("gern", kLikes) : none, c.manner.german,
               c.place.german, late ? noch : none, late ? accusative : none, c.oblique.german, c.direction.german,
               c.predicate.german});
}

// The words of one language, with the marks `first`, `first` + 1 and so on, or all with `first`.
std::string words_marked(std::string text, char first, bool each) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    std::ranges::replace(word, '_', ' ');
    result = join({result, marked(word, std::string(1, first))});
    if (each) ++first;
    begin = end + 1;
  }
  return result;
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

Phrase linked(char scope, Phrase phrase) {
  if (!has_marks(phrase.english) && !has_marks(phrase.german)) {
    const bool each = std::ranges::count(phrase.english, ' ') == std::ranges::count(phrase.german, ' ');
    phrase.english = words_marked(phrase.english, 'a', each);
    phrase.german = words_marked(phrase.german, 'a', each);
  }
  phrase.english = scoped(scope, phrase.english);
  phrase.german = scoped(scope, phrase.german);
  return phrase;
}

std::string NounPhrase::english() const {
  const std::string word = marked(plural ? noun->english_plural : noun->english, "n");
  const std::string described = adjective ? join({marked(adjective->english, "a"), word}) : word;
  if (!owner_phrase.english.empty()) return join({scoped('o', owner_phrase.english), described});
  const auto after = [&](std::string_view article) { return join({marked(article, "d"), described}); };
  switch (determiner) {
    case Determiner::none:
      return count > 1 ? join({marked(english_number(count), "c"), described}) : described;
    case Determiner::definite:
      return after("the");
    case Determiner::indefinite:
      return plural ? described : after(english_indefinite(described));
    case Determiner::negative:
      return after("no");
    case Determiner::possessive:
      return after(english_possessive(owner));
    case Determiner::demonstrative:
      return after(plural ? "these" : "this");
    case Determiner::every:
      return after("every");
  }
  return described;
}

std::string NounPhrase::german(Case grammatical_case, bool negative) const {
  const Determiner used = negative ? Determiner::negative : determiner;
  std::string described;
  if (adjective) {
    described = adjective->german_stem + adjective_ending(used, noun->gender, grammatical_case, plural);
  }
  return join({marked(german_determiner(used, owner, noun->gender, grammatical_case, plural), "d"),
               marked(count > 1 ? german_number(count) : "", "c"), marked(described, "a"),
               marked(decline(*noun, grammatical_case, plural), "n"), scoped('o', owner_phrase.german)});
}

std::string english_statement(const Clause& clause) {
  const Clause c = with_marks(clause);
  const EnglishVerb verb = english_verb(c);
  const std::string_view inside = c.time_inside ? std::string_view(c.time.english) : "";
  const std::string_view front = c.time_in_front ? std::string_view(c.time.english) : "";
  const std::string negation = c.negated ? marked("not", kNot) : "";
  std::string group;
  if (!verb.auxiliary.empty()) {
    const bool cannot = c.negated && without_marks(verb.auxiliary) == "can";
    group = cannot ? marked(marked("cannot", kAuxiliary), kNot) : join({verb.auxiliary, negation});
    group = join({group, inside, verb.rest});
  } else {
    group = c.negated ? join({verb.do_form, negation, inside, verb.rest}) : join({inside, verb.finite});
  }
  return join({front, c.subject.english, group, english_complements(c)});
}

std::string english_question(const Clause& clause) {
  const Clause c = with_marks(clause);
  const EnglishVerb verb = english_verb(c);
  const std::string_view inside = c.time_inside ? std::string_view(c.time.english) : "";
  return join({verb.auxiliary.empty() ? verb.do_form : verb.auxiliary, c.subject.english,
               c.negated ? marked("not", kNot) : "", inside, verb.rest, english_complements(c)});
}

std::string english_imperative(const Clause& clause) {
  const Clause c = with_marks(clause);
  return join({marked(c.verb->english, kMain), english_complements(c)});
}

std::string german_statement(const Clause& clause, std::string_view front) {
  const Clause c = with_marks(clause);
  const GermanVerb verb = german_verb(c);
  const bool time_first = front.empty() && c.time_in_front;
  const std::string middle = german_middle(c, !time_first);
  if (time_first) front = c.time.german;
  if (front.empty()) return join({c.subject.german, verb.finite, middle, verb.tail});
  return join({front, verb.finite, c.subject.german, middle, verb.tail});
}

std::string german_question(const Clause& clause) {
  const Clause c = with_marks(clause);
  const GermanVerb verb = german_verb(c);
  return join({verb.finite, c.subject.german, german_middle(c, true), verb.tail});
}

std::string german_subordinate(const Clause& clause) {
  const Clause c = with_marks(clause);
  const GermanVerb verb = german_verb(c);
  const std::string closing = verb.separated ? verb.tail + verb.finite : join({verb.tail, verb.finite});
  return join({c.subject.german, german_middle(c, true), closing});
}

std::string german_imperative(const Clause& clause) {
  const Clause c = with_marks(clause);
  return join({both_marked(c.verb->german), "Sie", german_middle(c, true), marked(c.verb->prefix, kMain)});
}

}  // namespace attune::grammar

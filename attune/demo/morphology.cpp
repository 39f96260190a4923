#include "attune/demo/morphology.h"

#include <array>

#include "attune/base/error.h"
#include "attune/demo/marks.h"

namespace attune::grammar {
namespace {

using Row = std::array<std::string_view, 4>;    // nominative, accusative, dative, genitive
using Declension = std::array<Row, 4>;          // masculine, feminine, neuter, plural
using Words = std::array<std::string_view, 6>;  // by Person

constexpr Declension kDefinite{{{"der", "den", "dem", "des"},
                                {"die", "die", "der", "der"},
                                {"das", "das", "dem", "des"},
                                {"die", "die", "den", "der"}}};
constexpr Declension kDerWord{
    {{"er", "en", "em", "es"}, {"e", "e", "er", "er"}, {"es", "es", "em", "es"}, {"e", "e", "en", "er"}}};
constexpr Declension kEinWord{
    {{"", "en", "em", "es"}, {"e", "e", "er", "er"}, {"", "", "em", "es"}, {"e", "e", "en", "er"}}};
constexpr Declension kWeak{
    {{"e", "en", "en", "en"}, {"e", "e", "en", "en"}, {"e", "e", "en", "en"}, {"en", "en", "en", "en"}}};
constexpr Declension kMixed{
    {{"er", "en", "en", "en"}, {"e", "e", "en", "en"}, {"es", "es", "en", "en"}, {"en", "en", "en", "en"}}};
constexpr Declension kStrong{
    {{"er", "en", "em", "en"}, {"e", "e", "er", "er"}, {"es", "es", "em", "en"}, {"e", "e", "en", "er"}}};

constexpr Words kPossessiveStem{"mein", "sein", "ihr", "unser", "ihr", "Ihr"};
constexpr Words kNominative{"ich", "er", "sie", "wir", "sie", "Sie"};
constexpr Words kAccusative{"mich", "ihn", "sie", "uns", "sie", "Sie"};
constexpr Words kDative{"mir", "ihm", "ihr", "uns", "ihnen", "Ihnen"};
constexpr Words kSubject{"I", "he", "she", "we", "they", "you"};
constexpr Words kObject{"me", "him", "her", "us", "them", "you"};
constexpr Words kOwner{"my", "his", "her", "our", "their", "your"};

template <class Enum>
constexpr size_t index(Enum value) {
  return static_cast<size_t>(value);
}

std::string cell(const Declension& table, Gender gender, Case grammatical_case, bool plural) {
  return std::string(table[plural ? 3 : index(gender)][index(grammatical_case)]);
}

bool is_vowel(char c) {
  return std::string_view("aeiouy").find(c) != std::string_view::npos;
}

/// Groups of vowels in a German word; a byte outside of ASCII begins or continues an umlaut, but for "ß".
int syllables(std::string_view word) {
  int groups = 0;
  bool inside = false;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool sharp_s = word.substr(i, 2) == "ß";
    const auto lower = static_cast<char>(word[i] | 0x20);
    const bool vowel = !sharp_s && (is_vowel(lower) || (static_cast<unsigned char>(word[i]) & 0x80u) != 0);
    if (vowel && !inside) ++groups;
    inside = vowel;
    if (sharp_s) ++i;
  }
  return groups;
}

std::string strong_genitive(const Noun& noun) {
  const std::string word = noun.german;
  if (*noun.genitive) return noun.genitive;
  const bool hissing = word.ends_with("s") || word.ends_with("ß") || word.ends_with("x") || word.ends_with("z");
  const bool short_word = syllables(word) == 1 && !is_vowel(word.back());
  return word + (hissing || short_word ? "es" : "s");
}

}  // namespace

Agreement agreement(Person person) {
  if (person == Person::i) return Agreement::first_singular;
  return person == Person::he || person == Person::she ? Agreement::third_singular : Agreement::plural;
}

std::string german_determiner(Determiner determiner, Person owner, Gender gender, Case grammatical_case, bool plural) {
  switch (determiner) {
    case Determiner::none:
      return "";
    case Determiner::definite:
      return cell(kDefinite, gender, grammatical_case, plural);
    case Determiner::indefinite:
      return plural ? "" : "ein" + cell(kEinWord, gender, grammatical_case, plural);
    case Determiner::negative:
      return "kein" + cell(kEinWord, gender, grammatical_case, plural);
    case Determiner::possessive:
      return std::string(kPossessiveStem[index(owner)]) + cell(kEinWord, gender, grammatical_case, plural);
    case Determiner::demonstrative:
      return "dies" + cell(kDerWord, gender, grammatical_case, plural);
    case Determiner::every:
      return "jed" + cell(kDerWord, gender, grammatical_case, plural);
  }
  return "";
}

std::string adjective_ending(Determiner determiner, Gender gender, Case grammatical_case, bool plural) {
  switch (determiner) {
    case Determiner::definite:
    case Determiner::demonstrative:
    case Determiner::every:
      return cell(kWeak, gender, grammatical_case, plural);
    case Determiner::indefinite:
      return cell(plural ? kStrong : kMixed, gender, grammatical_case, plural);
    case Determiner::negative:
    case Determiner::possessive:
      return cell(kMixed, gender, grammatical_case, plural);
    case Determiner::none:
      break;
  }
  return cell(kStrong, gender, grammatical_case, plural);
}

std::string decline(const Noun& noun, Case grammatical_case, bool plural) {
  if (plural) {
    const std::string word = noun.german_plural;
    const bool takes_n = grammatical_case == Case::dative && !word.ends_with("n") && !word.ends_with("s");
    return takes_n ? word + "n" : word;
  }
  if (grammatical_case != Case::nominative && *noun.oblique) return noun.oblique;
  if (grammatical_case == Case::genitive && noun.gender != Gender::feminine) return strong_genitive(noun);
  return noun.german;
}

std::string german_pronoun(Person person, Case grammatical_case) {
  switch (grammatical_case) {
    case Case::accusative:
      return std::string(kAccusative[index(person)]);
    case Case::dative:
      return std::string(kDative[index(person)]);
    default:
      return std::string(kNominative[index(person)]);
  }
}

std::string german_finite(const Verb& verb, Agreement agreement, bool past) {
  const std::string infinitive = verb.german;
  if (past) {
    const std::string form = verb.german_past;
    if (agreement != Agreement::plural) return form;
    return form + (form.ends_with("e") ? "n" : "en");
  }
  if (agreement == Agreement::third_singular) return verb.german_er;
  if (infinitive == "sein") return agreement == Agreement::plural ? "sind" : "bin";
  if (agreement == Agreement::plural) return infinitive;
  if (infinitive == "wissen") return verb.german_er;
  return infinitive.substr(0, infinitive.size() - 1);  // "kaufen" -> "kaufe"
}

std::string german_prepositional(std::string_view preposition, std::string_view noun_phrase) {
  struct Contraction {
    std::string_view preposition, article, result;
  };
  constexpr Contraction kContractions[] = {{"in", "dem", "im"},  {"an", "dem", "am"},   {"zu", "dem", "zum"},
                                           {"zu", "der", "zur"}, {"von", "dem", "vom"}, {"in", "das", "ins"}};
  const FirstWord first = first_word(preposition), article = first_word(noun_phrase);
  for (const auto& c : kContractions) {
    if (first.word == c.preposition && article.word == c.article)
      return std::string(c.result).append(first.marks).append(article.marks).append(article.rest);
  }
  return std::string(preposition).append(" ").append(noun_phrase);
}

std::string english_pronoun(Person person, bool object) {
  return std::string((object ? kObject : kSubject)[index(person)]);
}

std::string english_possessive(Person owner) {
  return std::string(kOwner[index(owner)]);
}

std::string english_third_person(std::string_view base) {
  const size_t end = std::min(base.find(' '), base.size());
  std::string word(base.substr(0, end));
  const std::string_view rest = base.substr(end);
  if (word == "have") return std::string("has").append(rest);
  const bool hissing = word.ends_with("s") || word.ends_with("sh") || word.ends_with("ch") || word.ends_with("x");
  if (hissing || word.ends_with("o")) {
    word += "es";
  } else if (word.size() > 1 && word.back() == 'y' && !is_vowel(word[word.size() - 2])) {
    word.replace(word.size() - 1, 1, "ies");
  } else {
    word += "s";
  }
  return word.append(rest);
}

std::string english_indefinite(std::string_view next_word) {
  const bool vowel = !next_word.empty() && std::string_view("aeiou").find(next_word[0]) != std::string_view::npos;
  return vowel ? "an" : "a";
}

}  // namespace attune::grammar

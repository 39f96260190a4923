#pragma once
// Inflection for the grammar corpus: German articles, adjectives, nouns and verbs, English verbs, and the numbers,
// dates and clock times of both. Source of the tables: Duden, Die Grammatik, chapters on the article, adjective and
// verb.

#include <cstdint>
#include <string>
#include <string_view>

#include "attune/demo/lexicon.h"

namespace attune::grammar {

/// The determiner of a noun; `none` also before a number.
enum class Determiner { none, definite, indefinite, negative, possessive, demonstrative, every };

/// A speaker, owner or subject. "You" is formal, singular or plural.
enum class Person { i, he, she, we, they, you };

/// What the verb agrees with. Formal "Sie" and English "you" take the plural.
enum class Agreement { first_singular, third_singular, plural };

Agreement agreement(Person person);

/// "der", "einem", "meine", "keines", "dieser", "jede"; empty for `none` and for the plural of `indefinite`.
std::string german_determiner(Determiner determiner, Person owner, Gender gender, Case grammatical_case, bool plural);

/// Weak after "der", "dieser" and "jeder", mixed after "ein", "kein" and possessives, strong elsewhere: "e", "en",
/// "er"...
std::string adjective_ending(Determiner determiner, Gender gender, Case grammatical_case, bool plural);

/// The noun's form: "Kindern", "Hauses", "Nachbarn".
std::string decline(const Noun& noun, Case grammatical_case, bool plural);

/// "er" (nominative), "ihn", "ihm"; no genitive.
std::string german_pronoun(Person person, Case grammatical_case);

/// The finite form without the separable prefix: "machte", "sind".
std::string german_finite(const Verb& verb, Agreement agreement, bool past);

/// "in dem" -> "im", "zu der" -> "zur", "von dem" -> "vom", "in das" -> "ins"; `noun_phrase` begins with the article.
/// Both may have marks (marks.h); the contraction has those of both words.
std::string german_prepositional(std::string_view preposition, std::string_view noun_phrase);

std::string english_pronoun(Person person, bool object);
std::string english_possessive(Person owner);

/// The third person singular of a verb, the first word of "look for": "looks for".
std::string english_third_person(std::string_view base);

/// "a" or "an", by the letter that follows.
std::string english_indefinite(std::string_view next_word);

/// Cardinal numbers in words, 0 to 9999. English: "two hundred and forty-three". German: "zweihundertdreiundvierzig",
/// and "eins" for one. Throw ConfigError outside of this range.
std::string english_number(int64_t number);
std::string german_number(int64_t number);

/// "3rd", "11th", "22nd".
std::string english_ordinal(int64_t number);

/// Adverbials of a date: "on the 3rd of May 1987" and "am 3. Mai 1987"; year 0 leaves the year out. month: 1 to 12.
std::string english_date(int64_t day, int64_t month, int64_t year);
std::string german_date(int64_t day, int64_t month, int64_t year);

/// Adverbials of a time of day: "at half past three" and "um halb vier". hour: 1 to 12, minute: a multiple of 5.
std::string english_clock(int64_t hour, int64_t minute);
std::string german_clock(int64_t hour, int64_t minute);

}  // namespace attune::grammar

#include "attune/demo/clause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "attune/demo/corpus.h"
#include "attune/demo/marks.h"
#include "attune/demo/sentences.h"
#include "tests/demo/links.h"

namespace attune {
namespace {

using namespace grammar;

constexpr Case kCases[] = {Case::nominative, Case::accusative, Case::dative, Case::genitive};

const Noun& noun(std::string_view english) {
  for (const Noun& n : nouns()) {
    if (english == n.english) return n;
  }
  ADD_FAILURE() << "no noun " << english;
  return nouns().front();
}

const Verb& verb(std::string_view english) {
  for (const Verb& v : verbs()) {
    if (english == v.english) return v;
  }
  ADD_FAILURE() << "no verb " << english;
  return verbs().front();
}

const Adjective& adjective(std::string_view english) {
  for (const Adjective& a : adjectives()) {
    if (english == a.english) return a;
  }
  ADD_FAILURE() << "no adjective " << english;
  return adjectives().front();
}

/// Nominative, accusative, dative and genitive, " | " between.
std::string declension(NounPhrase p) {
  std::string line;
  for (const Case c : kCases) line += (line.empty() ? "" : " | ") + without_marks(p.german(c));
  return line;
}

NounPhrase phrase(std::string_view english, Determiner determiner, std::string_view quality, bool plural = false) {
  NounPhrase p;
  p.noun = &noun(english);
  p.determiner = determiner;
  p.adjective = &adjective(quality);
  p.plural = plural;
  return p;
}

TEST(GrammarMorphology, DefiniteArticleAndWeakAdjectives) {
  const Determiner der = Determiner::definite;
  EXPECT_EQ(declension(phrase("man", der, "old")),
            "der alte Mann | den alten Mann | dem alten Mann | des alten Mannes");
  EXPECT_EQ(declension(phrase("woman", der, "old")), "die alte Frau | die alte Frau | der alten Frau | der alten Frau");
  EXPECT_EQ(declension(phrase("car", der, "expensive")),
            "das teure Auto | das teure Auto | dem teuren Auto | des teuren Autos");
  EXPECT_EQ(declension(phrase("child", der, "clever", true)),
            "die klugen Kinder | die klugen Kinder | den klugen Kindern | der klugen Kinder");
}

TEST(GrammarMorphology, IndefiniteArticleAndMixedAdjectives) {
  const Determiner ein = Determiner::indefinite;
  EXPECT_EQ(declension(phrase("man", ein, "old")),
            "ein alter Mann | einen alten Mann | einem alten Mann | eines alten Mannes");
  EXPECT_EQ(declension(phrase("woman", ein, "old")),
            "eine alte Frau | eine alte Frau | einer alten Frau | einer alten Frau");
  EXPECT_EQ(declension(phrase("house", ein, "new")),
            "ein neues Haus | ein neues Haus | einem neuen Haus | eines neuen Hauses");
  EXPECT_EQ(declension(phrase("child", ein, "clever", true)),
            "kluge Kinder | kluge Kinder | klugen Kindern | kluger Kinder");
}

TEST(GrammarMorphology, NoArticleAndStrongAdjectives) {
  const Determiner none = Determiner::none;
  EXPECT_EQ(declension(phrase("wine", none, "cold")), "kalter Wein | kalten Wein | kaltem Wein | kalten Weines");
  EXPECT_EQ(declension(phrase("milk", none, "cold")), "kalte Milch | kalte Milch | kalter Milch | kalter Milch");
  EXPECT_EQ(declension(phrase("water", none, "cold")),
            "kaltes Wasser | kaltes Wasser | kaltem Wasser | kalten Wassers");
}

TEST(GrammarMorphology, PossessivesNegationAndDemonstratives) {
  NounPhrase p = phrase("coat", Determiner::possessive, "new");
  p.owner = Person::she;
  EXPECT_EQ(declension(p), "ihr neuer Mantel | ihren neuen Mantel | ihrem neuen Mantel | ihres neuen Mantels");
  p.owner = Person::we;
  p.plural = true;
  EXPECT_EQ(declension(p), "unsere neuen Mäntel | unsere neuen Mäntel | unseren neuen Mänteln | unserer neuen Mäntel");
  EXPECT_EQ(without_marks(p.english()), "our new coats");
  EXPECT_EQ(without_marks(phrase("apple", Determiner::indefinite, "fresh").german(Case::accusative, true)),
            "keinen frischen Apfel");
  EXPECT_EQ(without_marks(phrase("apple", Determiner::indefinite, "fresh", true).german(Case::accusative, true)),
            "keine frischen Äpfel");
  EXPECT_EQ(without_marks(phrase("dog", Determiner::demonstrative, "big").german(Case::dative)), "diesem großen Hund");
  EXPECT_EQ(without_marks(phrase("girl", Determiner::every, "clever").german(Case::accusative)), "jedes kluge Mädchen");
}

TEST(GrammarMorphology, NounsThatAreNotRegular) {
  EXPECT_EQ(decline(noun("neighbour"), Case::accusative, false), "Nachbarn");
  EXPECT_EQ(decline(noun("neighbour"), Case::genitive, false), "Nachbarn");
  EXPECT_EQ(decline(noun("bus"), Case::genitive, false), "Busses");
  EXPECT_EQ(decline(noun("park"), Case::genitive, false), "Parks");
  EXPECT_EQ(decline(noun("house"), Case::genitive, false), "Hauses");
  EXPECT_EQ(decline(noun("garden"), Case::genitive, false), "Gartens");
  EXPECT_EQ(decline(noun("car"), Case::dative, true), "Autos");
  EXPECT_EQ(decline(noun("garden"), Case::dative, true), "Gärten");
}

TEST(GrammarMorphology, FiniteVerbs) {
  const auto all = [](const Verb& v, bool past) {
    return german_finite(v, Agreement::first_singular, past) + " " + german_finite(v, Agreement::third_singular, past) +
           " " + german_finite(v, Agreement::plural, past);
  };
  EXPECT_EQ(all(kBe, false), "bin ist sind");
  EXPECT_EQ(all(kBe, true), "war war waren");
  EXPECT_EQ(all(kHave, false), "habe hat haben");
  EXPECT_EQ(all(verb("read"), false), "lese liest lesen");
  EXPECT_EQ(all(verb("read"), true), "las las lasen");
  EXPECT_EQ(all(verb("buy"), true), "kaufte kaufte kauften");
  EXPECT_EQ(all(matrix_verbs()[0], false), "weiß weiß wissen");
}

TEST(GrammarMorphology, EnglishForms) {
  EXPECT_EQ(english_third_person("look for"), "looks for");
  EXPECT_EQ(english_third_person("go shopping"), "goes shopping");
  EXPECT_EQ(english_third_person("carry"), "carries");
  EXPECT_EQ(english_third_person("play"), "plays");
  EXPECT_EQ(english_third_person("wash"), "washes");
  EXPECT_EQ(english_third_person("have"), "has");
  EXPECT_EQ(without_marks(phrase("apple", Determiner::indefinite, "fresh").english()), "a fresh apple");
  EXPECT_EQ(without_marks(phrase("man", Determiner::indefinite, "old").english()), "an old man");
}

TEST(GrammarMorphology, Contractions) {
  EXPECT_EQ(german_prepositional("in", "dem alten Garten"), "im alten Garten");
  EXPECT_EQ(german_prepositional("in", "das Haus"), "ins Haus");
  EXPECT_EQ(german_prepositional("zu", "der Haltestelle"), "zur Haltestelle");
  EXPECT_EQ(german_prepositional("an", "dem Bahnhof"), "am Bahnhof");
  EXPECT_EQ(german_prepositional("in", "der Küche"), "in der Küche");
  EXPECT_EQ(german_prepositional("in", "diesem Garten"), "in diesem Garten");
  EXPECT_EQ(german_prepositional("in", "den Park"), "in den Park");
}

TEST(GrammarNumbers, WordsOfBothLanguages) {
  const std::map<int64_t, std::pair<std::string, std::string>> kExpected{
      {0, {"zero", "null"}},
      {1, {"one", "eins"}},
      {12, {"twelve", "zwölf"}},
      {17, {"seventeen", "siebzehn"}},
      {21, {"twenty-one", "einundzwanzig"}},
      {30, {"thirty", "dreißig"}},
      {66, {"sixty-six", "sechsundsechzig"}},
      {100, {"one hundred", "einhundert"}},
      {101, {"one hundred and one", "einhunderteins"}},
      {243, {"two hundred and forty-three", "zweihundertdreiundvierzig"}},
      {1000, {"one thousand", "eintausend"}},
      {2001, {"two thousand and one", "zweitausendeins"}},
      {7016, {"seven thousand and sixteen", "siebentausendsechzehn"}},
      {9999, {"nine thousand nine hundred and ninety-nine", "neuntausendneunhundertneunundneunzig"}}};
  for (const auto& [number, words] : kExpected) {
    EXPECT_EQ(english_number(number), words.first);
    EXPECT_EQ(german_number(number), words.second);
  }
}

TEST(GrammarNumbers, AllDifferentUpTo9999) {
  std::set<std::string> english, german;
  for (int64_t n = 0; n <= 9999; ++n) {
    EXPECT_TRUE(english.insert(english_number(n)).second) << n;
    EXPECT_TRUE(german.insert(german_number(n)).second) << n;
  }
  EXPECT_THROW(english_number(10000), ConfigError);
  EXPECT_THROW(german_number(-1), ConfigError);
}

TEST(GrammarNumbers, Dates) {
  EXPECT_EQ(english_date(3, 5, 1987), "on the 3rd of May 1987");
  EXPECT_EQ(german_date(3, 5, 1987), "am 3. Mai 1987");
  EXPECT_EQ(english_date(21, 3, 0), "on the 21st of March");
  EXPECT_EQ(german_date(21, 3, 0), "am 21. März");
  EXPECT_EQ(english_ordinal(11), "11th");
  EXPECT_EQ(english_ordinal(12), "12th");
  EXPECT_EQ(english_ordinal(13), "13th");
  EXPECT_EQ(english_ordinal(22), "22nd");
  EXPECT_THROW(english_date(1, 13, 0), ConfigError);
  EXPECT_THROW(german_date(0, 1, 0), ConfigError);
}

TEST(GrammarNumbers, ClockTimes) {
  EXPECT_EQ(english_clock(3, 30), "at half past three");
  EXPECT_EQ(german_clock(3, 30), "um halb vier");
  EXPECT_EQ(german_clock(12, 30), "um halb eins");
  EXPECT_EQ(english_clock(1, 0), "at one o'clock");
  EXPECT_EQ(german_clock(1, 0), "um ein Uhr");
  EXPECT_EQ(english_clock(12, 45), "at a quarter to one");
  EXPECT_EQ(german_clock(12, 45), "um Viertel vor eins");
  EXPECT_EQ(german_clock(5, 25), "um fünf vor halb sechs");
  EXPECT_EQ(german_clock(1, 10), "um zehn nach eins");
  EXPECT_THROW(german_clock(13, 0), ConfigError);
}

/// "The teacher opens the window", with the places that the tests fill.
Clause opening(Tense tense) {
  Clause c;
  c.subject = {"the teacher", "der Lehrer"};
  c.verb = &verb("open");
  c.tense = tense;
  c.accusative = {"the window", "das Fenster"};
  return c;
}

TEST(GrammarClause, SeparableVerbInEveryTense) {
  EXPECT_EQ(without_marks(german_statement(opening(Tense::present))), "der Lehrer macht das Fenster auf");
  EXPECT_EQ(without_marks(german_statement(opening(Tense::past))), "der Lehrer machte das Fenster auf");
  EXPECT_EQ(without_marks(german_statement(opening(Tense::perfect))), "der Lehrer hat das Fenster aufgemacht");
  EXPECT_EQ(without_marks(german_statement(opening(Tense::future))), "der Lehrer wird das Fenster aufmachen");
  EXPECT_EQ(without_marks(english_statement(opening(Tense::progressive))), "the teacher is opening the window");
  EXPECT_EQ(without_marks(english_statement(opening(Tense::perfect))), "the teacher has opened the window");
}

TEST(GrammarClause, VerbFirstSecondAndLast) {
  Clause c = opening(Tense::past);
  c.time = {"yesterday", "gestern"};
  c.time_in_front = true;
  EXPECT_EQ(without_marks(english_statement(c)), "yesterday the teacher opened the window");
  EXPECT_EQ(without_marks(german_statement(c)), "gestern machte der Lehrer das Fenster auf");
  c.time_in_front = false;
  EXPECT_EQ(without_marks(german_statement(c)), "der Lehrer machte gestern das Fenster auf");
  EXPECT_EQ(without_marks(german_subordinate(c)), "der Lehrer gestern das Fenster aufmachte");
  EXPECT_EQ(without_marks(german_question(opening(Tense::perfect))), "hat der Lehrer das Fenster aufgemacht");
  EXPECT_EQ(without_marks(german_subordinate(opening(Tense::perfect))), "der Lehrer das Fenster aufgemacht hat");
  EXPECT_EQ(without_marks(english_question(opening(Tense::past))), "did the teacher open the window");
  EXPECT_EQ(without_marks(english_question(opening(Tense::present))), "does the teacher open the window");
  EXPECT_EQ(without_marks(german_statement(opening(Tense::present), "weil es regnet,")),
            "weil es regnet, macht der Lehrer das Fenster auf");
  EXPECT_EQ(without_marks(german_imperative(opening(Tense::present))), "machen Sie das Fenster auf");
}

TEST(GrammarClause, NegationAndPronouns) {
  Clause c = opening(Tense::perfect);
  c.negated = c.yet = true;
  EXPECT_EQ(without_marks(english_statement(c)), "the teacher has not opened the window yet");
  EXPECT_EQ(without_marks(german_statement(c)), "der Lehrer hat das Fenster noch nicht aufgemacht");
  c = opening(Tense::present);
  c.negated = true;
  c.place = {"in the school", "in der Schule"};
  EXPECT_EQ(without_marks(english_statement(c)), "the teacher does not open the window in the school");
  EXPECT_EQ(without_marks(german_statement(c)), "der Lehrer macht das Fenster nicht in der Schule auf");
  c = opening(Tense::past);
  c.verb = &verb("give");
  c.time = {"yesterday", "gestern"};
  c.accusative = {"a book", "ein Buch", false, true};
  c.dative = {"him", "ihm", true};
  EXPECT_EQ(without_marks(english_statement(c)), "the teacher gave him a book yesterday");
  EXPECT_EQ(without_marks(german_statement(c)), "der Lehrer gab ihm gestern ein Buch");
}

TEST(GrammarClause, PerfectWithSeinAndModals) {
  Clause c;
  c.subject = {"I", "ich"};
  c.agreement = Agreement::first_singular;
  c.verb = &verb("get up");
  c.tense = Tense::perfect;
  EXPECT_EQ(without_marks(german_statement(c)), "ich bin aufgestanden");
  c.tense = Tense::modal;
  for (const Modal& m : modals()) {
    c.modal = &m;
    c.negated = m.negatable && std::string_view(m.auxiliary) == "can";
    if (std::string_view(m.third) == "wants to ") {
      EXPECT_EQ(without_marks(english_question(c)), "do I want to get up");
      EXPECT_EQ(without_marks(german_question(c)), "will ich aufstehen");
    }
    if (c.negated) {
      EXPECT_EQ(without_marks(english_statement(c)), "I cannot get up");
      EXPECT_EQ(without_marks(german_statement(c)), "ich kann nicht aufstehen");
    }
  }
}

TEST(GrammarAlignment, LinksWhatOneWordBecame) {
  Clause c = opening(Tense::perfect);
  c.negated = c.yet = true;
  EXPECT_EQ(links_of(pair(english_statement(c), german_statement(c))),
            (Links{"The=Der", "teacher=Lehrer", "has=hat", "not=nicht", "opened=aufgemacht.", "the=das",
                   "window=Fenster", "yet.=noch"}));
  c = opening(Tense::past);  // one word is two
  EXPECT_EQ(links_of(pair(english_statement(c), german_statement(c))),
            (Links{"The=Der", "teacher=Lehrer", "opened=machte", "opened=auf.", "the=das", "window.=Fenster"}));
  EXPECT_EQ(links_of(pair(english_question(c), german_question(opening(Tense::perfect)), '?')),
            (Links{"Did=Hat", "the=der", "teacher=Lehrer", "open=aufgemacht?", "the=das", "window?=Fenster"}));
  EXPECT_EQ(links_of(pair(english_statement(c), german_subordinate(c))).at(2), "opened=aufmachte.");
}

TEST(GrammarAlignment, LinksWhatBecameAnotherOrder) {
  Clause c = opening(Tense::past);
  c.verb = &verb("wait for");
  c.accusative = {};
  c.time = linked('x', {"three months ago", "vor drei Monaten"});
  c.oblique = {"the guest", "auf den Gast"};
  EXPECT_EQ(links_of(pair(english_statement(c), german_statement(c))),
            (Links{"The=Der", "teacher=Lehrer", "waited=wartete", "waited=auf", "for=wartete", "for=auf", "the=auf",
                   "the=den", "the=Gast.", "guest=auf", "guest=den", "guest=Gast.", "three=vor", "months=drei",
                   "ago.=Monaten"}));  // phrases without marks: each with each, or one by one

  NounPhrase window = phrase("car", Determiner::indefinite, "red");
  c = opening(Tense::present);
  c.verb = &verb("buy");
  c.negated = c.negative_accusative = true;
  c.accusative = {window.english(), window.german(Case::accusative, true)};
  EXPECT_EQ(
      links_of(pair(english_statement(c), german_statement(c))),
      (Links{"The=Der", "teacher=Lehrer", "does=kauft", "not=kein", "buy=kauft", "a=kein", "red=rotes", "car.=Auto."}));
}

TEST(GrammarAlignment, ContractionsHaveBothWords) {
  NounPhrase garden = phrase("garden", Determiner::definite, "quiet");
  garden.adjective = nullptr;
  Clause c = opening(Tense::present);
  c.place = {join({marked("in", "p"), garden.english()}),
             german_prepositional(marked("in", "p"), garden.german(Case::dative))};
  const Links links = links_of(pair(english_statement(c), german_statement(c)));
  EXPECT_EQ(Links(links.end() - 3, links.end()), (Links{"in=im", "the=im", "garden.=Garten"}));
}

TEST(GrammarAlignment, LeavesFewWordsOfTheCorpusAlone) {
  size_t target_words = 0, linked_targets = 0;
  for (const SentencePair& p : grammar_corpus(5000, 0, 0, 11).train) {
    std::set<int32_t> targets;
    for (const auto& [s, t] : p.alignment) {
      ASSERT_LT(s, words(p.source)) << p.source;
      ASSERT_LT(t, words(p.target)) << p.target;
      targets.insert(t);
    }
    EXPECT_TRUE(std::ranges::is_sorted(p.alignment));
    target_words += static_cast<size_t>(words(p.target));
    linked_targets += targets.size();
    EXPECT_EQ((p.source + p.target).find_first_of("_\x01\x02"), std::string::npos) << p.source;
  }
  EXPECT_GT(static_cast<double>(linked_targets) / static_cast<double>(target_words), 0.97);
  EXPECT_LT(linked_targets, target_words);  // "Sie" of an imperative, "das" of a possessor have none
}

}  // namespace
}  // namespace attune

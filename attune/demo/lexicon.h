#pragma once
// The words of the grammar corpus: irregular forms are written out, morphology.h forms regular ones.

#include <array>
#include <cstdint>
#include <span>

namespace attune::grammar {

enum class Gender { masculine, feminine, neuter };
enum class Case { nominative, accusative, dative, genitive };

/// What a noun is, so that verbs and adjectives find nouns that make sense. A set of bits.
using Tags = uint64_t;
enum Tag : Tags {
  kAdult = 1u << 0,      // "the old teacher"
  kChild = 1u << 1,      // "the clever girl"
  kRelative = 1u << 2,   // takes a possessive: "my brother"
  kAnimal = 1u << 3,     //
  kFood = 1u << 4,       //
  kDrink = 1u << 5,      //
  kReadable = 1u << 6,   //
  kWritable = 1u << 7,   //
  kOpenable = 1u << 8,   // doors, boxes
  kWearable = 1u << 9,   //
  kVehicle = 1u << 10,   // what a person owns, drives, washes and repairs
  kDevice = 1u << 11,    // what is switched on and off
  kPortable = 1u << 12,  // bags, boxes
  kLying = 1u << 13,     // "liegt" on a table, is put there with "legen"
  kStanding = 1u << 14,  // "steht" on a table, is put there with "stellen"
  kGift = 1u << 15,      //
  kPriced = 1u << 16,    // is bought and sold
  kFurniture = 1u << 17,
  kBuilding = 1u << 18,   // is built
  kTransport = 1u << 19,  // leaves and arrives
  kEvent = 1u << 20,      // begins and ends
  kAbstract = 1u << 21,   // questions, problems
  kCookable = 1u << 22,
  kBakeable = 1u << 23,
  kSmall = 1u << 24,    // is lost, found, forgotten
  kRoom = 1u << 25,     // is tidied and cleaned
  kOutdoor = 1u << 26,  // to kLeisure: places by what one does there; German "in", with the accusative for "to"
  kStudy = 1u << 27,
  kShop = 1u << 28,
  kDining = 1u << 29,
  kLeisure = 1u << 30,
  kStop = 1ull << 31,  // stations: "at" them is "an", "to" them is "zu"
  kRepairable = 1ull << 32,
  kSettlement = 1ull << 33,  // village, city
  kHot = 1ull << 34,         // is served warm
  kParent = 1ull << 35,      // a relative that a person has only one of
  kAttended = 1ull << 37,    // events that one takes part in
  kMood = 1ull << 36,        // no noun: marks adjectives that are a reason to do something ("because he is tired")
};
inline constexpr Tags kPerson = kAdult | kChild;
inline constexpr Tags kInside = kRoom | kOutdoor | kStudy | kShop | kDining | kLeisure | kSettlement;

struct Noun {
  const char* english;
  const char* english_plural;  // empty: a mass noun
  const char* german;
  const char* german_plural;
  Gender gender;
  Tags tags;
  const char* oblique = "";   // weak nouns: the form of all cases but the nominative ("Nachbarn")
  const char* genitive = "";  // where the rule for strong nouns fails ("Parks")
};

struct Adjective {
  const char* english;
  const char* german;               // predicative: "teuer"
  const char* german_stem;          // attributive, before the ending: "teur"
  const char* english_comparative;  // empty: not compared
  const char* german_comparative;
  Tags attributive;  // nouns it may stand before
  Tags predicative;  // nouns it may be said of
};

/// What a verb takes. `to_dative` is English "explain the problem to the child".
enum class Frame { intransitive, accusative, dative, ditransitive, to_dative, oblique, direction };

enum VerbTrait : unsigned {
  kStative = 1,      // no progressive, no perfect
  kPunctual = 2,     // no progressive
  kOnce = 4,         // not done to the same thing every day
  kParticle = 8,     // English particle verb: takes no pronoun object
  kNoPlace = 16,     // takes no adverbial of place
  kSein = 32,        // perfect with "sein"
  kRoutine = 64,     // done at a time of the day
  kAlone = 128,      // not done with somebody
  kEpoch = 256,      // told of a year or month: "last year he met Anna"
  kSlow = 512,       // takes longer than a day
  kAccident = 1024,  // not planned: "lose"
};

struct Verb {
  const char* english;
  const char* english_past;
  const char* english_participle;
  const char* english_gerund;
  const char* prefix;  // separable
  const char* german;  // infinitive without the prefix
  const char* german_er;
  const char* german_past;
  const char* german_participle;  // with the prefix
  Frame frame;
  Tags object = 0;
  Tags place = 0;
  unsigned traits = 0;
  const char* preposition = "";  // of an oblique object
  Case preposition_case = Case::accusative;
  Tags subject = 0;  // 0: any person
};

/// A modal or auxiliary before an infinitive. Without an English auxiliary, the finite forms inflect with "do".
struct Modal {
  const char* auxiliary;  // "can"; empty for "want to"
  const char* base;       // "want to "; stands before the infinitive
  const char* third;
  const char* past;  // not empty: the modal itself is in the past tense ("wanted to")
  const char* german_singular;
  const char* german_plural;
  bool negatable;
};

/// A fixed adverbial: the same words in every sentence.
struct Adverbial {
  const char* english;
  const char* german;
};

std::span<const Noun> nouns();
std::span<const Adjective> adjectives();
std::span<const Verb> verbs();
std::span<const Verb> matrix_verbs();  // take a clause with "that"
std::span<const Modal> modals();

extern const Verb kBe;
extern const Verb kHave;
extern const Verb kLie;    // "is lying": liegen
extern const Verb kStand;  // "is standing": stehen
extern const Verb kLay;    // "put": legen
extern const Verb kPlace;  // "put": stellen

inline constexpr std::array<Adverbial, 12> kFirstNames{{{"Anna", "Anna"},
                                                        {"Peter", "Peter"},
                                                        {"Maria", "Maria"},
                                                        {"Paul", "Paul"},
                                                        {"Thomas", "Thomas"},
                                                        {"Julia", "Julia"},
                                                        {"Martin", "Martin"},
                                                        {"Laura", "Laura"},
                                                        {"Mrs Weber", "Frau Weber"},
                                                        {"Mr Weber", "Herr Weber"},
                                                        {"Mrs Schneider", "Frau Schneider"},
                                                        {"Mr Schneider", "Herr Schneider"}}};
inline constexpr std::array<Adverbial, 10> kCities{{{"Berlin", "Berlin"},
                                                    {"Vienna", "Wien"},
                                                    {"Munich", "München"},
                                                    {"Cologne", "Köln"},
                                                    {"Hamburg", "Hamburg"},
                                                    {"Zurich", "Zürich"},
                                                    {"Germany", "Deutschland"},
                                                    {"Italy", "Italien"},
                                                    {"France", "Frankreich"},
                                                    {"Austria", "Österreich"}}};

}  // namespace attune::grammar

#include "attune/demo/lexicon.h"

namespace attune::grammar {
namespace {

constexpr Tags kAnybody = kPerson | kRelative;
constexpr Tags kMachine = kVehicle | kDevice;
constexpr Tags kSocial = kOutdoor | kSettlement | kDining | kLeisure | kStop;

// clang-format off
constexpr Adjective kAdjectives[] = {
    {"old", "alt", "alt", "older", "älter", kAdult | kAnimal | kVehicle | kBuilding | kFurniture | kWearable | kSettlement, kAnybody | kAnimal | kVehicle | kBuilding | kSettlement},
    {"young", "jung", "jung", "younger", "jünger", kAdult, kAnybody | kAnimal},
    {"small", "klein", "klein", "smaller", "kleiner", kChild | kAnimal | kPortable | kBuilding | kInside | kFurniture, kBuilding | kSettlement | kRoom | kPortable | kFurniture},
    {"big", "groß", "groß", "bigger", "größer", kAnimal | kPortable | kBuilding | kInside | kFurniture, kBuilding | kSettlement | kRoom | kPortable | kFurniture},
    {"new", "neu", "neu", "newer", "neuer", kMachine | kWearable | kFurniture | kBuilding | kDining | kPortable, kMachine | kWearable | kFurniture | kBuilding},
    {"expensive", "teuer", "teur", "more expensive", "teurer", kPriced, kPriced},
    {"cheap", "billig", "billig", "cheaper", "billiger", kPriced, kPriced},
    {"beautiful", "schön", "schön", "more beautiful", "schöner", kWearable | kGift | kSettlement | kOutdoor | kBuilding, kWearable | kOutdoor | kSettlement | kBuilding},
    {"heavy", "schwer", "schwer", "heavier", "schwerer", kPortable | kFurniture, kPortable | kFurniture | kDevice},
    {"red", "rot", "rot", "", "", kWearable | kVehicle | kPortable | kStanding | kFurniture, kWearable | kVehicle | kPortable},
    {"blue", "blau", "blau", "", "", kWearable | kVehicle | kPortable | kStanding | kFurniture, kWearable | kVehicle | kPortable},
    {"green", "grün", "grün", "", "", kWearable | kVehicle | kPortable | kStanding, kWearable | kVehicle | kPortable},
    {"black", "schwarz", "schwarz", "", "", kWearable | kVehicle | kPortable | kAnimal, kWearable | kVehicle | kPortable},
    {"white", "weiß", "weiß", "", "", kWearable | kVehicle | kStanding | kAnimal, kWearable | kVehicle},
    {"clean", "sauber", "sauber", "cleaner", "sauberer", kWearable | kStanding | kRoom, kWearable | kStanding | kRoom},
    {"dirty", "schmutzig", "schmutzig", "dirtier", "schmutziger", kWearable | kStanding | kVehicle | kRoom, kWearable | kStanding | kVehicle | kRoom},
    {"dark", "dunkel", "dunkl", "darker", "dunkler", kRoom | kWearable, kRoom},
    {"modern", "modern", "modern", "more modern", "moderner", kDevice | kBuilding | kTransport, kDevice | kBuilding},
    {"interesting", "interessant", "interessant", "more interesting", "interessanter", kReadable | kEvent | kAbstract, kReadable | kEvent | kAbstract},
    {"boring", "langweilig", "langweilig", "more boring", "langweiliger", kReadable | kEvent, kReadable | kEvent},
    {"long", "lang", "lang", "longer", "länger", kReadable | kEvent, kReadable | kEvent},
    {"short", "kurz", "kurz", "shorter", "kürzer", kReadable | kEvent, kReadable | kEvent},
    {"important", "wichtig", "wichtig", "more important", "wichtiger", kEvent | kAbstract, kEvent | kAbstract},
    {"difficult", "schwierig", "schwierig", "more difficult", "schwieriger", kAbstract, kAbstract},
    {"fresh", "frisch", "frisch", "", "", kFood, kFood},
    {"delicious", "köstlich", "köstlich", "", "", kFood, 0},
    {"warm", "warm", "warm", "warmer", "wärmer", kHot, kHot},
    {"cold", "kalt", "kalt", "colder", "kälter", kDrink, kDrink | kHot},
    {"friendly", "freundlich", "freundlich", "friendlier", "freundlicher", kPerson, kAnybody},
    {"famous", "berühmt", "berühmt", "more famous", "berühmter", kAdult | kBuilding, kAnybody},
    {"clever", "klug", "klug", "cleverer", "klüger", kPerson | kRelative | kAnimal, kAnybody | kAnimal},
    {"strong", "stark", "stark", "stronger", "stärker", kAdult, kAnybody},
    {"rich", "reich", "reich", "richer", "reicher", kAdult, kAnybody},
    {"tired", "müde", "müd", "", "", kPerson, kAnybody | kMood},
    {"hungry", "hungrig", "hungrig", "", "", kChild | kAnimal, kAnybody | kAnimal | kMood},
    {"sick", "krank", "krank", "", "", kPerson | kAnimal, kAnybody | kAnimal | kMood},
    {"happy", "glücklich", "glücklich", "happier", "glücklicher", kChild, kAnybody | kMood},
    {"fast", "schnell", "schnell", "faster", "schneller", kVehicle | kTransport, kVehicle | kTransport},
    {"quiet", "ruhig", "ruhig", "quieter", "ruhiger", kSettlement | kRoom | kDining, kSettlement | kRoom | kDining},
    {"good", "gut", "gut", "better", "besser", kReadable | kEvent | kDining | kFood | kAbstract, kReadable | kEvent | kDining | kAbstract},
};

constexpr Frame kAcc = Frame::accusative;
constexpr Frame kDat = Frame::dative;
constexpr Frame kIntr = Frame::intransitive;
constexpr Frame kDi = Frame::ditransitive;
constexpr Frame kObl = Frame::oblique;
constexpr Frame kDir = Frame::direction;

constexpr Verb kVerbs[] = {
    {"buy", "bought", "bought", "buying", "", "kaufen", "kauft", "kaufte", "gekauft", kAcc, kFood, kShop, kOnce | kEpoch},
    {"buy", "bought", "bought", "buying", "", "kaufen", "kauft", "kaufte", "gekauft", kAcc, kPriced, kSettlement, kOnce | kEpoch},
    {"sell", "sold", "sold", "selling", "", "verkaufen", "verkauft", "verkaufte", "verkauft", kAcc, kPriced, kSettlement, kOnce | kEpoch},
    {"read", "read", "read", "reading", "", "lesen", "liest", "las", "gelesen", kAcc, kReadable, kRoom | kOutdoor | kStudy},
    {"write", "wrote", "written", "writing", "", "schreiben", "schreibt", "schrieb", "geschrieben", kAcc, kWritable, kStudy, kOnce | kEpoch},
    {"translate", "translated", "translated", "translating", "", "übersetzen", "übersetzt", "übersetzte", "übersetzt", kAcc, kWritable, kStudy, kOnce | kEpoch},
    {"eat", "ate", "eaten", "eating", "", "essen", "isst", "aß", "gegessen", kAcc, kFood, kDining, kOnce},
    {"drink", "drank", "drunk", "drinking", "", "trinken", "trinkt", "trank", "getrunken", kAcc, kDrink, kDining, kOnce},
    {"cook", "cooked", "cooked", "cooking", "", "kochen", "kocht", "kochte", "gekocht", kAcc, kCookable, kDining, kOnce},
    {"bake", "baked", "baked", "baking", "", "backen", "backt", "backte", "gebacken", kAcc, kBakeable, 0, kOnce | kNoPlace},
    {"see", "saw", "seen", "seeing", "", "sehen", "sieht", "sah", "gesehen", kAcc, kAnybody | kAnimal | kVehicle, kSocial, kPunctual | kEpoch},
    {"visit", "visited", "visited", "visiting", "", "besuchen", "besucht", "besuchte", "besucht", kAcc, kAnybody | kLeisure | kSettlement, 0, kNoPlace | kEpoch},
    {"meet", "met", "met", "meeting", "", "treffen", "trifft", "traf", "getroffen", kAcc, kAnybody, kSocial, kEpoch},
    {"know", "knew", "known", "knowing", "", "kennen", "kennt", "kannte", "gekannt", kAcc, kAnybody | kSettlement, 0, kStative | kNoPlace},
    {"find", "found", "found", "finding", "", "finden", "findet", "fand", "gefunden", kAcc, kSmall | kAnimal, kRoom | kOutdoor | kStudy, kPunctual | kOnce | kEpoch | kAccident},
    {"look for", "looked for", "looked for", "looking for", "", "suchen", "sucht", "suchte", "gesucht", kAcc, kSmall | kAnimal | kPerson, kRoom | kOutdoor | kStop},
    {"lose", "lost", "lost", "losing", "", "verlieren", "verliert", "verlor", "verloren", kAcc, kSmall, kOutdoor | kSettlement, kPunctual | kOnce | kEpoch | kAccident},
    {"forget", "forgot", "forgotten", "forgetting", "", "vergessen", "vergisst", "vergaß", "vergessen", kAcc, kSmall, kDining | kLeisure | kStudy, kPunctual | kAccident | kOnce},
    {"open", "opened", "opened", "opening", "auf", "machen", "macht", "machte", "aufgemacht", kAcc, kOpenable, kRoom},
    {"close", "closed", "closed", "closing", "zu", "machen", "macht", "machte", "zugemacht", kAcc, kOpenable, kRoom},
    {"wash", "washed", "washed", "washing", "", "waschen", "wäscht", "wusch", "gewaschen", kAcc, kWearable | kVehicle, 0, kNoPlace},
    {"repair", "repaired", "repaired", "repairing", "", "reparieren", "repariert", "reparierte", "repariert", kAcc, kRepairable, kRoom, kOnce | kEpoch},
    {"call", "called", "called", "calling", "an", "rufen", "ruft", "rief", "angerufen", kAcc, kAnybody, kStop | kStudy},
    {"invite", "invited", "invited", "inviting", "ein", "laden", "lädt", "lud", "eingeladen", kAcc, kAnybody, 0, kNoPlace},
    {"pick up", "picked up", "picked up", "picking up", "ab", "holen", "holt", "holte", "abgeholt", kAcc, kAnybody, kStop, kParticle},
    {"need", "needed", "needed", "needing", "", "brauchen", "braucht", "brauchte", "gebraucht", kAcc, kVehicle | kSmall | kDevice | kFurniture, 0, kStative | kNoPlace},
    {"wear", "wore", "worn", "wearing", "", "tragen", "trägt", "trug", "getragen", kAcc, kWearable, 0, kNoPlace},
    {"carry", "carried", "carried", "carrying", "", "tragen", "trägt", "trug", "getragen", kAcc, kPortable | kFurniture, 0, kOnce | kNoPlace},
    {"build", "built", "built", "building", "", "bauen", "baut", "baute", "gebaut", kAcc, kBuilding, kSettlement, kOnce | kEpoch | kSlow},
    {"tidy", "tidied", "tidied", "tidying", "auf", "räumen", "räumt", "räumte", "aufgeräumt", kAcc, kRoom, 0, kNoPlace},
    {"clean", "cleaned", "cleaned", "cleaning", "", "putzen", "putzt", "putzte", "geputzt", kAcc, kRoom, 0, kNoPlace},
    {"turn on", "turned on", "turned on", "turning on", "ein", "schalten", "schaltet", "schaltete", "eingeschaltet", kAcc, kDevice, kRoom | kStudy},
    {"turn off", "turned off", "turned off", "turning off", "aus", "schalten", "schaltet", "schaltete", "ausgeschaltet", kAcc, kDevice, kRoom | kStudy},
    {"understand", "understood", "understood", "understanding", "", "verstehen", "versteht", "verstand", "verstanden", kAcc, kAbstract | kAnybody, 0, kStative | kNoPlace},
    {"discuss", "discussed", "discussed", "discussing", "", "besprechen", "bespricht", "besprach", "besprochen", kAcc, kAbstract, kStudy | kDining},
    {"help", "helped", "helped", "helping", "", "helfen", "hilft", "half", "geholfen", kDat, kAnybody, kRoom | kOutdoor | kStudy, kEpoch},
    {"thank", "thanked", "thanked", "thanking", "", "danken", "dankt", "dankte", "gedankt", kDat, kAnybody, 0, kPunctual | kNoPlace},
    {"listen to", "listened to", "listened to", "listening to", "zu", "hören", "hört", "hörte", "zugehört", kDat, kAnybody, kStudy | kLeisure},
    {"congratulate", "congratulated", "congratulated", "congratulating", "", "gratulieren", "gratuliert", "gratulierte", "gratuliert", kDat, kAnybody, 0, kPunctual | kOnce | kNoPlace | kEpoch},
    {"give", "gave", "given", "giving", "", "geben", "gibt", "gab", "gegeben", kDi, kGift | kSmall, 0, kOnce | kNoPlace},
    {"show", "showed", "shown", "showing", "", "zeigen", "zeigt", "zeigte", "gezeigt", kDi, kGift | kSmall | kVehicle | kRoom | kSettlement, 0, kNoPlace},
    {"send", "sent", "sent", "sending", "", "schicken", "schickt", "schickte", "geschickt", kDi, kGift | kWritable, 0, kOnce | kNoPlace},
    {"bring", "brought", "brought", "bringing", "", "bringen", "bringt", "brachte", "gebracht", kDi, kFood | kDrink | kGift, 0, kOnce | kNoPlace},
    {"lend", "lent", "lent", "lending", "", "leihen", "leiht", "lieh", "geliehen", kDi, kVehicle | kPortable | kWearable, 0, kOnce | kNoPlace | kEpoch},
    {"explain", "explained", "explained", "explaining", "", "erklären", "erklärt", "erklärte", "erklärt", Frame::to_dative, kAbstract, 0, kNoPlace | kEpoch},
    {"wait for", "waited for", "waited for", "waiting for", "", "warten", "wartet", "wartete", "gewartet", kObl, kAnybody | kTransport, kStop | kDining | kOutdoor, 0, "auf"},
    {"think of", "thought of", "thought of", "thinking of", "", "denken", "denkt", "dachte", "gedacht", kObl, kAnybody | kEvent | kAbstract, 0, kNoPlace, "an"},
    {"talk about", "talked about", "talked about", "talking about", "", "sprechen", "spricht", "sprach", "gesprochen", kObl, kReadable | kEvent | kAbstract | kAnybody, kStudy | kDining, 0, "über"},
    {"laugh about", "laughed about", "laughed about", "laughing about", "", "lachen", "lacht", "lachte", "gelacht", kObl, kReadable | kEvent, 0, kNoPlace, "über"},
    {"dream of", "dreamt of", "dreamt of", "dreaming of", "", "träumen", "träumt", "träumte", "geträumt", kObl, kVehicle | kBuilding | kAnimal | kFood, 0, kNoPlace, "von", Case::dative},
    {"take part in", "took part in", "taken part in", "taking part in", "teil", "nehmen", "nimmt", "nahm", "teilgenommen", kObl, kAttended, 0, kNoPlace | kEpoch, "an", Case::dative},
    {"sleep", "slept", "slept", "sleeping", "", "schlafen", "schläft", "schlief", "geschlafen", kIntr, 0, kRoom | kOutdoor, kAlone},
    {"work", "worked", "worked", "working", "", "arbeiten", "arbeitet", "arbeitete", "gearbeitet", kIntr, 0, kStudy | kDining | kShop | kSettlement | kStop, kEpoch},
    {"play", "played", "played", "playing", "", "spielen", "spielt", "spielte", "gespielt", kIntr, 0, kRoom | kOutdoor, 0, "", Case::accusative, kChild},
    {"sing", "sang", "sung", "singing", "", "singen", "singt", "sang", "gesungen", kIntr, 0, kOutdoor | kLeisure | kRoom, kEpoch},
    {"dance", "danced", "danced", "dancing", "", "tanzen", "tanzt", "tanzte", "getanzt", kIntr, 0, kOutdoor | kDining | kRoom, kEpoch},
    {"live", "lived", "lived", "living", "", "wohnen", "wohnt", "wohnte", "gewohnt", kIntr, 0, kSettlement, kStative},
    {"get up", "got up", "got up", "getting up", "auf", "stehen", "steht", "stand", "aufgestanden", kIntr, 0, 0, kSein | kPunctual | kNoPlace | kRoutine},
    {"fall asleep", "fell asleep", "fallen asleep", "falling asleep", "ein", "schlafen", "schläft", "schlief", "eingeschlafen", kIntr, 0, kRoom | kLeisure, kSein | kPunctual | kRoutine},
    {"go shopping", "went shopping", "gone shopping", "going shopping", "ein", "kaufen", "kauft", "kaufte", "eingekauft", kIntr, 0, kShop | kSettlement, kRoutine},
    {"watch television", "watched television", "watched television", "watching television", "fern", "sehen", "sieht", "sah", "ferngesehen", kIntr, 0, kRoom, kRoutine},
    {"come back", "came back", "come back", "coming back", "zurück", "kommen", "kommt", "kam", "zurückgekommen", kIntr, 0, 0, kSein | kPunctual | kNoPlace | kRoutine},
    {"arrive", "arrived", "arrived", "arriving", "an", "kommen", "kommt", "kam", "angekommen", kIntr, 0, kStop | kSettlement, kSein | kPunctual | kRoutine | kEpoch, "", Case::accusative, kAnybody | kTransport},
    {"leave", "left", "left", "leaving", "ab", "fahren", "fährt", "fuhr", "abgefahren", kIntr, 0, 0, kSein | kPunctual | kNoPlace | kRoutine, "", Case::accusative, kTransport},
    {"begin", "began", "begun", "beginning", "an", "fangen", "fängt", "fing", "angefangen", kIntr, 0, 0, kPunctual | kNoPlace | kRoutine, "", Case::accusative, kEvent},
    {"end", "ended", "ended", "ending", "", "enden", "endet", "endete", "geendet", kIntr, 0, 0, kPunctual | kNoPlace | kRoutine, "", Case::accusative, kEvent},
    {"go", "went", "gone", "going", "", "gehen", "geht", "ging", "gegangen", kDir, 0, kInside | kStop, kSein | kRoutine},
    {"run", "ran", "run", "running", "", "laufen", "läuft", "lief", "gelaufen", kDir, 0, kOutdoor | kStop | kRoom, kSein, "", Case::accusative, kAnybody | kAnimal},
    {"drive", "drove", "driven", "driving", "", "fahren", "fährt", "fuhr", "gefahren", kDir, 0, kSettlement | kStop | kShop, kSein | kRoutine},
    {"travel", "travelled", "travelled", "travelling", "", "reisen", "reist", "reiste", "gereist", kDir, 0, 0, kSein | kEpoch},
    {"fly", "flew", "flown", "flying", "", "fliegen", "fliegt", "flog", "geflogen", kDir, 0, 0, kSein | kEpoch},
};

constexpr Verb kMatrixVerbs[] = {
    {"know", "knew", "known", "knowing", "", "wissen", "weiß", "wusste", "gewusst", kIntr},
    {"say", "said", "said", "saying", "", "sagen", "sagt", "sagte", "gesagt", kIntr},
    {"hope", "hoped", "hoped", "hoping", "", "hoffen", "hofft", "hoffte", "gehofft", kIntr},
    {"believe", "believed", "believed", "believing", "", "glauben", "glaubt", "glaubte", "geglaubt", kIntr},
};

constexpr Modal kModals[] = {
    {"can", "", "", "", "kann", "können", true},
    {"must", "", "", "", "muss", "müssen", false},
    {"should", "", "", "", "sollte", "sollten", true},
    {"may", "", "", "", "darf", "dürfen", true},
    {"could", "", "", "could", "konnte", "konnten", true},
    {"would", "like to ", "", "", "möchte", "möchten", true},
    {"", "want to ", "wants to ", "", "will", "wollen", true},
    {"", "have to ", "has to ", "", "muss", "müssen", true},
    {"", "want to ", "wanted to ", "wanted to ", "wollte", "wollten", true},
    {"", "have to ", "had to ", "had to ", "musste", "mussten", true},
};
// clang-format on

}  // namespace

const Verb kBe{"be", "was", "been", "being", "", "sein", "ist", "war", "gewesen", Frame::intransitive, 0, 0, kSein};
const Verb kLie{"lie", "lay", "lain", "lying", "", "liegen", "liegt", "lag", "gelegen", Frame::intransitive};
const Verb kStand{"stand",  "stood", "stood", "standing",  "",
                  "stehen", "steht", "stand", "gestanden", Frame::intransitive};
const Verb kHave{"have", "had", "had", "having", "", "haben", "hat", "hatte", "gehabt", Frame::accusative};
const Verb kLay{"put", "put", "put", "putting", "", "legen", "legt", "legte", "gelegt", Frame::accusative};
const Verb kPlace{"put", "put", "put", "putting", "", "stellen", "stellt", "stellte", "gestellt", Frame::accusative};

std::span<const Adjective> adjectives() {
  return kAdjectives;
}
std::span<const Verb> verbs() {
  return kVerbs;
}
std::span<const Verb> matrix_verbs() {
  return kMatrixVerbs;
}
std::span<const Modal> modals() {
  return kModals;
}

}  // namespace attune::grammar

// Numbers, dates and clock times of the grammar corpus.
#include <fmt/format.h>

#include <array>

#include "attune/base/fail.h"
#include "attune/demo/morphology.h"

namespace attune::grammar {
namespace {

constexpr std::array<const char*, 20> kEnglishSmall{
    "zero", "one",    "two",    "three",    "four",     "five",    "six",     "seven",     "eight",    "nine",
    "ten",  "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<const char*, 10> kEnglishTens{"",      "",      "twenty",  "thirty", "forty",
                                                   "fifty", "sixty", "seventy", "eighty", "ninety"};
constexpr std::array<const char*, 20> kGermanSmall{
    "null", "ein", "zwei",  "drei",     "vier",     "fünf",     "sechs",    "sieben",   "acht",     "neun",
    "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
constexpr std::array<const char*, 10> kGermanTens{"",        "",        "zwanzig", "dreißig", "vierzig",
                                                  "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
constexpr std::array<const char*, 12> kEnglishMonths{"January",   "February", "March",    "April",
                                                     "May",       "June",     "July",     "August",
                                                     "September", "October",  "November", "December"};
constexpr std::array<const char*, 12> kGermanMonths{"Januar",    "Februar", "März",     "April",
                                                    "Mai",       "Juni",    "Juli",     "August",
                                                    "September", "Oktober", "November", "Dezember"};

size_t checked(const char* what, int64_t value, int64_t low, int64_t high) {
  if (value < low || value > high)
    fail<ConfigError>("grammar corpus: {} {} is not in {} to {}", what, value, low, high);
  return static_cast<size_t>(value);
}

/// 1 to 99, "ein" for one, as in a compound.
std::string german_below_hundred(size_t n) {
  if (n < 20) return kGermanSmall[n];
  if (n % 10 == 0) return kGermanTens[n / 10];
  return fmt::format("{}und{}", kGermanSmall[n % 10], kGermanTens[n / 10]);
}

std::string english_below_hundred(size_t n) {
  if (n < 20) return kEnglishSmall[n];
  if (n % 10 == 0) return kEnglishTens[n / 10];
  return fmt::format("{}-{}", kEnglishTens[n / 10], kEnglishSmall[n % 10]);
}

}  // namespace

std::string english_number(int64_t number) {
  size_t n = checked("number", number, 0, 9999);
  if (n == 0) return kEnglishSmall[0];
  std::string words;
  if (n >= 1000) words += fmt::format("{} thousand", kEnglishSmall[n / 1000]);
  n %= 1000;
  if (n >= 100) words += fmt::format("{}{} hundred", words.empty() ? "" : " ", kEnglishSmall[n / 100]);
  n %= 100;
  if (n > 0) words += (words.empty() ? "" : " and ") + english_below_hundred(n);
  return words;
}

std::string german_number(int64_t number) {
  size_t n = checked("number", number, 0, 9999);
  if (n == 0) return kGermanSmall[0];
  std::string word;
  if (n >= 1000) word += fmt::format("{}tausend", kGermanSmall[n / 1000]);
  n %= 1000;
  if (n >= 100) word += fmt::format("{}hundert", kGermanSmall[n / 100]);
  n %= 100;
  if (n == 1) return word + "eins";
  return n > 0 ? word + german_below_hundred(n) : word;
}

std::string english_ordinal(int64_t number) {
  const bool teen = number % 100 / 10 == 1;
  const int64_t last = teen ? 0 : number % 10;
  return fmt::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

std::string english_date(int64_t day, int64_t month, int64_t year) {
  checked("day", day, 1, 31);
  const char* name = kEnglishMonths[checked("month", month, 1, 12) - 1];
  const std::string date = fmt::format("on the {} of {}", english_ordinal(day), name);
  return year == 0 ? date : fmt::format("{} {}", date, year);
}

std::string german_date(int64_t day, int64_t month, int64_t year) {
  checked("day", day, 1, 31);
  const std::string date = fmt::format("am {}. {}", day, kGermanMonths[checked("month", month, 1, 12) - 1]);
  return year == 0 ? date : fmt::format("{} {}", date, year);
}

std::string english_clock(int64_t hour, int64_t minute) {
  const size_t h = checked("hour", hour, 1, 12);
  const size_t m = checked("minute", minute, 0, 59);
  const char* next = kEnglishSmall[h % 12 + 1];
  const auto minutes = [](size_t count) { return count == 15 ? "a quarter" : english_below_hundred(count); };
  if (m == 0) return fmt::format("at {} o'clock", kEnglishSmall[h]);
  if (m == 30) return fmt::format("at half past {}", kEnglishSmall[h]);
  return m < 30 ? fmt::format("at {} past {}", minutes(m), kEnglishSmall[h])
                : fmt::format("at {} to {}", minutes(60 - m), next);
}

std::string german_clock(int64_t hour, int64_t minute) {
  const size_t h = checked("hour", hour, 1, 12);
  const size_t m = checked("minute", minute, 0, 59);
  const auto name = [](size_t value) { return std::string(value == 1 ? "eins" : kGermanSmall[value]); };
  const auto minutes = [](size_t count) { return count == 15 ? "Viertel" : german_below_hundred(count); };
  const std::string next = name(h % 12 + 1);
  if (m == 0) return fmt::format("um {} Uhr", kGermanSmall[h]);
  if (m == 30) return "um halb " + next;
  if (m == 25 || m == 35) return fmt::format("um fünf {} halb {}", m == 25 ? "vor" : "nach", next);
  return m < 30 ? fmt::format("um {} nach {}", minutes(m), name(h))
                : fmt::format("um {} vor {}", minutes(60 - m), next);
}

}  // namespace attune::grammar

#include "attune/serve/html_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>

#include "attune/base/ascii.h"
#include "attune/text/unicode.h"

namespace attune::serve {
namespace {

// What "&NAME;" stands for, by the names of HTML 4 and by numbers; "" for any other name.
std::string entity(std::string_view name) {
  static const std::unordered_map<std::string_view, char32_t> kNames = {
      {"quot", 34},      {"amp", 38},      {"apos", 39},      {"lt", 60},       {"gt", 62},       {"nbsp", 160},
      {"iexcl", 161},    {"cent", 162},    {"pound", 163},    {"curren", 164},  {"yen", 165},     {"brvbar", 166},
      {"sect", 167},     {"uml", 168},     {"copy", 169},     {"ordf", 170},    {"laquo", 171},   {"not", 172},
      {"shy", 173},      {"reg", 174},     {"macr", 175},     {"deg", 176},     {"plusmn", 177},  {"sup2", 178},
      {"sup3", 179},     {"acute", 180},   {"micro", 181},    {"para", 182},    {"middot", 183},  {"cedil", 184},
      {"sup1", 185},     {"ordm", 186},    {"raquo", 187},    {"frac14", 188},  {"frac12", 189},  {"frac34", 190},
      {"iquest", 191},   {"Agrave", 192},  {"Aacute", 193},   {"Acirc", 194},   {"Atilde", 195},  {"Auml", 196},
      {"Aring", 197},    {"AElig", 198},   {"Ccedil", 199},   {"Egrave", 200},  {"Eacute", 201},  {"Ecirc", 202},
      {"Euml", 203},     {"Igrave", 204},  {"Iacute", 205},   {"Icirc", 206},   {"Iuml", 207},    {"ETH", 208},
      {"Ntilde", 209},   {"Ograve", 210},  {"Oacute", 211},   {"Ocirc", 212},   {"Otilde", 213},  {"Ouml", 214},
      {"times", 215},    {"Oslash", 216},  {"Ugrave", 217},   {"Uacute", 218},  {"Ucirc", 219},   {"Uuml", 220},
      {"Yacute", 221},   {"THORN", 222},   {"szlig", 223},    {"agrave", 224},  {"aacute", 225},  {"acirc", 226},
      {"atilde", 227},   {"auml", 228},    {"aring", 229},    {"aelig", 230},   {"ccedil", 231},  {"egrave", 232},
      {"eacute", 233},   {"ecirc", 234},   {"euml", 235},     {"igrave", 236},  {"iacute", 237},  {"icirc", 238},
      {"iuml", 239},     {"eth", 240},     {"ntilde", 241},   {"ograve", 242},  {"oacute", 243},  {"ocirc", 244},
      {"otilde", 245},   {"ouml", 246},    {"divide", 247},   {"oslash", 248},  {"ugrave", 249},  {"uacute", 250},
      {"ucirc", 251},    {"uuml", 252},    {"yacute", 253},   {"thorn", 254},   {"yuml", 255},    {"OElig", 338},
      {"oelig", 339},    {"Scaron", 352},  {"scaron", 353},   {"Yuml", 376},    {"fnof", 402},    {"circ", 710},
      {"tilde", 732},    {"Alpha", 913},   {"Beta", 914},     {"Gamma", 915},   {"Delta", 916},   {"Epsilon", 917},
      {"Zeta", 918},     {"Eta", 919},     {"Theta", 920},    {"Iota", 921},    {"Kappa", 922},   {"Lambda", 923},
      {"Mu", 924},       {"Nu", 925},      {"Xi", 926},       {"Omicron", 927}, {"Pi", 928},      {"Rho", 929},
      {"Sigma", 931},    {"Tau", 932},     {"Upsilon", 933},  {"Phi", 934},     {"Chi", 935},     {"Psi", 936},
      {"Omega", 937},    {"alpha", 945},   {"beta", 946},     {"gamma", 947},   {"delta", 948},   {"epsilon", 949},
      {"zeta", 950},     {"eta", 951},     {"theta", 952},    {"iota", 953},    {"kappa", 954},   {"lambda", 955},
      {"mu", 956},       {"nu", 957},      {"xi", 958},       {"omicron", 959}, {"pi", 960},      {"rho", 961},
      {"sigmaf", 962},   {"sigma", 963},   {"tau", 964},      {"upsilon", 965}, {"phi", 966},     {"chi", 967},
      {"psi", 968},      {"omega", 969},   {"thetasym", 977}, {"upsih", 978},   {"piv", 982},     {"ensp", 8194},
      {"emsp", 8195},    {"thinsp", 8201}, {"zwnj", 8204},    {"zwj", 8205},    {"lrm", 8206},    {"rlm", 8207},
      {"ndash", 8211},   {"mdash", 8212},  {"lsquo", 8216},   {"rsquo", 8217},  {"sbquo", 8218},  {"ldquo", 8220},
      {"rdquo", 8221},   {"bdquo", 8222},  {"dagger", 8224},  {"Dagger", 8225}, {"bull", 8226},   {"hellip", 8230},
      {"permil", 8240},  {"prime", 8242},  {"Prime", 8243},   {"lsaquo", 8249}, {"rsaquo", 8250}, {"oline", 8254},
      {"frasl", 8260},   {"euro", 8364},   {"image", 8465},   {"weierp", 8472}, {"real", 8476},   {"trade", 8482},
      {"alefsym", 8501}, {"larr", 8592},   {"uarr", 8593},    {"rarr", 8594},   {"darr", 8595},   {"harr", 8596},
      {"crarr", 8629},   {"lArr", 8656},   {"uArr", 8657},    {"rArr", 8658},   {"dArr", 8659},   {"hArr", 8660},
      {"forall", 8704},  {"part", 8706},   {"exist", 8707},   {"empty", 8709},  {"nabla", 8711},  {"isin", 8712},
      {"notin", 8713},   {"ni", 8715},     {"prod", 8719},    {"sum", 8721},    {"minus", 8722},  {"lowast", 8727},
      {"radic", 8730},   {"prop", 8733},   {"infin", 8734},   {"ang", 8736},    {"and", 8743},    {"or", 8744},
      {"cap", 8745},     {"cup", 8746},    {"int", 8747},     {"there4", 8756}, {"sim", 8764},    {"cong", 8773},
      {"asymp", 8776},   {"ne", 8800},     {"equiv", 8801},   {"le", 8804},     {"ge", 8805},     {"sub", 8834},
      {"sup", 8835},     {"nsub", 8836},   {"sube", 8838},    {"supe", 8839},   {"oplus", 8853},  {"otimes", 8855},
      {"perp", 8869},    {"sdot", 8901},   {"lceil", 8968},   {"rceil", 8969},  {"lfloor", 8970}, {"rfloor", 8971},
      {"lang", 10216},   {"rang", 10217},  {"loz", 9674},     {"spades", 9824}, {"clubs", 9827},  {"hearts", 9829},
      {"diams", 9830}};
  std::string text;
  if (const auto known = kNames.find(name); known != kNames.end()) {
    append_utf8(text, known->second);
    return text;
  }
  if (name.size() < 2 || name[0] != '#') return "";
  const bool hex = name[1] == 'x' || name[1] == 'X';
  const std::string_view digits = name.substr(hex ? 2 : 1);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  const bool scalar = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (error != std::errc() || end != digits.data() + digits.size() || !scalar) return "";
  append_utf8(text, static_cast<char32_t>(code));
  return text;
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_entity_name(std::string_view name) {
  return !name.empty() && is_letter(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

// The name between the character at `at`, a "&" or another one, and the next ";"; "" where no ";" is near.
std::string_view name_at(std::string_view text, size_t at) {
  constexpr std::string_view kLongest = "&CounterClockwiseContourIntegral;";  // of HTML 5
  const std::string_view found = text.substr(at, kLongest.size());
  const size_t end = found.find(';', 1);
  return end == std::string_view::npos ? "" : found.substr(1, end - 1);
}

HtmlPart text_part(std::string_view html) {
  HtmlPart part{.is_text = true};
  std::vector<std::string_view> escaped;  // "NAME" of "&amp;NAME;", which is text that looks like an entity
  for (size_t i = 0; i < html.size(); ++i) {
    if (html[i] == '&') {
      const std::string_view name = name_at(html, i);
      if (const std::string found = entity(name); !found.empty()) {
        part.content += found;
        i += name.size() + 1;
        if (found == "&") escaped.push_back(name_at(html, i));  // behind the ";" of "&amp;"
        continue;
      }
      if (is_entity_name(name)) part.unknown.emplace(name);
    }
    part.content += html[i];
  }
  for (const std::string_view name : escaped) part.unknown.erase(std::string(name));
  return part;
}

bool is_blank(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (!is_space(next_code_point(text, at))) return false;
  return true;
}

// The name of a tag. It ends before white space, "/" or ">": "pre-order" is not "pre".
std::string lower_name(std::string_view tag) {
  return ascii_lowercase(tag.substr(0, tag.find_first_of(" \t\r\n\f/>")));
}

// Returns the end of the tag, comment or untranslated element that begins at `at`; `at` if none begins there, npos for
// a tag that never ends.
size_t end_of_markup(std::string_view html, size_t at) {
  static constexpr std::array<std::string_view, 5> kKept = {"script", "style", "pre", "code", "textarea"};
  const std::string_view rest = html.substr(at);
  const auto behind = [&](std::string_view end, size_t from) {
    const size_t found = html.find(end, from);
    return found == std::string_view::npos ? html.size() : found + end.size();
  };
  if (rest.starts_with("<!--")) return behind("-->", at + 4);
  if (rest.size() < 2) return at;
  const char c = rest[1];
  const bool tag = c == '/' || c == '!' || c == '?' || is_letter(c);
  if (!tag) return at;
  size_t end = at + 1;
  for (char quote = 0; end < html.size(); ++end) {
    if (quote != 0) {
      if (html[end] == quote) quote = 0;
    } else if (html[end] == '"' || html[end] == '\'') {
      quote = html[end];
    } else if (html[end] == '>') {
      break;
    }
  }
  if (end == html.size()) return std::string_view::npos;
  ++end;
  const std::string name = lower_name(rest.substr(1));
  if (html[end - 2] == '/' || std::find(kKept.begin(), kKept.end(), name) == kKept.end()) return end;
  for (size_t close = html.find("</", end); close != std::string_view::npos; close = html.find("</", close + 2))
    if (lower_name(html.substr(close + 2)) == name) return behind(">", close);
  return html.size();
}

}  // namespace

std::vector<HtmlPart> split_html(std::string_view html) {
  std::vector<HtmlPart> parts;
  const auto add = [&](bool may_be_text, std::string_view content) {
    if (content.empty()) return;
    HtmlPart text = may_be_text ? text_part(content) : HtmlPart{};
    if (!is_blank(text.content)) {
      parts.push_back(std::move(text));
    } else if (!parts.empty() && !parts.back().is_text) {
      parts.back().content += content;
    } else {
      parts.push_back({.content = std::string(content)});
    }
  };
  size_t begin = 0;  // of the text that is not yet added
  for (size_t at = html.find('<'); at != std::string_view::npos; at = html.find('<', at)) {
    const size_t end = end_of_markup(html, at);
    if (end == std::string_view::npos) break;  // the rest is text: to look on would take quadratic time
    if (end == at) {
      ++at;
      continue;
    }
    add(true, html.substr(begin, at - begin));
    add(false, html.substr(at, end - at));
    begin = at = end;
  }
  add(true, html.substr(begin));
  return parts;
}

std::string join_html(const std::vector<HtmlPart>& parts) {
  std::string html;
  for (const HtmlPart& part : parts) {
    if (!part.is_text) {
      html += part.content;
      continue;
    }
    for (size_t i = 0; i < part.content.size(); ++i) {
      const char c = part.content[i];
      if (c == '&') {
        html += part.unknown.contains(name_at(part.content, i)) ? "&" : "&amp;";
      } else {
        html += c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
      }
    }
  }
  return html;
}

}  // namespace attune::serve

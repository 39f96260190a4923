#include "attune/serve/html_text.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "attune/text/unicode.h"

namespace attune::serve {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEntities = {
    {{"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}, {"nbsp", "\u00a0"}}};

// What "&NAME;" stands for, "" where it stands for nothing that is known.
std::string entity(std::string_view name) {
  for (const auto& [known, text] : kEntities)
    if (known == name) return std::string(text);
  if (name.size() < 2 || name[0] != '#') return "";
  const bool hex = name[1] == 'x' || name[1] == 'X';
  const std::string_view digits = name.substr(hex ? 2 : 1);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
  const bool scalar = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (error != std::errc() || end != digits.data() + digits.size() || !scalar) return "";
  std::string text;
  append_utf8(text, static_cast<char32_t>(code));
  return text;
}

std::string without_entities(std::string_view text) {
  constexpr size_t kLongest = 10;
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '&') {
      const size_t end = text.substr(i, kLongest).find(';');
      const std::string found = end == std::string_view::npos ? "" : entity(text.substr(i + 1, end - 1));
      if (!found.empty()) {
        result += found;
        i += end;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

std::string lower_name(std::string_view tag) {
  std::string name;
  for (const char c : tag) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!letter) break;
    name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return name;
}

// Behind the tag, comment or untranslated element that begins at `at`; `at` where it is none, npos for a tag that never
// ends.
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
  const bool tag = c == '/' || c == '!' || c == '?' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
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
  const auto add = [&](bool is_text, std::string_view content) {
    if (content.empty()) return;
    if (!is_text && !parts.empty() && !parts.back().is_text) {
      parts.back().content += content;
    } else {
      parts.push_back({is_text, is_text ? without_entities(content) : std::string(content)});
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
    for (const char c : part.content)
      html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return html;
}

}  // namespace attune::serve

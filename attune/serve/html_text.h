#pragma once
// The text of HTML, between its tags.

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace attune::serve {

struct HtmlPart {
  bool is_text = false;                             // to be translated; else tags, comments, scripts: to be kept
  std::string content = {};                         // of text: known entities are decoded
  std::set<std::string, std::less<>> unknown = {};  // of text: names of entities that it keeps as they are
};

/// Divides HTML at its tags. What stands in script, style, pre, code and textarea is kept as it is, and so is white
/// space between two tags: each part that is text has something else. Takes any text: what is no tag is text.
std::vector<HtmlPart> split_html(std::string_view html);

/// The inverse: texts get entities for & < and >, and their unknown entities stay as they were.
std::string join_html(const std::vector<HtmlPart>& parts);

}  // namespace attune::serve

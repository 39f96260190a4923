#include "attune/serve/html_text.h"

#include <gtest/gtest.h>

#include "attune/base/random.h"

namespace attune::serve {
namespace {

std::string shown(std::string_view html) {
  std::string text;
  for (const HtmlPart& part : split_html(html)) text += part.is_text ? "[" + part.content + "]" : part.content;
  return text;
}

TEST(HtmlText, TextStandsBetweenTags) {
  EXPECT_EQ(shown("<p class=\"a>b\">Hello <b>there</b>.</p>"), "<p class=\"a>b\">[Hello ]<b>[there]</b>[.]</p>");
  EXPECT_EQ(shown("no tags"), "[no tags]");
  EXPECT_EQ(shown("<!-- <b>no</b> -->yes<br/>"), "<!-- <b>no</b> -->[yes]<br/>");
  EXPECT_EQ(shown("<script>if (a<b) x()</script>t<PRE>x</pre>"), "<script>if (a<b) x()</script>[t]<PRE>x</pre>");
}

TEST(HtmlText, EntitiesAreText) {
  EXPECT_EQ(shown("a &amp; b &lt;c&gt; &#233;&#xE9; &quot;x&quot; &unknown; &"), "[a & b <c> éé \"x\" &unknown; &]");
  EXPECT_EQ(join_html(split_html("<i>1 &lt; 2 &amp; 3</i>")), "<i>1 &lt; 2 &amp; 3</i>");
}

TEST(HtmlText, EntitiesHaveTheNamesOfHtml4) {
  EXPECT_EQ(shown("Caf&eacute; &copy; 2024 &mdash; T&uuml;r &Omega;&thetasym;"), "[Café © 2024 — Tür Ωϑ]");
  EXPECT_EQ(join_html(split_html("<p>Caf&eacute; &hellip;</p>")), "<p>Café …</p>");
}

// A browser may know more names.
TEST(HtmlText, AnEscapedEntityStaysEscaped) {
  const std::string html = "<p>Write &amp;zeta2; or &amp;eacute; for it</p>";
  EXPECT_EQ(join_html(split_html(html)), html);
  EXPECT_EQ(join_html(split_html("&amp;zeta2; &zeta2;")), "&amp;zeta2; &amp;zeta2;") << "a browser shows both alike";
}

TEST(HtmlText, WhatIsNoKnownEntityStaysAsItIs) {
  const std::string html = "<p>a &check; b &amp;c; d &;</p>";
  EXPECT_EQ(shown(html), "<p>[a &check; b &c; d &;]</p>");
  EXPECT_EQ(join_html(split_html(html)), "<p>a &check; b &amp;c; d &amp;;</p>");
}

TEST(HtmlText, ElementsOfOwnNamesAreTranslated) {
  EXPECT_EQ(shown("<pre-order>Buy now.</pre-order>"), "<pre-order>[Buy now.]</pre-order>");
  EXPECT_EQ(shown("<code:x a>b</code:x>"), "<code:x a>[b]</code:x>");
  EXPECT_EQ(shown("<pre\nclass=a>a</pre-x>b</pre\n>c"), "<pre\nclass=a>a</pre-x>b</pre\n>[c]");
}

// It has nothing to translate.
TEST(HtmlText, WhiteSpaceBetweenTagsIsKeptAsItIs) {
  const std::string html = "<td>&nbsp;</td> \n <td>a </td>\t";
  EXPECT_EQ(shown(html), "<td>&nbsp;</td> \n <td>[a ]</td>\t");
  EXPECT_EQ(join_html(split_html(html)), html);
  EXPECT_EQ(split_html(html).size(), 3u);
}

TEST(HtmlText, WhatIsNoTagIsText) {
  EXPECT_EQ(shown("1 < 2"), "[1 < 2]");
  EXPECT_EQ(shown("<b never ends"), "[<b never ends]");
  EXPECT_EQ(shown("<"), "[<]");
}

TEST(HtmlText, AnyBytesAreKept) {
  Random random(3);
  const std::string pieces[] = {"<", ">", "b", "/", "!--", "-->", "script", "\"", " ", "=", "x"};
  for (int i = 0; i < 20000; ++i) {
    std::string html;
    for (uint64_t n = random.below(20); n > 0; --n) html += pieces[random.below(std::size(pieces))];
    std::string whole;
    for (const HtmlPart& part : split_html(html)) whole += part.content;
    EXPECT_EQ(whole, html);
  }
}

TEST(HtmlText, ManyOpenBracketsTakeLinearTime) {
  EXPECT_EQ(split_html(std::string(1 << 20, '<')).size(), 1u);
  std::string half;
  for (int i = 0; i < 1 << 18; ++i) half += "<b\"";
  EXPECT_EQ(split_html(half).size(), 1u);
}

}  // namespace
}  // namespace attune::serve

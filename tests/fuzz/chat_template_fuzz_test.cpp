// Whatever a chat template is: text or attune::Error, in bounded time.

#include <gtest/gtest.h>

#include "attune/base/error.h"
#include "attune/base/file.h"
#include "attune/text/chat_template.h"
#include "tests/support/memory.h"
#include "tests/support/mutate.h"
#include "tests/support/paths.h"

namespace attune {
namespace {

const std::vector<std::string> kTemplateDictionary = {"{{",
                                                      "}}",
                                                      "{%",
                                                      "%}",
                                                      "{%-",
                                                      "-%}",
                                                      "{#",
                                                      "#}",
                                                      "{% endfor %}",
                                                      "{% endif %}",
                                                      "{% if ",
                                                      "{% for x in ",
                                                      "{% set ns.x = ",
                                                      "{% macro m(a) %}",
                                                      "| tojson",
                                                      "| join",
                                                      "| map(",
                                                      "| sort",
                                                      "is defined",
                                                      "not ",
                                                      " ~ ",
                                                      " + ",
                                                      " * ",
                                                      "** 999",
                                                      "[::-1]",
                                                      "[-1]",
                                                      ".items()",
                                                      ".get",
                                                      "['items']",
                                                      ".split(",
                                                      "('a')",
                                                      "range(100000)",
                                                      "namespace(",
                                                      "raise_exception(",
                                                      "loop",
                                                      "messages",
                                                      "none",
                                                      "true",
                                                      "9223372036854775807",
                                                      "-",
                                                      "(",
                                                      ")",
                                                      "[",
                                                      "]",
                                                      "{",
                                                      "}",
                                                      "\\",
                                                      "'",
                                                      "\"",
                                                      "\xFF"};

TEST(ChatTemplateFuzz, MutatedTemplatesWriteOrAreRefused) {
  const auto folder = source_dir() / "tests/fixtures/chat_templates";
  const std::string messages = R"([{"role": "system", "content": "S"}, {"role": "user", "content": "A\u00e9"},
      {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, null]}}}]},
      {"role": "tool", "content": "1"}])";
  Random random(7);
  const int64_t before = peak_resident_bytes();
  int written = 0, refused = 0;
  for (const char* name :
       {"constructs.jinja", "command_r.jinja", "qwen_tools.jinja", "mistral.jinja", "deepseek.jinja"}) {
    const std::string valid = read_file(folder / name);
    for (int round = 0; round < 1000; ++round) try {
        ChatTemplate(mutate(valid, kTemplateDictionary, random), name).render_json(messages);
        ++written;
      } catch (const Error&) {
        ++refused;
      }
  }
  EXPECT_GT(written, 200);
  EXPECT_GT(refused, 200);
  EXPECT_LT(peak_resident_bytes() - before, int64_t{1} << 30);
}

}  // namespace
}  // namespace attune

#include "attune/text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "attune/base/file.h"
#include "attune/base/json.h"
#include "tests/support/errors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace attune {
namespace {

using ::testing::HasSubstr;

std::string rendered(const std::string& source, const std::string& messages = "[]",
                     const std::string& variables = "{}") {
  return ChatTemplate(source, "t").render_json(messages, variables);
}
std::string refusal(const std::string& source) {
  return message_of<ConfigError>([&] { ChatTemplate(source, "t"); });
}
std::string failure(const std::string& source) {
  const std::string message = message_of<DataError>([&] { rendered(source); });
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

// tests/fixtures/chat_templates: templates of ten families, and what transformers' apply_chat_template makes of them.
TEST(ChatTemplate, WritesWhatTransformersWrites) {
  ::setenv("TZ", "UTC", 1);
  ::tzset();
  const auto folder = source_dir() / "tests/fixtures/chat_templates";
  const Json fixture = Json::parse(read_file(folder / "cases.json"));
  const std::map<std::string, std::string> tokens = fixture["tokens"];
  std::map<std::string, int> rendered_by, refused_by;
  for (const Json& c : fixture["cases"]) {
    const std::string name = c["template"], conversation = c["conversation"], variables = c["variables"];
    const ChatTemplate chat(read_file(folder / name), name, tokens);
    const ChatTemplateOptions options{.add_generation_prompt = c["add_generation_prompt"],
                                      .now = fixture["now"].get<int64_t>()};
    const std::string what = name + ", " + conversation + ", " + variables;
    const auto render = [&] {
      return chat.render_json(fixture["conversations"][conversation].dump(), fixture["variables"][variables].dump(),
                              options);
    };
    if (c.contains("error")) {
      const std::string message = message_of<DataError>(render);
      const std::string expected = c["error"];
      EXPECT_THAT(message, HasSubstr(name + ":")) << what;
      if (expected.starts_with("TemplateError: ")) {
        EXPECT_THAT(message, HasSubstr("the template refuses this: " + expected.substr(15))) << what;
      }
      ++refused_by[name];
    } else {
      EXPECT_EQ(render(), c["expected"].get<std::string>()) << what;
      ++rendered_by[name];
    }
  }
  EXPECT_EQ(rendered_by.size(), 12u);
  EXPECT_GT(refused_by.size(), 8u);
}

TEST(ChatTemplate, TakesMessagesAsStructs) {
  const ChatTemplate chat(
      "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}"
      "{% if add_generation_prompt %}{{ bos_token }}{% endif %}",
      "t", {{"bos_token", "<s>"}});
  EXPECT_EQ(chat.render({{"user", "\"a\""}, {"assistant", "b"}}), "[user: \"a\"][assistant: b]<s>");
  EXPECT_EQ(chat.render({}, {.add_generation_prompt = false}), "");
}

TEST(ChatTemplate, IsFoundInAFolder) {
  const TemporaryFolder folder(memory_folder());
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  const auto config = [&](const std::string& text) { write_file(folder / "tokenizer_config.json", text); };
  config(R"({"bos_token": null, "chat_template": null})");
  EXPECT_FALSE(ChatTemplate::load(folder.path()));
  config(R"({"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "</s>",
             "added_tokens_decoder": {"0": {"content": "<pad>"}},
             "chat_template": "{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}"})");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "<s></s>False");
  write_file(folder / "special_tokens_map.json", R"({"unk_token": "<unk>", "eos_token": "</other>"})");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "<s></s>False") << "with added_tokens_decoder";
  config(R"({"bos_token": "<s>", "eos_token": "</s>",
             "chat_template": "{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}"})");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "<s></other>True");
  config(R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "d");
  write_file(folder / "chat_template.jinja", "own\n");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render({}), "own");
  std::filesystem::remove(folder / "chat_template.jinja");
  config(R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  EXPECT_THAT(message_of<ConfigError>([&] { ChatTemplate::load(folder.path()); }),
              HasSubstr("tokenizer_config.json: chat_template needs a text, or a list"));
  config(R"({"chat_template": "{% if %}"})");
  EXPECT_THAT(message_of<ConfigError>([&] { ChatTemplate::load(folder.path()); }),
              HasSubstr("tokenizer_config.json: chat_template:1: found the end of the tag"));
  config(R"({"chat_template": "a", "chat_template": "b"})");
  EXPECT_THAT(message_of<FileError>([&] { ChatTemplate::load(folder.path()); }),
              HasSubstr("tokenizer_config.json: JSON has key \"chat_template\" twice"));
  config("{");
  EXPECT_THAT(message_of<FileError>([&] { ChatTemplate::load(folder.path()); }), HasSubstr("not valid JSON"));
}

// As transformers 5.24 has it.
TEST(ChatTemplate, KeysOfAMessageThatAreNullAreMissing) {
  EXPECT_EQ(rendered("{% for m in messages %}"
                     "[{{ m.content }}|{{ 'tool_calls' in m }}|{{ m.content is none }}|{{ m.x }}]{% endfor %}",
                     R"([{"role": "user", "content": "hi"},
                         {"role": "assistant", "content": null,
                          "tool_calls": [{"function": {"name": "f", "arguments": {"x": null}}}]},
                         {"role": "assistant", "content": "x", "tool_calls": null, "x": {"y": null}}])"),
            "[hi|False|False|][|True|False|][x|False|False|{'y': None}]");
  EXPECT_EQ(rendered("{{ messages[0] | tojson }}", R"([{"role": "assistant", "thinking": null, "reasoning": "R",
                                                        "content": null, "reasoning_content": null}])"),
            R"({"thinking": "R", "role": "assistant", "reasoning": "R", "reasoning_content": "R"})");
  EXPECT_EQ(rendered("{{ messages | tojson }}", R"([{"role": null}])"), "[{}]");
}

// What the template of a folder writes without tools, with tools that are null, with none and with one.
void expect_with_tools(const std::filesystem::path& folder, const std::vector<std::string>& expected) {
  const std::optional<ChatTemplate> chat = ChatTemplate::load(folder);
  ASSERT_TRUE(chat);
  std::vector<std::string> found;
  for (const char* variables : {"{}", R"({"tools": null})", R"({"tools": []})", R"({"tools": [{}]})"})
    found.push_back(chat->render_json("[]", variables));
  EXPECT_EQ(found, expected);
}

// As transformers 5.24 has it.
TEST(ChatTemplate, ConversationsWithToolsHaveATemplateOfTheirOwn) {
  const TemporaryFolder folder(memory_folder()), copy(memory_folder());
  const auto config = [&](const std::string& text) { write_file(folder / "tokenizer_config.json", text); };
  config(R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "rag", "template": "R"},
                               {"name": "tool_use", "template": "T{{ tools|length }}"}]})");
  expect_with_tools(folder.path(), {"D", "D", "T0", "T1"});
  copy_chat_template(folder.path(), copy.path());
  expect_with_tools(copy.path(), {"D", "D", "T0", "T1"});
  config(R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "default", "template": "E"}]})");
  expect_with_tools(folder.path(), {"E", "E", "E", "E"});

  config(R"({"chat_template": [{"name": "default", "template": "D"}, {"name": "tool_use", "template": "C"}]})");
  write_file(folder / "chat_template.jinja", "own\n");
  expect_with_tools(folder.path(), {"own", "own", "own", "own"});
  std::filesystem::create_directory(folder / "additional_chat_templates");
  write_file(folder / "additional_chat_templates" / "tool_use.jinja", "U{{ tools|length }}\n");
  write_file(folder / "additional_chat_templates" / "rag.jinja", "R");
  expect_with_tools(folder.path(), {"own", "own", "U0", "U1"});
  copy_chat_template(folder.path(), copy.path());
  expect_with_tools(copy.path(), {"own", "own", "U0", "U1"});
}

TEST(ChatTemplate, ATemplateForToolsThatCannotBeReadTakesNothingFromOthers) {
  const TemporaryFolder folder(memory_folder());
  const auto config = [&](const std::string& text) {
    write_file(folder / "tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "D"},
        {"name": "tool_use", "template": )" + Json(text).dump() +
                                                     "}]}");
  };
  const auto with_tools = [&] {
    const ChatTemplate chat = *ChatTemplate::load(folder.path());
    EXPECT_EQ(chat.render({}), "D");
    return message_of<DataError>([&] { chat.render_json("[]", R"({"tools": []})"); });
  };
  config("\n{% include 'x' %}");
  EXPECT_THAT(with_tools(), HasSubstr("tokenizer_config.json: chat_template \"tool_use\":2: tag \"include\""));
  config(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(with_tools(), HasSubstr("at most 1048576 are accepted"));
  config("{{ raise_exception('no') }}");
  EXPECT_THAT(with_tools(), HasSubstr("chat_template \"tool_use\":1: the template refuses this: no"));

  std::filesystem::create_directory(folder / "additional_chat_templates");
  const std::filesystem::path file = folder / "additional_chat_templates" / "tool_use.jinja";
  write_file(file, "{% include 'x' %}");
  EXPECT_THAT(message_of<ConfigError>([&] { ChatTemplate::load(folder.path()); }),
              HasSubstr("chat_template.jinja too, for conversations without tools"));
  write_file(folder / "chat_template.jinja", "D");
  EXPECT_THAT(with_tools(), HasSubstr("tool_use.jinja:1: tag \"include\""));
  write_file(file, std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(message_of<FileError>([&] { ChatTemplate::load(folder.path()); }),
              HasSubstr("at most 1048576 are accepted"));
}

// As Jinja 3.1 in the sandbox of transformers 5.24 has it; there a method is written with its address.
TEST(ChatTemplate, AnAttributeOfADictIsItsMethodBeforeItsKey) {
  EXPECT_EQ(rendered("{% set d={'items':[1]} %}{{ d.items is defined }} {{ {}.items is defined }} {{ d['items'] }}"),
            "True True [1]");
  EXPECT_EQ(rendered("{% for n in ['get','items','keys','values','copy','fromkeys','pop','update','setdefault',"
                     "'popitem','clear'] %}{{ {}[n] is defined }} {% endfor %}"),
            "True True True True True True False False False False False ");
  EXPECT_EQ(rendered("{% set d={'pop':1,'update':2,'copy':3,'clear':4} %}[{{ d.pop }}|{{ d.pop is defined }}|"
                     "{{ d['pop'] }}|{{ d.copy is callable }}|{{ d.update is defined }}|{{ d.clear|default('x') }}]"),
            "[|False|1|True|False|x]");
  EXPECT_EQ(
      rendered("{% set d={'items':{'type':'a'}} %}{{ d.items.type }}|{{ d['items'].type }}|{{ d.items['type'] }}"),
      "|a|");
  EXPECT_EQ(rendered("{{ [{'items':1},{'items':2}]|map(attribute='items')|list }}"
                     "{{ [{'a':{'items':2}}]|map(attribute='a.items')|list }}"
                     "{{ [{'items':1},{},{'items':none}]|selectattr('items')|list|length }}"
                     "{{ [{'items':1},{},{'items':none}]|selectattr('items','defined')|list|length }}"
                     "{{ [{'pop':1},{}]|selectattr('pop','defined')|list|length }}"),
            "[1, 2][2]231");
  EXPECT_EQ(
      rendered("{% set f={'a':1}.get %}{{ f('a') }}{{ f('b', 2) }} {{ f is callable }} {{ f is string }} "
               "{{ f is iterable }} {{ f is mapping }}{% set i={'a':1}.items %}{% for k, v in i() %} {{ k }}{{ v }}"
               "{% endfor %} {{ {'a':1}['get']('a') }} {{ {'get':1}.get('get') }} {{ {'a':1}.keys()|list }}"),
      "12 True False False False a1 1 1 ['a']");
  EXPECT_EQ(rendered("{% set d={'a':1} %}{{ d.get == d.get }} {{ d.get == d.items }} {{ d.get == {'a':1}.get }} "
                     "{{ d.items == 1 }} {{ d.items in [1] }}"),
            "True False False False False");
  EXPECT_THAT(failure("{{ {'a': 1}.items }}"), HasSubstr("t:1: items is a method of a dict, which cannot be written"));
  EXPECT_THAT(failure("{{ [{}.get] }}"), HasSubstr("['get'] is the value of its key \"get\""));
  EXPECT_THAT(failure("{{ {}.items ~ 'a' }}"), HasSubstr("items is a method"));
  EXPECT_THAT(failure("{{ {}.items | tojson }}"), HasSubstr("a value of type method is no JSON"));
  EXPECT_THAT(failure("{% for k in {}.items %}{% endfor %}"), HasSubstr("a value of type method has no items"));
  EXPECT_THAT(failure("{{ {'pop': 1}.pop.x }}"), HasSubstr("pop is undefined, its x was asked for"));
  EXPECT_THAT(failure("{{ {'pop': 1}.pop('a') }}"), HasSubstr("a value of type dict has no method pop here"));
  EXPECT_THAT(failure("{{ {}.copy() }}"), HasSubstr("a value of type dict has no method copy here"));
  EXPECT_THAT(failure("{% set f = {}.fromkeys %}{{ f(['a']) }}"), HasSubstr("dict has no method fromkeys here"));
}

// transformers writes integers of any size; here they are refused rather than rounded.
TEST(ChatTemplate, IntegersBeyond64BitsAreRefused) {
  const std::string source = "{{ messages[0].x | tojson }}";
  const auto of = [](const std::string& number) { return R"([{"role": "a\"1", "x": [)" + number + "]}]"; };
  EXPECT_EQ(rendered(source, of("9223372036854775807, -9223372036854775808, -0")),
            "[9223372036854775807, -9223372036854775808, 0]");
  EXPECT_EQ(rendered(source, of("1e30, 123456789012345678901.0")), "[1e+30, 1.2345678901234568e+20]");
  EXPECT_EQ(rendered(source, of(R"("18446744073709551615 \\\" 18446744073709551615")")),
            R"(["18446744073709551615 \\\" 18446744073709551615"])");
  for (const char* number :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"}) {
    const std::string refused = "the integer " + std::string(number) + " is beyond 64 bits with a sign";
    EXPECT_EQ(message_of<DataError>([&] { rendered(source, of(number)); }), "messages: " + refused);
    EXPECT_EQ(message_of<DataError>([&] { rendered("", "[]", R"({"x": )" + std::string(number) + "}"); }),
              "variables: " + refused);
  }
  EXPECT_EQ(rendered("{{ '9223372036854775807' | int }} {{ 9223372036854775807 | int }}"),
            "9223372036854775807 9223372036854775807");
  EXPECT_THAT(failure("{{ '9223372036854775808' | int }}"), HasSubstr("int: a number is too large"));
}

TEST(ChatTemplate, RefusesWhatIsNotSupportedByNameAndLine) {
  EXPECT_THAT(refusal("a\n\n{{ x | frobnicate }}"), HasSubstr("t:3: filter \"frobnicate\" is not supported"));
  EXPECT_THAT(refusal("{{ x is frob }}"), HasSubstr("t:1: test \"frob\" is not supported"));
  EXPECT_THAT(refusal("\n{% include 'x' %}"), HasSubstr("t:2: tag \"include\" is not supported here"));
  EXPECT_THAT(refusal("{% raw %}{% endraw %}"), HasSubstr("tag \"raw\" is not supported"));
  EXPECT_THAT(refusal("{% break %}"), HasSubstr("tag \"break\" is not supported here"));
  EXPECT_THAT(refusal("{% for x in y recursive %}{% endfor %}"), HasSubstr("a recursive loop is not supported"));
  EXPECT_THAT(refusal("{% for x in y %}{% macro m() %}{% endmacro %}{% endfor %}"), HasSubstr("a macro in a loop"));
}

TEST(ChatTemplate, RefusesWhatIsNoTemplate) {
  EXPECT_THAT(refusal("{{ x"), HasSubstr("t:1: a tag has no \"}}\""));
  EXPECT_THAT(refusal("{# x"), HasSubstr("a comment has no end"));
  EXPECT_THAT(refusal("{{ 'x }}"), HasSubstr("a text has no end"));
  EXPECT_THAT(refusal("{% if x %}\n\n"), HasSubstr("t:2: found the end of the template, needs \"endif\""));
  EXPECT_THAT(refusal("{% endif %}"), HasSubstr("tag \"endif\""));
  EXPECT_THAT(refusal("{{ a b }}"), HasSubstr("found \"b\""));
  EXPECT_THAT(refusal("{{ (a }}"), HasSubstr("found \"}\""));
  EXPECT_THAT(refusal("{{ a[] }}"), HasSubstr("[] needs an index"));
  EXPECT_THAT(refusal("{{ 99999999999999999999 }}"), HasSubstr("is too large"));
  EXPECT_THAT(refusal("{{ ? }}"), HasSubstr("found \"?\""));
}

TEST(ChatTemplate, SaysWhatFailsAndWhere) {
  EXPECT_THAT(failure("\n{{ raise_exception('no\\nway') }}"), HasSubstr("t:2: the template refuses this: no way"));
  EXPECT_THAT(failure("{{ x.y }}"), HasSubstr("t:1: x is undefined, its y was asked for"));
  EXPECT_THAT(failure("{{ 1 + 'a' }}"), HasSubstr("+ is not supported between int and str"));
  EXPECT_THAT(failure("{{ frob() }}"), HasSubstr("frob is not defined"));
  EXPECT_THAT(failure("{{ [].append(1) }}"), HasSubstr("a value of type list has no method append here"));
  EXPECT_THAT(failure("{% set x.y = 1 %}"), HasSubstr("only a namespace"));
  EXPECT_THAT(failure("{{ 1 // 0 }}"), HasSubstr("a division by 0"));
  EXPECT_THAT(message_of<DataError>([] { rendered("", "{}"); }), HasSubstr("needs a list of messages, found object"));
  EXPECT_THAT(message_of<DataError>([] { rendered("", "[1]"); }), HasSubstr("needs objects in the list, found number"));
  EXPECT_THAT(message_of<DataError>([] { rendered("", "[", "{}"); }), HasSubstr("is not valid JSON"));
}

TEST(ChatTemplate, NamedArgumentsAreTakenOrRefused) {
  EXPECT_EQ(rendered("{{ 'abc' | replace(new='x', old='b') }}"), "axc");
  EXPECT_THAT(failure("{{ 'a' | replace('a', count=1) }}"), HasSubstr("replace: needs old and new"));
  EXPECT_THAT(failure("{{ 'a' | replace(old='a', count=1) }}"), HasSubstr("replace: needs old and new"));
  EXPECT_THAT(failure("{{ 'a'.startswith(prefix='a') }}"), HasSubstr("startswith: argument prefix is not supported"));
  EXPECT_THAT(failure("{{ ','.join(iterable=['a', 'b']) }}"), HasSubstr("join: argument iterable is not supported"));
}

// As Jinja 3.1 on Python has it.
TEST(ChatTemplate, TextsAreWrittenAndCutAsInPython) {
  EXPECT_EQ(rendered("{{ ['a\u00a0\u200b\ufeffé\u3000🙂\U000e0001\x7f \\\\'] }}"),
            "['a\\xa0\\u200b\\ufeffé\\u3000🙂\\U000e0001\\x7f \\\\']");
  EXPECT_EQ(rendered("{{ 'a\\rb\\r\\nc\u0085\u2028d\v\fe\\n\\n'.splitlines() | join('|') }}"), "a|b|c||d||e|");
  EXPECT_EQ(rendered("{{ ''.splitlines() }}{{ '\\n'.splitlines() }}"), "[]['']");
}

TEST(ChatTemplate, ArgumentsThatWouldBeDroppedAreRefused) {
  EXPECT_EQ(rendered("{{ dict(a=1) }}{{ namespace(a=2).a }}{{ '7' | int(0) }}{{ 'aba'.count('a') }}"), "{'a': 1}272");
  EXPECT_THAT(failure("{{ dict({'a': 1}) }}"), HasSubstr("dict: takes named arguments alone"));
  EXPECT_THAT(failure("{{ namespace({'a': 1}).a }}"), HasSubstr("namespace: takes named arguments alone"));
  EXPECT_THAT(failure("{{ 'ff' | int(0, 16) }}"), HasSubstr("int: takes at most 1 arguments, found 2"));
  EXPECT_THAT(failure("{{ 'ff' | int(base=16) }}"), HasSubstr("int: argument base is not supported"));
  EXPECT_THAT(failure("{{ 'aba'.count('a', 1) }}"), HasSubstr("count: takes at most 1 arguments, found 2"));
  for (const char* name : {"upper", "lower", "capitalize", "title", "string", "safe", "length", "count", "items",
                           "list", "first", "last", "abs", "reverse"})
    EXPECT_THAT(failure("{{ x | " + std::string(name) + "(1) }}"),
                HasSubstr(name + std::string(": takes at most 0 arguments, found 1")));
  for (const char* name : {"upper", "lower", "capitalize", "title", "isdigit", "isspace", "splitlines"})
    EXPECT_THAT(failure("{{ 'x'." + std::string(name) + "(1) }}"),
                HasSubstr(name + std::string(": takes at most 0 arguments, found 1")));
  EXPECT_THAT(failure("{{ 'x' | trim('x', 1) }}"), HasSubstr("trim: takes at most 1 arguments, found 2"));
  EXPECT_THAT(failure("{{ 'x' | float(1, 2) }}"), HasSubstr("float: takes at most 1 arguments, found 2"));
  EXPECT_THAT(failure("{{ 'x'.strip('x', 1) }}"), HasSubstr("strip: takes at most 1 arguments, found 2"));
  EXPECT_THAT(failure("{{ 'x'.strip(chars='x') }}"), HasSubstr("strip: argument chars is not supported"));
  EXPECT_THAT(failure("{{ 'x'.removeprefix() }}"), HasSubstr("removeprefix: needs 1 arguments"));
  EXPECT_THAT(failure("{{ {}.items(1) }}"), HasSubstr("items: takes at most 0 arguments, found 1"));
  EXPECT_THAT(failure("{{ 1 is odd(1) }}"), HasSubstr("odd: takes at most 0 arguments, found 1"));
  EXPECT_THAT(failure("{{ [1] | select('odd', x=1) }}"), HasSubstr("odd: argument x is not supported"));
  EXPECT_THAT(failure("{{ [1] | selectattr(attr='a') }}"), HasSubstr("needs the name of an attribute"));
  EXPECT_THAT(failure("{{ [{}] | map(default='a') }}"), HasSubstr("map: needs a filter or an attribute"));
  EXPECT_THAT(failure("{{ [{}] | map(attribute='a', x=1) }}"), HasSubstr("map: argument x is not supported"));
  EXPECT_EQ(rendered("{{ 'xax' | trim(chars='x') }}{{ 'xax'.strip('x') }}{{ 'a' | float(default=1.5) }}"), "aa1.5");
  EXPECT_EQ(rendered("{{ [1, 2] | select('in', seq=[2]) | list }}{{ 4 is divisibleby(num=2) }}"), "[2]True");
}

// As in Jinja, where the text that has been written so far is lost and the name stays unset.
TEST(ChatTemplate, ALoopEndsInTheMiddleOfASetBlock) {
  const auto loop = [](const std::string& tag) {
    return rendered("{% for i in range(4) %}{% set x %}{{ i }}{% if i == 2 %}{% " + tag +
                    " %}{% endif %}{% endset %}[{{ x }}]{% endfor %}");
  };
  EXPECT_EQ(loop("break"), "[0][1]");
  EXPECT_EQ(loop("continue"), "[0][1][3]");
}

TEST(ChatTemplate, IsLimited) {
  EXPECT_THAT(refusal(std::string((1 << 20) + 1, 'x')), HasSubstr("at most 1048576 are accepted"));
  EXPECT_THAT(refusal("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}"), HasSubstr("nested"));
  EXPECT_THAT(refusal("{{ " + std::string(257, 'a') + " }}"), HasSubstr("a name has more than 256 bytes"));
  EXPECT_THAT(refusal("{{ 1" + std::string(3000, '~') + " }}"), HasSubstr("found \"~\""));
  std::string sum = "1";
  for (int i = 0; i < 1000; ++i) sum += "+1";
  EXPECT_THAT(refusal("{{ " + sum + " }}"), HasSubstr("nested more than 200 deep"));
  EXPECT_THAT(failure("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), HasSubstr("nested more than 1000 levels"));
  EXPECT_THAT(failure("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
              HasSubstr("takes too much work"));
  const std::string doubled =
      "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}";
  EXPECT_THAT(failure(doubled), HasSubstr("takes too much work"));
  const std::string shared =
      "{% set n = namespace(l=[1]) %}{% for i in range(60) %}{% set n.l = [n.l, n.l] %}{% endfor %}";
  EXPECT_NO_THROW(rendered(shared));
  for (const char* use :
       {"{{ n.l }}", "{{ n.l | tojson }}", "{{ n.l == n.l }}", "{{ [n.l] | unique }}{{ n.l in [n.l] }}"})
    EXPECT_THAT(failure(shared + use), HasSubstr("takes too much work")) << use;
  for (const char* use :
       {"{{ n.l is lower }}", "{{ n.l is upper }}", "{{ 'a' | replace('a', n.l) }}", "{{ 'a' | replace(n.l, 'a') }}",
        "{{ n.l | indent }}", "{{ 1 | tojson(separators=[n.l, ':']) }}"})
    EXPECT_THAT(failure(shared + use), HasSubstr("takes too much work")) << use;
  EXPECT_THAT(failure("{% set n = namespace(l=[1]) %}{% for i in range(200) %}{% set n.l = [n.l] %}{% endfor %}"),
              HasSubstr("nested more than 100 levels"));
  EXPECT_THAT(
      failure("{% set n = namespace(d={}) %}{% for i in range(200) %}{% set n.d = {'a': n.d.get} %}{% endfor %}"),
      HasSubstr("nested more than 100 levels"));
  EXPECT_THAT(failure("{{ range(100001) }}"), HasSubstr("more than 100000 numbers"));
  EXPECT_THAT(failure("{{ 'x' * 99999999999 }}"), HasSubstr("repeated"));
  EXPECT_THAT(failure("{{ [1] | tojson(separators=('x' * 99, ':')) }}"), HasSubstr("more than 64 bytes"));
  const std::string text = "{% set x = 'a' * 8000000 %}{% for i in range(99999) %}";
  for (const char* use : {"{{ x | length == 1 }}", "{{ x | int }}", "{{ x | float }}", "{{ i[x] }}",
                          "{{ [1] | map(attribute=x) | length }}"})
    EXPECT_THAT(failure(text + use + "{% endfor %}"), HasSubstr("takes too much work")) << use;
  EXPECT_THAT(failure("{% set x = 'a' * 8000000 %}{{ x.split('a') | length }}"),
              HasSubstr("has more than 2097152 parts"));
  std::string macro = "{% macro m(a0";
  for (int i = 1; i < 10000; ++i) macro += ", a" + std::to_string(i);
  EXPECT_THAT(failure(macro + ") %}{% endmacro %}{% for i in range(99999) %}{{ m() }}{% endfor %}"),
              HasSubstr("takes too much work"));
  EXPECT_THAT(failure("{{ 'x' * 17000000 }}"), HasSubstr("writes more than 16777216 bytes"));
  EXPECT_EQ(rendered("{% set n = namespace() %}{% set n.me = n %}{% set n.l = [n] %}x"), "x") << "a cycle is freed";
}

}  // namespace
}  // namespace attune

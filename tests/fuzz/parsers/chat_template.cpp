// A chat template in Jinja, and after a NUL the conversation as JSON; without one there is a conversation of all kinds.

#include "attune/text/chat_template.h"
#include "tests/fuzz/parsers/fuzz_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace attune;
  const auto [source, conversation] = fuzz::split<2>(fuzz::text_of(data, size));
  constexpr std::string_view kMessages =
      R"([{"role": "system", "content": "S"}, {"role": "user", "content": "A\u00e9"},
          {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"x": [1, null]}}}]},
          {"role": "tool", "content": "1"}])";
  return fuzz::answer([&, &source = source, &conversation = conversation] {
    const ChatTemplate chat(source, "chat_template.jinja", {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    chat.render_json(conversation.empty() ? kMessages : conversation,
                     R"({"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "n": 1.5})");
  });
}

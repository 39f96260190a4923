// See attune/c.h.

#include <memory>
#include <optional>

#include "attune/base/json_fields.h"
#include "attune/base/parallel.h"
#include "attune/c/call.h"
#include "attune/hub/adapter_folder.h"
#include "attune/inference/option_fields.h"
#include "attune/inference/text_generator.h"
#include "attune/text/chat_template.h"

struct attune_generator {
  attune::TextGenerator generator;
};

struct attune_texts {
  struct Text {
    attune::GeneratedText generated;
    std::string finish_reason;
  };
  std::vector<Text> texts;
};

using namespace attune;
using namespace attune::c;

attune_status attune_generator_load(const char* folder, attune_generator** generator) {
  return attune_generator_load_with(folder, nullptr, generator);
}
attune_status attune_generator_load_with(const char* folder, const char* options, attune_generator** generator) {
  return guarded([&] {
    const auto [scheduling, adapters] = loading_of(options);
    auto& out = given(generator, "generator");
    out = new attune_generator{TextGenerator::load(&given(folder, "folder"), scheduling, adapters)};
  });
}
void attune_generator_free(attune_generator* generator) {
  delete generator;
}

attune_status attune_generate(const attune_generator* generator, const char* const* prompts, size_t count,
                              const char* options, attune_text_callback callback, void* user,
                              const attune_interrupt* interrupt, attune_texts** texts) {
  return guarded([&] {
    const TextGenerator& model = given(generator, "generator").generator;
    auto& out = given(texts, "texts");
    GenerateFields fields = generate_fields(model, nullptr, options_of(options));
    fields.options.interrupt = flag_of(interrupt);
    std::atomic<bool> ended = false;
    if (callback != nullptr) {
      fields.options.cancel = &ended;
      fields.options.on_text = [&](size_t index, std::string_view added) {
        if (callback(user, index, std::string(added).c_str()) != 0) ended = true;
      };
    }
    const ThreadScope threads(fields.decoding.threads);
    auto result = std::make_unique<attune_texts>();
    for (GeneratedText& text : model.generate(texts_of(prompts, count, "prompts"), fields.options)) {
      std::string reason = enum_name(text.finish_reason);
      result->texts.push_back({std::move(text), std::move(reason)});
    }
    out = result.release();
  });
}

size_t attune_texts_count(const attune_texts* texts) {
  return texts->texts.size();
}
const char* attune_text(const attune_texts* texts, size_t index) {
  const auto* text = element(texts->texts, index);
  return text == nullptr ? nullptr : text->generated.text.c_str();
}
const char* attune_text_finish_reason(const attune_texts* texts, size_t index) {
  const auto* text = element(texts->texts, index);
  return text == nullptr ? nullptr : text->finish_reason.c_str();
}
const int32_t* attune_text_tokens(const attune_texts* texts, size_t index, size_t* count) {
  const auto* text = element(texts->texts, index);
  return tokens_of(text == nullptr ? nullptr : &text->generated.tokens, count);
}
void attune_texts_free(attune_texts* texts) {
  delete texts;
}

attune_status attune_chat_prompt(const char* folder, const char* messages, attune_texts** prompt) {
  return guarded([&] {
    auto& out = given(prompt, "prompt");
    const std::optional<ChatTemplate> chat = open_chat_template(&given(folder, "folder"));
    if (!chat) fail<ConfigError>("{}: has no chat template", folder);
    auto result = std::make_unique<attune_texts>();
    result->texts.emplace_back().generated.text = chat->render_json(&given(messages, "messages"));
    out = result.release();
  });
}

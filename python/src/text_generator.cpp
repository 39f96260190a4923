// See attune/inference/text_generator.h and attune/text/chat_template.h.

#include "attune/inference/text_generator.h"

#include "attune/base/parallel.h"
#include "attune/hub/adapter_folder.h"
#include "attune/inference/option_fields.h"
#include "attune/text/chat_template.h"
#include "attune/text/tokenizer.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

/// The functions that a call reports to.
struct Listeners {
  std::optional<nb::callable> on_text, on_token;
};

std::vector<GeneratedText> generate(const TextGenerator& generator, const std::vector<std::string>& prompts,
                                    const nb::dict& options, Listeners listeners, const TextGenerator* draft,
                                    const std::shared_ptr<Interrupt>& interrupt) {
  GenerateFields fields = generate_fields(generator, draft, json_of(options));
  if (listeners.on_text)
    fields.options.on_text = [on_text = locked<size_t, std::string>(std::move(listeners.on_text))](
                                 size_t index, std::string_view added) { on_text(index, std::string(added)); };
  fields.options.on_token = locked<size_t, int32_t>(std::move(listeners.on_token));
  return interruptible(interrupt, [&](const std::atomic<bool>* flag) {
    const ThreadScope threads(fields.decoding.threads);
    fields.options.interrupt = flag;
    return generator.generate(prompts, fields.options);
  });
}

void bind_result(nb::module_& m) {
  nb::class_<GeneratedText>(m, "GeneratedText", "What follows a prompt.")
      .def_ro("text", &GeneratedText::text, "Up to a stop string.")
      .def_ro("tokens", &GeneratedText::tokens, "Ids that were generated, eos and a stop string's included.")
      .def_prop_ro(
          "finish_reason", [](const GeneratedText& self) { return enum_name(self.finish_reason); },
          "\"eos\", \"stop\", \"length\", \"context\", \"interrupted\" or \"deadline\".")
      .def("__str__", [](const GeneratedText& self) { return self.text; })
      .def("__repr__", [](const GeneratedText& self) {
        return "GeneratedText(text=" + shown(self.text) + ", finish_reason='" + enum_name(self.finish_reason) + "')";
      });
}

void bind_chat_template(nb::module_& m) {
  nb::class_<ChatTemplate>(m, "ChatTemplate")
      .def_static("load", &open_chat_template, nb::arg("folder"))
      .def(
          "render",
          [](const ChatTemplate& self, const nb::list& messages, const nb::dict& variables, bool prompt) {
            return self.render_json(show(json_of(messages)), show(json_of(variables)),
                                    {.add_generation_prompt = prompt});
          },
          nb::arg("messages"), nb::arg("variables"), nb::arg("add_generation_prompt"));
}

}  // namespace

void bind_text_generator(nb::module_& m) {
  bind_result(m);
  bind_chat_template(m);
  nb::class_<TextGenerator>(m, "TextGenerator")
      .def(
          "__init__",
          [](TextGenerator* self, const std::filesystem::path& folder, const std::string& precision,
             int64_t cache_bytes, const std::string& device, const AdapterFolders& adapters) {
            const Device on = Device::named(device);
            const SchedulerOptions options = {
                .cache_bytes = cache_bytes, .precision = precision_of(precision, on), .device = on};
            new (self) TextGenerator(unlocked([&] { return TextGenerator::load(folder, options, adapters); }));
          },
          nb::arg("folder"), nb::arg("precision") = "float32", nb::arg("cache_bytes") = 0, nb::arg("device") = "cpu",
          nb::arg("adapters") = AdapterFolders())
      .def_prop_ro("adapters", &TextGenerator::adapters)
      .def_prop_ro("text_unit", [](const TextGenerator& self) { return enum_name(self.text_unit()); })
      .def(
          "generate",
          [](const TextGenerator& self, const std::vector<std::string>& prompts, const nb::dict& options,
             std::optional<nb::callable> on_text, std::optional<nb::callable> on_token, const TextGenerator* draft,
             const std::shared_ptr<Interrupt>& interrupt) {
            return generate(self, prompts, options, {std::move(on_text), std::move(on_token)}, draft, interrupt);
          },
          nb::arg("prompts"), nb::arg("options"), nb::arg("on_text") = nb::none(), nb::arg("on_token") = nb::none(),
          nb::arg("draft") = nb::none(), nb::arg("interrupt") = nb::none())
      .def(
          "encode_prompt",
          [](const TextGenerator& self, const std::string& prompt, bool has_special_tokens) {
            return self.encode_prompt(prompt, has_special_tokens);
          },
          nb::arg("prompt"), nb::arg("has_special_tokens") = false)
      .def(
          "piece", [](const TextGenerator& self, int32_t id) { return self.tokenizer().piece(id); }, nb::arg("id"))
      .def(
          "sampling", [](const TextGenerator& self) { return object_of(write_fields(self.sampling())); },
          nb::sig("def sampling(self) -> dict[str, typing.Any]"))
      .def_static("option_names", [] { return option_names(GenerateFields{}); });
}

}  // namespace attune::python

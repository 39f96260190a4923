// See attune/inference/translator.h.

#include "attune/inference/translator.h"

#include "attune/base/fail.h"
#include "attune/base/parallel.h"
#include "attune/inference/option_fields.h"
#include "attune/text/tokenizer.h"
#include "attune/text/word_alignment.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

using Prefixes = std::vector<std::string>;

std::vector<Translation> translate(const Translator& translator, const std::vector<std::string>& sentences,
                                   const nb::dict& options, const Prefixes& prefixes,
                                   std::optional<nb::callable> progress, const std::shared_ptr<Interrupt>& interrupt) {
  TranslateFields fields = translate_fields(translator, json_of(options));
  fields.options.progress = locked<int64_t, int64_t>(std::move(progress));
  for (const std::string& prefix : prefixes) fields.options.constraints.push_back({.prefix = prefix, .required = {}});
  return interruptible(interrupt, [&](const std::atomic<bool>* flag) {
    const ThreadScope threads(fields.decoding.threads);
    fields.options.interrupt = flag;
    return translator.translate(sentences, fields.options);
  });
}

// `read` and `write` are called with Python's lock, from the thread that makes this call.
void translate_stream(const Translator& translator, const nb::callable& read, const nb::callable& write,
                      const nb::dict& options, const std::shared_ptr<Interrupt>& interrupt) {
  TranslateFields fields = translate_fields(translator, json_of(options));
  TranslationStream stream;
  stream.read = [&](bool wait) {
    const CallbackScope scope;
    std::vector<std::string> texts;
    if (!nb::try_cast(read(wait), texts)) throw nb::type_error("translate_iterable: every sentence needs to be a str");
    std::vector<StreamedSentence> sentences;
    for (std::string& text : texts) sentences.push_back({.text = std::move(text)});
    return sentences;
  };
  stream.write = [&](std::vector<Translation> translations) {
    const CallbackScope scope;
    write(std::move(translations));
  };
  interruptible(interrupt, [&](const std::atomic<bool>* flag) {
    const ThreadScope threads(fields.decoding.threads);
    fields.options.interrupt = flag;
    translator.translate(stream, fields.options);
    return true;
  });
}

std::vector<std::string> pieces(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) tokens.push_back(tokenizer.piece(id));
  return tokens;
}

void bind_results(nb::module_& m) {
  nb::class_<ScoredText>(m, "ScoredText", "One translation of a sentence.")
      .def_ro("text", &ScoredText::text)
      .def_ro("score", &ScoredText::score, "The log probability, divided by a function of the length.")
      .def_ro("log_probability", &ScoredText::log_probability, "Of all tokens and the end.")
      .def_ro("tokens", &ScoredText::tokens, "Ids of the target vocabulary, without bos and eos.")
      .def_ro("token_log_probabilities", &ScoredText::token_log_probabilities,
              "One for each token, and one for the end where the translation is finished.")
      .def_ro("finished", &ScoredText::finished,
              "False: the length limit or the timeout cut it off, or no token could follow.")
      .def_ro("alignment", &ScoredText::alignment,
              "Pairs (source word, target word), from 0; filled on request (alignments=True).")
      .def("__repr__", [](const ScoredText& self) {
        return "ScoredText(text=" + shown(self.text) + ", score=" + std::to_string(self.score) + ")";
      });
  nb::class_<Translation>(m, "Translation", "The translations of one sentence, best first; at least one.")
      .def_ro("n_best", &Translation::n_best)
      .def_prop_ro("text", &Translation::text, "The best translation.")
      .def_prop_ro("score", [](const Translation& self) { return self.n_best.front().score; })
      .def_prop_ro("tokens", [](const Translation& self) { return self.n_best.front().tokens; })
      .def_prop_ro("finished", [](const Translation& self) { return self.n_best.front().finished; })
      .def_prop_ro("alignment", [](const Translation& self) { return self.n_best.front().alignment; })
      .def("__str__", &Translation::text)
      .def("__repr__", [](const Translation& self) { return "Translation(text=" + shown(self.text()) + ")"; });
}

}  // namespace

void bind_translator(nb::module_& m) {
  bind_results(m);
  nb::class_<Translator>(m, "Translator")
      .def(
          "__init__",
          [](Translator* self, const std::vector<std::filesystem::path>& folders, const std::string& precision,
             int64_t cache_bytes, const std::string& device, const AdapterFolders& adapters) {
            const Device on = Device::named(device);
            const SchedulerOptions options = {
                .cache_bytes = cache_bytes, .precision = precision_of(precision, on), .device = on};
            if (folders.size() != 1 && !adapters.empty())
              fail<ConfigError>("adapters are for one model, and there are {}", folders.size());
            new (self) Translator(unlocked([&] {
              return folders.size() == 1 ? Translator::load(folders.front(), options, adapters)
                                         : Translator::load_ensemble(folders, options);
            }));
          },
          nb::arg("folders"), nb::arg("precision") = "float32", nb::arg("cache_bytes") = 0, nb::arg("device") = "cpu",
          nb::arg("adapters") = AdapterFolders())
      .def_prop_ro("adapters", &Translator::adapters)
      .def("translate", &translate, nb::arg("sentences"), nb::arg("options"), nb::arg("prefixes") = Prefixes(),
           nb::arg("progress") = nb::none(), nb::arg("interrupt") = nb::none())
      .def("translate_stream", &translate_stream, nb::arg("read"), nb::arg("write"), nb::arg("options"),
           nb::arg("interrupt") = nb::none())
      .def(
          "target_tokens",
          [](const Translator& self, const ScoredText& text) { return pieces(self.target_tokenizer(), text.tokens); },
          nb::arg("text"))
      .def(
          "generation", [](const Translator& self) { return object_of(write_fields(self.generation())); },
          nb::sig("def generation(self) -> dict[str, typing.Any]"))
      .def_static("option_names", [] { return option_names(TranslateFields{}); });
}

}  // namespace attune::python

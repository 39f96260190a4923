// See attune/inference/classifier.h.

#include "attune/inference/classifier.h"

#include "attune/base/parallel.h"
#include "attune/inference/option_fields.h"
#include "attune/models/encoder_classifier.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

template <class Text>
std::vector<Classification> classify(const Classifier& classifier, const std::vector<Text>& texts,
                                     const nb::dict& options, std::optional<nb::callable> progress,
                                     const std::shared_ptr<Interrupt>& interrupt) {
  ClassifyFields fields = classify_fields(json_of(options));
  fields.options.progress = locked<int64_t, int64_t>(std::move(progress));
  return interruptible(interrupt, [&](const std::atomic<bool>* flag) {
    const ThreadScope threads(fields.threads);
    fields.options.interrupt = flag;
    return classifier.classify(std::span<const Text>(texts), fields.options);
  });
}

}  // namespace

void bind_classifier(nb::module_& m) {
  nb::class_<LabelProbability>(m, "LabelProbability")
      .def_ro("label", &LabelProbability::label, "Index of the label.")
      .def_ro("probability", &LabelProbability::probability);
  nb::class_<Classification>(m, "Classification")
      .def_ro("labels", &Classification::labels, "All of them, likeliest first.")
      .def_ro("cut_tokens", &Classification::cut_tokens, "Tokens that were cut from the end of a text too long.");
  nb::class_<TextPair>(m, "TextPair")
      .def(
          "__init__",
          [](TextPair* self, std::string first, std::string second) {
            new (self) TextPair{.first = std::move(first), .second = std::move(second)};
          },
          nb::arg("first"), nb::arg("second"));
  nb::class_<Classifier>(m, "Classifier")
      .def(
          "__init__",
          [](Classifier* self, const std::filesystem::path& folder, const std::string& precision,
             const std::string& device) {
            const Device on = Device::named(device);
            new (self) Classifier(unlocked([&] { return Classifier::load(folder, precision_of(precision, on), on); }));
          },
          nb::arg("folder"), nb::arg("precision") = "float32", nb::arg("device") = "cpu")
      .def("classify", &classify<std::string>, nb::arg("texts"), nb::arg("options"), nb::arg("progress") = nb::none(),
           nb::arg("interrupt") = nb::none())
      .def("classify_pairs", &classify<TextPair>, nb::arg("pairs"), nb::arg("options"),
           nb::arg("progress") = nb::none(), nb::arg("interrupt") = nb::none())
      .def_prop_ro("labels", &Classifier::labels)
      .def_prop_ro("is_regression", [](const Classifier& self) { return self.model().config().is_regression(); })
      .def_prop_ro("max_tokens", &Classifier::max_tokens)
      .def_static("option_names", [] { return option_names(ClassifyFields{}); });
}

}  // namespace attune::python

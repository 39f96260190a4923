// See attune/inference/embedder.h.

#include "attune/inference/embedder.h"

#include <algorithm>

#include "attune/base/interrupt.h"
#include "attune/base/parallel.h"
#include "attune/inference/option_fields.h"
#include "attune/tensor/tensor.h"
#include "call.h"
#include "precision.h"

namespace attune::python {
namespace {

// The vectors, and how many texts were cut.
std::pair<Tensor, int64_t> embed(const Embedder& embedder, const std::vector<std::string>& texts,
                                 const nb::dict& options, std::optional<nb::callable> progress,
                                 const std::shared_ptr<Interrupt>& interrupt) {
  EmbedFields fields = embed_fields(json_of(options));
  return interruptible(interrupt, [&](const std::atomic<bool>* flag) {
    const ThreadScope threads(fields.threads);
    // After each batch: what a call of embed() can be ended at.
    fields.options.progress = [flag, report = locked<int64_t, int64_t>(std::move(progress))](int64_t done,
                                                                                             int64_t total) {
      check_interrupt(flag);
      if (report) report(done, total);
    };
    const std::vector<Encoding> encoded = embedder.encode(texts, fields.options);
    const std::vector<std::vector<float>> vectors = embedder.embed_encoded(encoded, fields.options);
    const int64_t dimension = embedder.dimension(fields.options);
    const Tensor tensor = Tensor::empty({static_cast<int64_t>(vectors.size()), dimension});
    for (size_t i = 0; i < vectors.size(); ++i)
      tensor.rows(static_cast<int64_t>(i), static_cast<int64_t>(i) + 1).assign(std::span<const float>(vectors[i]));
    return std::pair(tensor, int64_t{std::ranges::count_if(encoded, [](const Encoding& e) { return e.cut > 0; })});
  });
}

}  // namespace

void bind_embedder(nb::module_& m) {
  nb::class_<Embedder>(m, "Embedder")
      .def(
          "__init__",
          [](Embedder* self, const std::filesystem::path& folder, const std::string& precision,
             const std::string& device) {
            const Device on = Device::named(device);
            new (self) Embedder(unlocked([&] { return Embedder::load(folder, precision_of(precision, on), on); }));
          },
          nb::arg("folder"), nb::arg("precision") = "float32", nb::arg("device") = "cpu")
      .def("embed", &embed, nb::arg("texts"), nb::arg("options"), nb::arg("progress") = nb::none(),
           nb::arg("interrupt") = nb::none())
      .def(
          "dimension",
          [](const Embedder& self, const nb::dict& options) {
            return self.dimension(embed_fields(json_of(options)).options);
          },
          nb::arg("options"))
      .def("max_tokens", &Embedder::max_tokens)
      .def_static("option_names", [] { return option_names(EmbedFields{}); });
}

}  // namespace attune::python

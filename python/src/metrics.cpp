// The scores of evaluation: see attune/metrics.

#include <variant>

#include "attune/metrics/bleu.h"
#include "attune/metrics/chrf.h"
#include "attune/metrics/classification_scores.h"
#include "attune/metrics/regression_scores.h"
#include "attune/metrics/ter.h"
#include "call.h"

namespace attune::python {
namespace {

/// One reference of each sentence, or several lists of them.
using Texts = std::vector<std::string>;
using TextsOrLists = std::variant<Texts, std::vector<Texts>>;

template <class Metric>
void bind_metric(nb::module_& m, const char* name, Metric metric, const char* documentation) {
  m.def(
      name,
      [metric](const Texts& hypotheses, const TextsOrLists& references) {
        return unlocked([&] {
          return std::visit([&](const auto& lists) { return metric(hypotheses, References(lists)); }, references);
        });
      },
      nb::arg("hypotheses"), nb::arg("references"), documentation);
}

}  // namespace

void bind_metrics(nb::module_& m) {
  bind_metric(
      m, "bleu", [](const Texts& texts, const References& references) { return corpus_bleu(texts, references).score; },
      "BLEU of a corpus in percent, as sacreBLEU computes it. `references` has one for each hypothesis, or is a list "
      "of such lists, as with chrf() and ter(). Throws DataError where their numbers differ. Papineni et al. 2002, "
      "section 2; Post 2018.\n\n>>> round(bleu([\"a b c d e\"], [\"a b c d e\"]), 2)\n100.0");
  bind_metric(m, "chrf", &corpus_chrf,
              "chrF2 of a corpus in percent, as sacreBLEU computes it. Popovic 2015, section 2.");
  bind_metric(
      m, "ter", [](const Texts& texts, const References& references) { return corpus_ter(texts, references).score; },
      "The translation edit rate of a corpus in percent, as sacreBLEU computes it: less is better. Snover et al. 2006, "
      "section 3.\n\n>>> round(ter([\"a b c\"], [[\"a b d\"], [\"a b c d\"]]), 2)\n28.57");
  m.def(
      "classification_scores",
      [](const std::vector<int32_t>& predictions, const std::vector<int32_t>& references, int64_t labels) {
        const ClassificationScores scores = classification_scores(predictions, references, labels);
        return std::pair(scores.accuracy, scores.macro_f1);
      },
      nb::arg("predictions"), nb::arg("references"), nb::arg("labels"),
      "Accuracy and macro F1 of indices of labels, as scikit-learn computes them.");
  m.def(
      "regression_scores",
      [](const std::vector<double>& predictions, const std::vector<double>& references) {
        const RegressionScores scores = regression_scores(predictions, references);
        return std::tuple(scores.mean_squared_error, scores.pearson, scores.spearman);
      },
      nb::arg("predictions"), nb::arg("references"),
      "Mean squared error, Pearson's and Spearman's correlation, as SciPy computes them.");
}

}  // namespace attune::python

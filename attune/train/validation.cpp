#include "attune/train/validation.h"

#include "attune/base/fail.h"

namespace attune {

double value_of(const ValidationReport& report, ValidationMetric metric) {
  if (metric == ValidationMetric::loss) return report.loss.loss;
  if (metric == ValidationMetric::accuracy && !report.regression) return report.loss.accuracy;
  if (metric == ValidationMetric::bleu && report.bleu) return *report.bleu;
  if (metric == ValidationMetric::macro_f1 && report.classification) return report.classification->macro_f1;
  if (metric == ValidationMetric::pearson && report.regression) return report.regression->pearson;
  if (metric == ValidationMetric::spearman && report.regression) return report.regression->spearman;
  fail<ConfigError>("train.best_metric = \"{}\": the model is not measured by it", enum_name(metric));
}

bool more_is_better(ValidationMetric metric) {
  return metric != ValidationMetric::loss;
}

std::vector<std::pair<std::string, double>> validation_scalars(const ValidationReport& report) {
  if (report.regression)
    return {{"valid_loss", report.loss.loss},
            {"valid_pearson", report.regression->pearson},
            {"valid_spearman", report.regression->spearman}};
  std::vector<std::pair<std::string, double>> scalars = {{"valid_loss", report.loss.loss},
                                                         {"valid_nll", report.loss.nll},
                                                         {"valid_perplexity", report.loss.perplexity},
                                                         {"valid_accuracy", report.loss.accuracy}};
  if (report.bleu) scalars.emplace_back("valid_bleu", *report.bleu);
  if (report.classification) scalars.emplace_back("valid_macro_f1", report.classification->macro_f1);
  if (report.bits_per_character) scalars.emplace_back("valid_bits_per_character", *report.bits_per_character);
  if (report.bits_per_byte) scalars.emplace_back("valid_bits_per_byte", *report.bits_per_byte);
  return scalars;
}

}  // namespace attune

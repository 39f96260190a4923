#pragma once

#include <string>
#include <vector>

#include "attune/inference/translator.h"
#include "attune/metrics/alignment_error_rate.h"

namespace attune::cli {

struct AlignmentEvaluation {
  AlignmentErrorRate rate;
  std::string origin;                      // what the alignments were read from
  std::vector<std::vector<double>> heads;  // the error rate of each head, [layers][heads]
};

/// Aligns each line of the source with its reference by teacher forcing, and compares with `file`, which has the right
/// alignment of each line in Pharaoh's format. The options say the languages. Throws DataError that names file and
/// line.
AlignmentEvaluation evaluate_alignments(const Translator& translator, const TranslateOptions& options,
                                        const std::vector<std::string>& sources,
                                        const std::vector<std::string>& references, const std::string& file);

}  // namespace attune::cli

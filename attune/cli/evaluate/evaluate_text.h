#pragma once
// `attune evaluate` for classifiers and language models.

#include <cstdint>
#include <string>

#include "attune/cli/text_output.h"
#include "attune/hub/open_folder.h"

namespace attune::cli {

struct TextEvaluation {
  std::string data;
  std::string format = "automatic", label_field = "label", text_field = "text";  // of labelled texts
  std::string second_text_field = {};                                            // of pairs
  std::string confusion;                                                         // file for the picture; "": none
  int64_t stride = 0;                                                            // of a language model; 0: its context
  bool json = false;
  ProductPrecision precision = ProductPrecision::float32;
  Device device = {};
};

/// Throws ConfigError for a model of an architecture that evaluate does not measure.
void check_can_be_evaluated(const OpenedFolder& model);

/// Evaluates a classifier or a language model and writes a table, or JSON. Throws as check_can_be_evaluated() does.
void evaluate_text(const TextEvaluation& evaluation, const OpenedFolder& model, TextOutput& out);

}  // namespace attune::cli

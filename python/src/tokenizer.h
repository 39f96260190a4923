#pragma once

#include <memory>

#include "attune/text/tokenizer.h"

namespace attune::python {

/// Tokenizers are shared and never change.
struct PythonTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  bool target = false;  // texts are in the language that a translator writes
};

}  // namespace attune::python

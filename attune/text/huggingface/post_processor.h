#pragma once
// The tokens around a text: [CLS] text [SEP], or [CLS] first [SEP] second [SEP].

#include <cstdint>
#include <vector>

#include "attune/text/huggingface/fields.h"
#include "attune/text/tokenizer.h"

namespace attune::huggingface {

/// A place of a template: a text, or tokens.
struct TemplatePiece {
  enum class Kind { first, second, tokens };
  Kind kind = Kind::first;
  int32_t type_id = 0;
  std::vector<int32_t> tokens = {};
};
using Template = std::vector<TemplatePiece>;

struct PostProcessor {
  Template single = {{TemplatePiece::Kind::first, 0}};
  Template pair = {{TemplatePiece::Kind::first, 0}, {TemplatePiece::Kind::second, 1}};

  /// The largest id of the templates' tokens; -1 without any.
  int32_t highest_id() const;
  /// The tokens of a text between those of the template, and no longer than options.truncation says. Throws DataError
  /// when a text cannot be cut so far.
  Encoding apply(std::vector<int32_t> ids, const EncodeOptions& options) const;
  /// The same for two texts.
  Encoding apply(std::vector<int32_t> first, std::vector<int32_t> second, const EncodeOptions& options) const;
};

/// The post-processor that a value describes; for null, one that adds no tokens. Throws FileError.
PostProcessor read_post_processor(const nlohmann::json* value, const std::string& where);

/// The tokens around texts: `before` first `after`, and `before` first `between` second `after`.
struct Surroundings {
  std::vector<int32_t> before, between, after;
  int32_t second_type = 0;  // of the second text and what follows it
};
PostProcessor surrounded_by(const Surroundings& tokens);

/// The tokens of a translation model around a text: `language` text `end` with `language_first`, else text `end`
/// `language`.
PostProcessor around_language(int32_t language, int32_t end, bool language_first);

}  // namespace attune::huggingface

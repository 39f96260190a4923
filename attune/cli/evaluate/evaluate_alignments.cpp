#include "attune/cli/evaluate/evaluate_alignments.h"

#include <fmt/format.h>

#include "attune/base/fail.h"
#include "attune/inference/forced_alignment.h"
#include "attune/text/text_file.h"

namespace attune::cli {

AlignmentEvaluation evaluate_alignments(const Translator& translator, const TranslateOptions& options,
                                        const std::vector<std::string>& sources,
                                        const std::vector<std::string>& references, const std::string& file) {
  const std::vector<std::string> lines = read_lines(file);
  if (lines.size() != sources.size())
    fail<DataError>("{} has {} lines but the source has {}", file, lines.size(), sources.size());
  const auto place = [&](size_t i) { return fmt::format("{}:{}", file, i + 1); };
  std::vector<WordAlignment> sure;
  for (size_t i = 0; i < lines.size(); ++i)
    sure.push_back(parse_pharaoh(lines[i], count_words(sources[i]), count_words(references[i]), place(i)));

  const ForcedAligner aligner(translator, options);
  std::vector<WordAlignment> found;
  std::vector<std::vector<std::vector<WordAlignment>>> of_heads;  // [layers][heads][sentences]
  for (size_t i = 0; i < sources.size(); ++i) {
    ForcedAlignment alignment = aligner.align(sources[i], references[i], place(i));
    found.push_back(std::move(alignment.words));
    of_heads.resize(alignment.heads.size());
    for (size_t l = 0; l < of_heads.size(); ++l) {
      of_heads[l].resize(alignment.heads[l].size());
      for (size_t h = 0; h < of_heads[l].size(); ++h) of_heads[l][h].push_back(std::move(alignment.heads[l][h]));
    }
  }
  AlignmentEvaluation result{.rate = alignment_error_rate(found, sure), .origin = aligner.origin(), .heads = {}};
  for (const auto& layer : of_heads) {
    std::vector<double>& rates = result.heads.emplace_back();
    for (const auto& head : layer) rates.push_back(alignment_error_rate(head, sure).score);
  }
  return result;
}

}  // namespace attune::cli

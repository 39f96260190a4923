#pragma once
// The confusion matrix of a classifier as a picture.

#include <cstdint>
#include <string>
#include <vector>

namespace attune::cli {

/// Throws ConfigError unless the name ends in .html or .svg, and for more labels than a picture shows (128).
void check_confusion_file(const std::string& file, size_t labels);

/// A picture of `matrix`, which has a row for each right label and a column for each prediction: the share of a row's
/// texts that a prediction has. An .html file has the numbers of texts below the picture, and refers to nothing outside
/// it. Labels are escaped. Throws as above.
std::string draw_confusion(const std::string& file, const std::vector<std::string>& labels,
                           const std::vector<std::vector<int64_t>>& matrix);

}  // namespace attune::cli

#pragma once
// Matrices as pictures.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attune/cli/draw/svg.h"

namespace attune::cli {

/// The most rows and columns of a matrix, so that pictures are legible and files small.
inline constexpr int64_t kMostCells = 128;

struct HeatMap {
  std::string title = {};
  int64_t rows = 0, columns = 0;
  std::vector<double> values = {};                               // [rows, columns]; values that are not finite are grey
  std::vector<std::string> row_labels = {}, column_labels = {};  // one for each; none: numbers from 0
};

struct HeatMaps {
  std::string title;
  std::string note = {};              // one line below the title
  std::string row_name, column_name;  // of the axes
  ColourScale scale = ColourScale::sequential;
  double low = 0, high = 1;                                   // values at the ends of the scale
  std::string value_name = {};                                // what the scale shows
  std::vector<std::pair<double, std::string>> meanings = {};  // instead of the scale: what single values mean
  std::string grey_meaning = {};                              // what values that are not finite mean
  std::vector<HeatMap> maps = {};                             // side by side, then below one another
};

/// The picture as SVG. Throws ConfigError when a matrix has no cell or is larger than kMostCells.
std::string draw_heat_maps(const HeatMaps& picture);

}  // namespace attune::cli

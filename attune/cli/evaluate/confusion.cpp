#include "attune/cli/evaluate/confusion.h"

#include <fmt/format.h>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "attune/base/fail.h"
#include "attune/cli/draw/heat_maps.h"
#include "attune/cli/text_output.h"

namespace attune::cli {
namespace {

constexpr const char* kTitle = "Right labels and predictions";
constexpr const char* kStyle =
    "body{font:15px/1.5 system-ui,sans-serif;color:#1f2430;margin:2em}table{border-collapse:collapse}"
    "td,th{border:1px solid #e3e6eb;padding:2px 10px;text-align:right}svg{max-width:100%;height:auto}";

std::string extension_of(const std::string& file) {
  return std::filesystem::path(file).extension().string();
}

std::string picture_of(const std::vector<std::string>& labels, const std::vector<std::vector<int64_t>>& matrix) {
  HeatMap map{.rows = std::ssize(labels), .columns = std::ssize(labels)};
  for (const std::string& label : labels) map.row_labels.push_back(one_line(label));
  map.column_labels = map.row_labels;
  for (const std::vector<int64_t>& row : matrix) {
    const auto texts = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    for (const int64_t count : row) map.values.push_back(texts > 0 ? static_cast<double>(count) / texts : NAN);
  }
  return draw_heat_maps({.title = kTitle,
                         .row_name = "right label",
                         .column_name = "prediction",
                         .value_name = "share of the label's texts",
                         .grey_meaning = "no text has this label",
                         .maps = {std::move(map)}});
}

std::string table_of(const std::vector<std::string>& labels, const std::vector<std::vector<int64_t>>& matrix) {
  std::string table = "<table>\n<tr><th></th>";
  for (const std::string& label : labels) table += fmt::format("<th>{}</th>", escape_xml(one_line(label)));
  table += "</tr>\n";
  for (size_t r = 0; r < labels.size(); ++r) {
    table += fmt::format("<tr><th>{}</th>", escape_xml(one_line(labels[r])));
    for (const int64_t count : matrix[r]) table += fmt::format("<td>{}</td>", count);
    table += "</tr>\n";
  }
  return table + "</table>\n";
}

}  // namespace

void check_confusion_file(const std::string& file, size_t labels) {
  const std::string extension = extension_of(file);
  if (extension != ".html" && extension != ".svg") fail<ConfigError>("--confusion {}: needs .html or .svg", file);
  if (labels > static_cast<size_t>(kMostCells))
    fail<ConfigError>("--confusion {}: the model has {} labels, a picture shows at most {}; --json has the numbers",
                      file, labels, kMostCells);
}

std::string draw_confusion(const std::string& file, const std::vector<std::string>& labels,
                           const std::vector<std::vector<int64_t>>& matrix) {
  check_confusion_file(file, labels.size());
  const std::string picture = picture_of(labels, matrix);
  if (extension_of(file) == ".svg") return picture;
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style></head>\n"
      "<body>\n{2}\n<p>Texts of each right label (row) by prediction (column)</p>\n{3}</body>\n</html>\n",
      kTitle, kStyle, picture, table_of(labels, matrix));
}

}  // namespace attune::cli

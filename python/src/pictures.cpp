// The pictures of `attune inspect --attention` and `attune draw`.

#include "attune/cli/draw/attention_view.h"
#include "attune/cli/draw/heat_map.h"
#include "attune/cli/draw/line_chart.h"
#include "call.h"

namespace attune::python {
namespace {

/// A curve: its name, and its points.
using Curve = std::pair<std::string, std::vector<std::pair<double, double>>>;

std::string draw_curves(const std::string& title, const std::string& x_name,
                        const std::vector<std::pair<std::string, std::vector<Curve>>>& charts) {
  std::vector<cli::LineChart> pictures;
  for (const auto& [y_name, curves] : charts) {
    cli::LineChart& picture = pictures.emplace_back();
    if (pictures.size() == 1) picture.title = title;
    picture.x.name = x_name;
    picture.y.name = y_name;
    for (const auto& [name, points] : curves) {
      cli::Series& series = picture.series.emplace_back();
      series.name = name;
      for (const auto& [x, y] : points) series.points.push_back({x, y});
    }
  }
  return cli::draw_line_charts(pictures);
}

}  // namespace

void bind_pictures(nb::module_& m) {
  m.def(
      "attention_page",
      [](const std::string& folder, const std::string& text, const std::string& target) {
        return unlocked([&] {
          return cli::attention_page(cli::view_attention({.folder = folder, .text = text, .target = target}));
        });
      },
      nb::arg("folder"), nb::arg("text"), nb::arg("target"));
  m.def("draw_curves", &draw_curves, nb::arg("title"), nb::arg("x_name"), nb::arg("charts"));
}

}  // namespace attune::python

#include "attune/serve/service_metrics.h"

#include <fmt/format.h>

namespace attune::serve {
namespace {

std::string braces(const std::string& labels) {
  return labels.empty() ? "" : "{" + labels + "}";
}

}  // namespace

std::string metric_label(std::string_view name, std::string_view value) {
  std::string label = std::string(name) + "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') label += '\\';
    label += c == '\n' ? ' ' : c;
  }
  return label + "\"";
}

void ServiceMetrics::count(const std::string& name, const std::string& labels, double amount) {
  const std::lock_guard lock(mutex_);
  counters_[name][labels] += amount;
}

void ServiceMetrics::observe_seconds(const std::string& name, const std::string& labels, double seconds) {
  const std::lock_guard lock(mutex_);
  Histogram& histogram = histograms_[name][labels];
  for (size_t i = 0; i < kBounds.size(); ++i) histogram.below[i] += seconds <= kBounds[i] ? 1 : 0;
  ++histogram.count;
  histogram.sum += seconds;
}

std::string ServiceMetrics::text(const std::vector<Gauge>& gauges) const {
  std::string text;
  std::string last;
  for (const Gauge& gauge : gauges) {
    if (gauge.name != last) text += fmt::format("# TYPE {} gauge\n", gauge.name);
    last = gauge.name;
    text += fmt::format("{}{} {}\n", gauge.name, braces(gauge.labels), gauge.value);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, series] : counters_) {
    text += fmt::format("# TYPE {} counter\n", name);
    for (const auto& [labels, value] : series) text += fmt::format("{}{} {}\n", name, braces(labels), value);
  }
  for (const auto& [name, series] : histograms_) {
    text += fmt::format("# TYPE {} histogram\n", name);
    for (const auto& [labels, histogram] : series) {
      const std::string before = labels.empty() ? "" : labels + ",";
      for (size_t i = 0; i < kBounds.size(); ++i)
        text += fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, before, kBounds[i], histogram.below[i]);
      text += fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n", name, before, histogram.count);
      text += fmt::format("{}_sum{} {}\n", name, braces(labels), histogram.sum);
      text += fmt::format("{}_count{} {}\n", name, braces(labels), histogram.count);
    }
  }
  return text;
}

}  // namespace attune::serve

#pragma once
// Numbers about the service in the text format of Prometheus.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace attune::serve {

/// Labels of a series as Prometheus writes them: model="en-de",status="200". A value is escaped.
std::string metric_label(std::string_view name, std::string_view value);

/// Counters and histograms, thread-safe. Series appear when they are first counted, also by 0.
class ServiceMetrics {
 public:
  /// Adds to the counter `name` with these labels.
  void count(const std::string& name, const std::string& labels, double amount = 1);
  /// Adds to the histogram of times `name`.
  void observe_seconds(const std::string& name, const std::string& labels, double seconds);
  /// Makes a histogram with nothing in it, unless it is there.
  void begin_seconds(const std::string& name, const std::string& labels);
  /// A value of this moment, for text().
  struct Gauge {
    std::string name, labels;
    double value = 0;
  };
  /// Everything, each name with its help and type. Gauges of the same name have to come one after the other.
  std::string text(const std::vector<Gauge>& gauges) const;

 private:
  static constexpr std::array<double, 15> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,      2.5,   5,    10,    30,   100};
  struct Histogram {
    std::array<int64_t, kBounds.size()> below = {};
    int64_t count = 0;
    double sum = 0;
  };
  mutable std::mutex mutex_;
  std::map<std::string, std::map<std::string, double>> counters_;
  std::map<std::string, std::map<std::string, Histogram>> histograms_;
};

}  // namespace attune::serve

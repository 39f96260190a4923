#include "attune/serve/service_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace attune::serve {
namespace {

struct Help {
  std::string_view name, text;
};
constexpr Help kHelp[] = {
    {"attune_cache_bytes", "Memory of the caches of decoding, free slots included."},
    {"attune_cache_reserved_bytes", "Memory of the caches that the running requests may need at most."},
    {"attune_cache_slots_in_use", "Tokens that the caches hold, those of sources included."},
    {"attune_open_requests", "Requests of clients that are not answered."},
    {"attune_queue_requests", "Sentences or texts that wait."},
    {"attune_ready", "Whether requests are taken: 1 or 0."},
    {"attune_request_seconds", "Time of a request from its arrival to the end of its answer."},
    {"attune_requests_cancelled_total", "Requests whose clients went away."},
    {"attune_requests_refused_total", "Requests that got 429 or 503."},
    {"attune_requests_total", "Requests that were answered, by path and status."},
    {"attune_running_requests", "Sentences or texts that are at work."},
    {"attune_time_per_token_seconds", "Mean time of a request's tokens after the first."},
    {"attune_time_to_first_token_seconds", "Time from the arrival of a request to its first token."},
    {"attune_tokens_in_total", "Tokens that were read."},
    {"attune_tokens_out_total", "Tokens that were written."},
    {"process_resident_memory_bytes", "Memory of the process, pages of mapped models included."},
};

// The lines in front of the series of a name.
std::string head_of(const std::string& name, const char* type) {
  std::string head;
  if (const auto help = std::ranges::find(kHelp, name, &Help::name); help != std::end(kHelp))
    head = fmt::format("# HELP {} {}\n", name, help->text);
  return head + fmt::format("# TYPE {} {}\n", name, type);
}

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

void ServiceMetrics::begin_seconds(const std::string& name, const std::string& labels) {
  const std::lock_guard lock(mutex_);
  histograms_[name][labels];
}

std::string ServiceMetrics::text(const std::vector<Gauge>& gauges) const {
  std::string text;
  std::string last;
  for (const Gauge& gauge : gauges) {
    if (gauge.name != last) text += head_of(gauge.name, "gauge");
    last = gauge.name;
    text += fmt::format("{}{} {}\n", gauge.name, braces(gauge.labels), gauge.value);
  }
  const std::lock_guard lock(mutex_);
  for (const auto& [name, series] : counters_) {
    text += head_of(name, "counter");
    for (const auto& [labels, value] : series) text += fmt::format("{}{} {}\n", name, braces(labels), value);
  }
  for (const auto& [name, series] : histograms_) {
    text += head_of(name, "histogram");
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

#pragma once
// What metrics.jsonl keeps of the updates between two entries.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attune/train/update.h"

namespace attune {

/// Sums since the last entry of the log.
struct LogWindow {
  double loss = 0;  // label-smoothed, over `labels`
  double nll = 0;
  double guided_loss = 0, r_drop_loss = 0;  // see UpdateResult
  int64_t labels = 0;                       // predictions
  int64_t tokens = 0;                       // that the model worked on
  double gradient_norm = 0;                 // over `steps`, before clipping
  double expert_imbalance = 0;              // over `steps`, see UpdateResult
  int64_t steps = 0;
  double seconds = 0;
  int64_t bytes_sent = 0;  // by one of several ranks; see UpdateResult
  double communication_seconds = 0;
  double exposed_seconds = 0;

  /// Adds an update that took so long.
  void add(const UpdateResult& update, double update_seconds);
};

/// What an entry of the log has.
struct LogForm {
  bool probabilities = true;   // nll and perplexity, which a regression does not have
  bool several_ranks = false;  // what communication cost in a step, on this rank
};

/// The entry of the window, with its means and rates: "loss", "nll", "perplexity", "learning_rate" and so on.
std::vector<std::pair<std::string, double>> log_scalars(const LogWindow& window, double learning_rate,
                                                        const LogForm& form);

template <class FieldVisitor>
void visit_fields(LogWindow& w, FieldVisitor& v) {
  v("loss", w.loss);
  v("nll", w.nll);
  v("guided_loss", w.guided_loss);
  v("r_drop_loss", w.r_drop_loss);
  v("labels", w.labels);
  v("tokens", w.tokens);
  v("gradient_norm", w.gradient_norm);
  v("expert_imbalance", w.expert_imbalance);
  v("steps", w.steps);
  v("seconds", w.seconds);
  v("bytes_sent", w.bytes_sent);
  v("communication_seconds", w.communication_seconds);
  v("exposed_seconds", w.exposed_seconds);
}

}  // namespace attune

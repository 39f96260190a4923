#include "attune/train/log_window.h"

#include <algorithm>
#include <cmath>

namespace attune {

void LogWindow::add(const UpdateResult& update, double update_seconds) {
  loss += update.loss;
  nll += update.nll;
  guided_loss += update.guided_loss;
  r_drop_loss += update.r_drop_loss;
  labels += update.labels;
  tokens += update.tokens;
  gradient_norm += update.gradient_norm;
  expert_imbalance += update.expert_imbalance;
  steps += 1;
  seconds += update_seconds;
  bytes_sent += update.bytes_sent;
  communication_seconds += update.communication_seconds;
  exposed_seconds += update.exposed_seconds;
}

std::vector<std::pair<std::string, double>> log_scalars(const LogWindow& window, double learning_rate,
                                                        const LogForm& form) {
  const auto labels = static_cast<double>(window.labels);
  const auto steps = static_cast<double>(window.steps);
  std::vector<std::pair<std::string, double>> scalars = {{"loss", window.loss / labels}};
  if (form.probabilities)
    scalars.insert(scalars.end(), {{"nll", window.nll / labels}, {"perplexity", std::exp(window.nll / labels)}});
  if (window.guided_loss > 0) scalars.emplace_back("guided_loss", window.guided_loss / labels);
  if (window.r_drop_loss > 0) scalars.emplace_back("r_drop_loss", window.r_drop_loss / labels);
  scalars.insert(scalars.end(), {{"learning_rate", learning_rate},
                                 {"gradient_norm", window.gradient_norm / steps},
                                 {"tokens_per_second", static_cast<double>(window.tokens) / window.seconds}});
  if (window.expert_imbalance > 0) scalars.emplace_back("expert_imbalance", window.expert_imbalance / steps);
  if (form.several_ranks) {
    const double hidden = window.communication_seconds - window.exposed_seconds;
    scalars.insert(scalars.end(), {{"step_seconds", window.seconds / steps},
                                   {"bytes_sent", static_cast<double>(window.bytes_sent) / steps},
                                   {"communication_seconds", window.communication_seconds / steps},
                                   {"communication_hidden", std::max(0.0, hidden / window.communication_seconds)}});
  }
  return scalars;
}

}  // namespace attune

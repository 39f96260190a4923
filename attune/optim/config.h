#pragma once
// The configuration of the optimizer and of the learning rate.

#include <cstdint>

#include "attune/base/fields.h"

namespace [[gnu::visibility("default")]] attune {

enum class OptimizerKind { adam, adamw };
enum class ScheduleKind { noam, inverse_sqrt, cosine, linear, constant };

template <>
struct EnumNames<OptimizerKind> {
  static constexpr std::pair<OptimizerKind, const char*> values[] = {{OptimizerKind::adam, "adam"},
                                                                     {OptimizerKind::adamw, "adamw"}};
};
template <>
struct EnumNames<ScheduleKind> {
  static constexpr std::pair<ScheduleKind, const char*> values[] = {{ScheduleKind::noam, "noam"},
                                                                    {ScheduleKind::inverse_sqrt, "inverse_sqrt"},
                                                                    {ScheduleKind::cosine, "cosine"},
                                                                    {ScheduleKind::linear, "linear"},
                                                                    {ScheduleKind::constant, "constant"}};
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::adam;  // adamw: decoupled weight decay, Loshchilov & Hutter 2019
  double beta_1 = 0.9;                       // Vaswani et al. 2017, section 5.3
  double beta_2 = 0.98;
  double epsilon = 1e-9;
  double weight_decay = 0;  // of matrices; vectors (biases and norms) do not decay
  double clip_norm = 0;     // global norm of the gradient; 0: off
  bool operator==(const OptimizerConfig&) const = default;
};

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::noam;  // Vaswani et al. 2017, equation 3
  double learning_rate = 0;                // the peak; for noam a factor; 0: the default, see peak()
  int64_t warmup_steps = 4000;             // steps of a linear rise from 0
  double final_learning_rate = 0;          // cosine and linear: at the last step
  bool operator==(const ScheduleConfig&) const = default;

  /// learning_rate, or its default where it is 0: the factor 1 for noam, 1e-3 for all others.
  double peak() const {
    if (learning_rate > 0) return learning_rate;
    return kind == ScheduleKind::noam ? 1.0 : 1e-3;
  }

  /// Whether the rate depends on the number of steps of the run: it reaches final_learning_rate at the last one.
  bool ends() const { return kind == ScheduleKind::cosine || kind == ScheduleKind::linear; }

  /// The least warmup_steps: 1 for noam and inverse_sqrt, whose decay depends on it, else 0.
  int64_t least_warmup() const { return kind == ScheduleKind::noam || kind == ScheduleKind::inverse_sqrt ? 1 : 0; }
};

template <class FieldVisitor>
void visit_fields(OptimizerConfig& c, FieldVisitor& v) {
  v("kind", c.kind);
  v("beta_1", c.beta_1);
  v("beta_2", c.beta_2);
  v("epsilon", c.epsilon);
  v("weight_decay", c.weight_decay);
  v("clip_norm", c.clip_norm);
}

template <class FieldVisitor>
void visit_fields(ScheduleConfig& c, FieldVisitor& v) {
  v("kind", c.kind);
  v("learning_rate", c.learning_rate);
  v("warmup_steps", c.warmup_steps);
  v("final_learning_rate", c.final_learning_rate);
}

}  // namespace attune

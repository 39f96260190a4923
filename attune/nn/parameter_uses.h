#pragma once

#include <set>

#include "attune/nn/module.h"

namespace attune {

/// What reads the parameters of a module: several of its parts may share a parameter and read it in different ways.
class ParameterUses final : public Visitor {
 public:
  explicit ParameterUses(Module& module) { module.visit(*this); }
  /// Whether nothing but products and lookups reads it.
  bool is_matrix(const Tensor& parameter) const { return !by_element_.contains(parameter.address()); }
  /// Whether products read it, or products and lookups, and nothing else.
  bool is_product_matrix(const Tensor& parameter) const {
    return is_matrix(parameter) && multiplied_.contains(parameter.address());
  }

 protected:
  void on_parameter(const std::string&, Parameter& p) override {
    if (p.use == ParameterUse::product) multiplied_.insert(p.tensor.address());
    if (p.use != ParameterUse::product && p.use != ParameterUse::lookup) by_element_.insert(p.tensor.address());
  }

 private:
  std::set<const void*> multiplied_, by_element_;
};

}  // namespace attune

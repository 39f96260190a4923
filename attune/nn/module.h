#pragma once
// A part of a model. It lists its own parts by name, once; checkpoints, the optimizer and dropout use that list.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attune/nn/parameter.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

class Module;

/// Visits the parts of a module and builds their paths: "encoder.layers.0.self_attention.w_q.weight".
class Visitor {
 public:
  virtual ~Visitor() = default;
  void operator()(const std::string& name, Parameter& parameter);
  void operator()(const std::string& name, Module& part);

 protected:
  virtual void on_parameter(const std::string& /*path*/, Parameter& /*parameter*/) {}
  /// Called before the parts of `part`; not for the module that the visit began with.
  virtual void on_module(const std::string& /*path*/, Module& /*part*/) {}

 private:
  std::string path_;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // others hold references to its parts
  Module& operator=(const Module&) = delete;

  /// Calls v(name, part) for each parameter and each part, always in the same order.
  virtual void visit(Visitor& v) = 0;
};

struct NamedParameter {
  std::string name;
  Tensor* tensor;  // lives in the module
};

/// The shape of the tensor, or of the panels or the quantised matrix in its place.
Shape shape_of(const Parameter& parameter);
/// The address of the values: the same for parameters that share them.
const void* address_of(const Parameter& parameter);

/// Every parameter that has a tensor, once; a shared parameter appears under its first name.
std::vector<NamedParameter> named_parameters(Module& module);
/// The named_parameters() that are trained.
std::vector<NamedParameter> trained_parameters(Module& module);

/// The number of elements of all parameters, panels included; shared parameters count once.
int64_t parameter_count(Module& module);

/// Numbers all Dropout modules from 0, in the order of visit(). The code that builds a model calls it once.
void number_dropouts(Module& module);

/// If `on`, each layer keeps only its inputs, and the backward pass computes the activations again: less memory at the
/// cost of a second forward pass, with the same results; see checkpoint(). Off by default. Parameters must not change
/// until the backward pass has ended.
void set_activation_checkpointing(Module& module, bool on);

/// Makes every trained parameter a leaf whose gradient is kept; a shared parameter has one gradient. One that is a leaf
/// already stays as it is, with its gradient. Throws ShapeError naming a trained parameter that is bfloat16: see
/// round_matrices().
void require_gradients(Module& module);
void clear_gradients(Module& module);

/// Replaces the tensor of every parameter by make(parameter), called once for all that share memory; if it returns an
/// undefined tensor, they keep theirs. Drops panels.
void replace_parameters(Module& module, const std::function<Tensor(const NamedParameter&)>& make);

/// Moves every parameter to a device. Drops gradients, and panels of what has a tensor.
void move_parameters(Module& module, const Device& device);

/// Converts every parameter to another floating type; float64 is for gradient checks. Drops panels.
void convert_parameters(Module& module, DType dtype);

/// Fills matrices from `seed`, Xavier-uniform (Glorot and Bengio 2010, equation 16: within +-sqrt(6 / (in + out))).
/// Vectors keep their values: weights of norms 1, biases 0.
void initialize_parameters(Module& module, uint64_t seed);

/// Fills `parameter` with normal random numbers of mean 0 and the given standard deviation; each parameter of a seed
/// has its own `stream`.
void initialize_normal(const Tensor& parameter, double deviation, uint64_t seed, uint64_t stream);

}  // namespace attune

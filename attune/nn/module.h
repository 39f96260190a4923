#pragma once
// A part of a model that names each of its parts once. That list serves checkpoints, the optimizer and dropout.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attune/nn/parameter.h"
#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

class Module;
class Dropout;
class CheckpointedLayer;

/// Walks the parts of a module and keeps the path: "encoder.layers.0.self_attention.w_q.weight".
class Visitor {
 public:
  virtual ~Visitor() = default;
  void operator()(const std::string& name, Parameter& parameter);
  void operator()(const std::string& name, Module& part);

 protected:
  virtual void on_parameter(const std::string& /*path*/, Parameter& /*parameter*/) {}
  virtual void on_dropout(const std::string& /*path*/, Dropout& /*dropout*/) {}
  virtual void on_checkpointed_layer(const std::string& /*path*/, CheckpointedLayer& /*layer*/) {}

 private:
  std::string path_;
};

class Module {
 public:
  Module() = default;
  virtual ~Module() = default;
  Module(const Module&) = delete;  // parts are held by reference and by name
  Module& operator=(const Module&) = delete;

  /// Calls v(name, part) for each parameter and each part, always in the same order.
  virtual void visit(Visitor& v) = 0;
};

struct NamedParameter {
  std::string name;
  Tensor* tensor;  // lives in the module
};

/// Every parameter that has a tensor, once; one that is shared appears under its first name.
std::vector<NamedParameter> named_parameters(Module& module);
/// Those of them that are trained.
std::vector<NamedParameter> trained_parameters(Module& module);

/// Numbers, shared parameters counted once.
int64_t parameter_count(Module& module);

/// Gives each Dropout its place, in the order of visit(): from 0. Whoever builds a model calls it once.
void number_dropouts(Module& module);

/// Whether each layer keeps only its inputs for the backward pass and computes its activations again there: less memory
/// for a second forward pass, the same numbers: see checkpoint(). Off until set. Parameters have to stay as they are
/// until the backward pass has ended.
void set_activation_checkpointing(Module& module, bool on);

/// Makes every parameter that is trained a leaf whose gradient is kept; a shared one has one gradient.
void require_gradients(Module& module);
void clear_gradients(Module& module);

/// Puts make(parameter) in the place of every parameter's tensor, one for all that share memory; an undefined tensor
/// leaves them as they are. Panels are dropped.
void replace_parameters(Module& module, const std::function<Tensor(const NamedParameter&)>& make);

/// Moves every parameter to a device; gradients and panels are dropped.
void move_parameters(Module& module, const Device& device);

/// Turns every parameter into another floating type; float64 is for gradient checks. Panels are dropped.
void convert_parameters(Module& module, DType dtype);

/// Xavier-uniform matrices (Glorot and Bengio 2010, equation 16: within +-sqrt(6 / (in + out))), from `seed`; vectors
/// stay as they were built: weights of norms 1, biases 0.
void initialize_parameters(Module& module, uint64_t seed);

/// Fills `parameter` with numbers of mean 0 and the given standard deviation; `stream` tells parameters of one seed
/// apart.
void initialize_normal(const Tensor& parameter, double deviation, uint64_t seed, uint64_t stream);

}  // namespace attune

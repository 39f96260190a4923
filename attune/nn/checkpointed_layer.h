#pragma once

#include "attune/autograd/checkpoint.h"
#include "attune/nn/module.h"

namespace [[gnu::visibility("default")]] attune {

/// A layer that can compute its activations again in the backward pass, see set_activation_checkpointing(). It must
/// live until the backward pass has ended.
class CheckpointedLayer : public Module {
 public:
  void set_checkpointing(bool on) { checkpointing_ = on; }

 protected:
  bool checkpointing() const { return checkpointing_; }

 private:
  bool checkpointing_ = false;
};

}  // namespace attune

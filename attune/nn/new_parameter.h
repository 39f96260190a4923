#pragma once

#include "attune/tensor/tensor.h"

namespace [[gnu::visibility("default")]] attune {

/// While one lives, modules that this thread builds have parameters without values, whose memory is never touched: for
/// models whose parameters are all loaded, by load_parameters() or map_parameters().
class NoInitialization {
 public:
  NoInitialization();
  ~NoInitialization();
  NoInitialization(const NoInitialization&) = delete;
  NoInitialization& operator=(const NoInitialization&) = delete;

 private:
  bool previous_;
};

/// Whether parameters have values from the start: no NoInitialization lives.
bool initializes_parameters();

/// A matrix, table or bias of zeros; of no particular values under NoInitialization.
Tensor new_parameter(const Shape& shape);

}  // namespace attune

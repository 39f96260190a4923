#include "attune/kernels/scale.h"

// Simple loops that serve every device whose memory can be read with pointers.

namespace attune {
namespace {

void multiply(const Tensor& x, double factor) {
  dispatch_floating("scale", x.dtype(), [&]<class T>(T) {
    for (T& value : x.values<T>()) value *= static_cast<T>(factor);
  });
}

}  // namespace

void scale(Cpu, const Tensor& x, double factor) {
  multiply(x, factor);
}
void scale(Plain, const Tensor& x, double factor) {
  multiply(x, factor);
}

}  // namespace attune

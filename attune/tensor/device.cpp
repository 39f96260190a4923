#include "attune/tensor/device.h"

namespace attune {

std::string Device::text() const {
  switch (kind_) {
    case Kind::cpu:
      return "cpu";
    case Kind::plain:
      break;
  }
  return "plain";
}

}  // namespace attune

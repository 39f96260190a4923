#include "attune/tensor/device.h"

#include "attune/base/fail.h"

namespace attune {

Device Device::parse(std::string_view text) {
  if (text == "cpu") return Cpu{};
  if (text == "plain") return Plain{};
  fail<ConfigError>("device \"{}\": needs one of cpu, plain", text);
}

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

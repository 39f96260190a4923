#include "attune/tensor/device.h"

#include <charconv>

#include "attune/base/fail.h"
#include "attune/tensor/cuda_device.h"

namespace attune {

Device Device::named(std::string_view name) {
  const Device device = of_name(name);
  if (device.kind() == Kind::cuda) check_usable(Cuda{device.index()});
  return device;
}

Device Device::of_name(std::string_view name) {
  if (name == "cpu") return Cpu{};
  const std::string_view cuda = "cuda";
  Cuda device;
  bool known = name.starts_with(cuda);
  if (known && name.size() > cuda.size()) {
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + cuda.size() + 1, end, device.index);
    known = name[cuda.size()] == ':' && error == std::errc() && rest == end && device.index >= 0;
  }
  if (!known) fail<ConfigError>("device = {}: needs cpu, cuda, or cuda:N with the number of a GPU", name);
  return device;
}

std::string Device::text() const {
  switch (kind_) {
    case Kind::cpu:
      return "cpu";
    case Kind::plain:
      return "plain";
    case Kind::cuda:
      break;
  }
  return "cuda:" + std::to_string(index_);
}

}  // namespace attune

#include "attune/train/rank_device.h"

#include "attune/base/fail.h"
#include "attune/dist/launch.h"
#include "attune/tensor/cuda_device.h"
#include "attune/tensor/device_error.h"

namespace attune {

Device device_of_rank(const std::string& name, Communicator& communicator) {
  const bool divided = name == "cuda" && communicator.size() > 1;
  const int number = divided ? local_rank(communicator) : 0;
  try {
    if (!divided) return Device::named(name);
    const Cuda gpu{number % count_cuda_devices()};
    check_usable(gpu);
    return gpu;
  } catch (const DeviceError& error) {
    fail<DeviceError>("train.device = {}: {}", name, error.what());
  }
}

}  // namespace attune

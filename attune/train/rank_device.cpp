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
    return Device::named(divided ? Device(Cuda{number % count_cuda_devices()}).text() : name);
  } catch (const DeviceError& error) {
    fail<DeviceError>("train.device = {}: {}", name, error.what());
  }
}

}  // namespace attune

#pragma once

#include <string>

#include "attune/dist/communicator.h"
#include "attune/tensor/device.h"

namespace attune {

/// The device on which this rank trains where train.device is `name`. "cuda" is the first GPU where there is one rank;
/// of several, each takes the GPU with the number local_rank() (dist/launch.h), modulo the number of GPUs that it sees.
/// Other names mean the same on every rank. All ranks call it. Throws ConfigError for another name;
/// DeviceError if the device cannot be used; CommunicationError.
Device device_of_rank(const std::string& name, Communicator& communicator);

}  // namespace attune

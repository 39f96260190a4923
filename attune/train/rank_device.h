#pragma once

#include <string>

#include "attune/dist/communicator.h"
#include "attune/tensor/device.h"

namespace attune {

/// The device on which this rank trains where train.device is `name`. "cuda": the first GPU of a run with one rank; of
/// several ranks, each takes the GPU of its number among the ranks of its machine (dist/launch.h), modulo the GPUs that
/// it sees. Other names mean the same on every rank. All ranks call it. Throws ConfigError for another name;
/// DeviceError if the device cannot be used; CommunicationError.
Device device_of_rank(const std::string& name, Communicator& communicator);

}  // namespace attune

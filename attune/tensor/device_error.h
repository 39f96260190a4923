#pragma once

#include "attune/base/error.h"

namespace [[gnu::visibility("default")]] attune {

/// A device cannot be used or has failed: names the device, and the kernel where there is one.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The memory of a device is not enough: says what was asked for and what is free.
class DeviceOutOfMemory : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace attune

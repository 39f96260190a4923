#pragma once
// A library that is loaded while the program runs, so that the program starts where it is not. For *_gpu.cpp.

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "attune/base/fail.h"
#include "attune/tensor/device_error.h"

namespace attune::cuda {

/// Stays loaded when this object is gone.
class LoadedLibrary {
 public:
  /// Looks where the system does, and then in the folders. Throws DeviceError, which says what failed in each place: a
  /// library may be there and need another one that is not.
  LoadedLibrary(std::string name, std::initializer_list<const char*> folders) : name_(std::move(name)) {
    std::string errors = load(name_);
    for (const char* folder : folders)
      if (handle_ == nullptr) errors += "; " + load(fmt::format("{}/{}", folder, name_));
    if (handle_ == nullptr)
      fail<DeviceError>("{}: cannot be loaded: {}; LD_LIBRARY_PATH can name its folder", name_, errors);
  }

  /// Sets `function` to the library's function of this name. Throws DeviceError.
  template <class F>
  void find(F& function, const char* function_name) const {
    function = reinterpret_cast<F>(dlsym(handle_, function_name));
    if (function == nullptr) fail<DeviceError>("{}: has no function {}", name_, function_name);
  }

 private:
  // Tries to load the library at `path`. Returns the error, or "" if it was loaded.
  std::string load(const std::string& path) {
    handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    return handle_ == nullptr ? dlerror() : "";
  }

  std::string name_;
  void* handle_ = nullptr;
};

}  // namespace attune::cuda

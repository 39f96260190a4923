#include "attune/base/version.h"

namespace attune {

std::string_view version() {
  return ATTUNE_VERSION;  // set by CMakeLists.txt
}

}  // namespace attune

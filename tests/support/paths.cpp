#include "tests/support/paths.h"

namespace attune {

std::filesystem::path source_dir() {
  return ATTUNE_SOURCE_DIR;
}

std::string attune_binary() {
  return ATTUNE_BINARY;
}

}  // namespace attune

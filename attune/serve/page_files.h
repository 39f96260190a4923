#pragma once
// The page in the browser: files of attune/serve/page, which are a part of the binary.

#include <span>
#include <string_view>

namespace attune::serve {

struct PageFile {
  const char* path;  // where it is served
  const char* type;  // its media type; all of them are UTF-8
  std::string_view (*content)();
};

std::span<const PageFile> page_files();

}  // namespace attune::serve

# attune_embed(TARGET NAMESPACE FILE...): text files become functions of the target that return their content:
# page.css is std::string_view NAMESPACE::page_css(). A file that changes is read again by the next build.
function(attune_embed target namespace)
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file OUTPUT_VARIABLE path)
    cmake_path(GET path FILENAME name)
    string(MAKE_C_IDENTIFIER ${name} function)
    file(READ ${path} content)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/embedded/${target}/${name}.cpp)
    file(CONFIGURE OUTPUT ${source} @ONLY CONTENT [=[
#include <string_view>

namespace @namespace@ {

std::string_view @function@();
std::string_view @function@() {
  return R"attune_embed(@content@)attune_embed";
}

}  // namespace @namespace@
]=])
    target_sources(${target} PRIVATE ${source})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  endforeach()
endfunction()

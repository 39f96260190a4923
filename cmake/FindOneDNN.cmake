# oneDNN as the target OneDNN::OneDNN. Debian's own package file also asks for OpenCL's headers, which nothing here
# needs.
find_path(ONEDNN_INCLUDE_DIR dnnl.hpp)
find_library(ONEDNN_LIBRARY dnnl)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OneDNN REQUIRED_VARS ONEDNN_LIBRARY ONEDNN_INCLUDE_DIR)
if(OneDNN_FOUND AND NOT TARGET OneDNN::OneDNN)
  add_library(OneDNN::OneDNN UNKNOWN IMPORTED)
  set_target_properties(OneDNN::OneDNN PROPERTIES IMPORTED_LOCATION ${ONEDNN_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${ONEDNN_INCLUDE_DIR})
endif()
mark_as_advanced(ONEDNN_INCLUDE_DIR ONEDNN_LIBRARY)

# SPDX-License-Identifier: Apache-2.0
# Finds Google Highway (headers and libhwy): Debian's libhwy-dev, or any prefix in CMAKE_PREFIX_PATH. Target: Highway::Highway.
find_path(Highway_INCLUDE_DIR hwy/highway.h)
find_library(Highway_LIBRARY NAMES hwy)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Highway
  REASON_FAILURE_MESSAGE "install libhwy-dev, or set CMAKE_PREFIX_PATH to a carried copy"
  REQUIRED_VARS Highway_INCLUDE_DIR Highway_LIBRARY)
if(Highway_FOUND AND NOT TARGET Highway::Highway)
  add_library(Highway::Highway UNKNOWN IMPORTED)
  set_target_properties(Highway::Highway PROPERTIES
    IMPORTED_LOCATION "${Highway_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${Highway_INCLUDE_DIR}")
endif()

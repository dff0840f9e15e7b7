# SPDX-License-Identifier: Apache-2.0
# Finds UCX, headers and libucp, libucs, libucm: UCX_ROOT if it is set, the PyPI package libucx-cu13 of .venv or of Python_EXECUTABLE's
# environment or of a build by pip, then NANET_UCX_PREFIX, with which an installed nanet was built, then the system or a vendor's in /opt/ucx (1.18 is
# needed; Debian 12 has 1.13). Target: UCX::ucp.
file(GLOB ucx_hints "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/libucx")
if(Python_EXECUTABLE)
  cmake_path(GET Python_EXECUTABLE PARENT_PATH ucx_python)
  file(GLOB ucx_more "${ucx_python}/../lib/python3*/site-packages/libucx")
  list(APPEND ucx_hints ${ucx_more})
endif()
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h HINTS ${ucx_hints} ${NANET_UCX_PREFIX} PATHS /opt/ucx PATH_SUFFIXES include libucx/include)
# Headers of one installation with the library of another must not be mixed.
if(UCX_INCLUDE_DIR)
  cmake_path(GET UCX_INCLUDE_DIR PARENT_PATH ucx_prefix)
  find_library(UCX_LIBRARY NAMES ucp HINTS "${ucx_prefix}/lib" "${ucx_prefix}/lib64")
  find_library(UCX_UCS_LIBRARY NAMES ucs HINTS "${ucx_prefix}/lib" "${ucx_prefix}/lib64")
  find_library(UCX_UCM_LIBRARY NAMES ucm HINTS "${ucx_prefix}/lib" "${ucx_prefix}/lib64")
  if(EXISTS "${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h")
    file(STRINGS "${UCX_INCLUDE_DIR}/ucp/api/ucp_version.h" ucx_version REGEX "UCP_API_(MAJOR|MINOR) +[0-9]+")
    string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2" UCX_VERSION "${ucx_version}")
  endif()
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(UCX
  REASON_FAILURE_MESSAGE "install libucx-cu13 from PyPI into .venv, or set UCX_ROOT"
  VERSION_VAR UCX_VERSION
  REQUIRED_VARS UCX_LIBRARY UCX_UCS_LIBRARY UCX_UCM_LIBRARY UCX_INCLUDE_DIR)
if(UCX_FOUND AND NOT TARGET UCX::ucp)
  add_library(UCX::ucs UNKNOWN IMPORTED)
  set_target_properties(UCX::ucs PROPERTIES IMPORTED_LOCATION "${UCX_UCS_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${UCX_INCLUDE_DIR}")
  add_library(UCX::ucm UNKNOWN IMPORTED)
  set_target_properties(UCX::ucm PROPERTIES IMPORTED_LOCATION "${UCX_UCM_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${UCX_INCLUDE_DIR}")
  add_library(UCX::ucp UNKNOWN IMPORTED)
  set_target_properties(UCX::ucp PROPERTIES
    IMPORTED_LOCATION "${UCX_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${UCX_INCLUDE_DIR}" INTERFACE_LINK_LIBRARIES "UCX::ucs;UCX::ucm")
endif()

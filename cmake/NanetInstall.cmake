# SPDX-License-Identifier: Apache-2.0
# `cmake --install BUILD --component development`: headers, static libraries as nanet::NAME for find_package(nanet), and nanet.pc for pkg-config.
# Modules of links lie beside the libraries, where the system's loader looks. The simulator of the gateware is a module only.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(libraries ${NANET_LIBRARIES})
list(REMOVE_ITEM libraries nanet_emulate nanet_l0tp nanet_ranks nanet_stencil nanet_tiles nanet_trigger)  # have no headers in include/nanet: for our programs
set(installed ${libraries})
if(NANET_CUDA)
  list(APPEND installed nanet_gpu)
endif()
foreach(back_end IN LISTS NANET_BACK_ENDS)
  install(TARGETS nanet_${back_end}_module LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  if(NOT back_end STREQUAL "link_gateware")
    list(APPEND installed nanet_${back_end})
  endif()
endforeach()
foreach(library IN LISTS installed)
  target_include_directories(${library} INTERFACE "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
endforeach()

add_custom_target(nanet_libraries DEPENDS ${installed})
foreach(back_end IN LISTS NANET_BACK_ENDS)
  add_dependencies(nanet_libraries nanet_${back_end}_module)
endforeach()
set(config "${CMAKE_INSTALL_LIBDIR}/cmake/nanet")
install(TARGETS ${installed} EXPORT nanetTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(EXPORT nanetTargets NAMESPACE nanet:: DESTINATION "${config}" COMPONENT development)
install(DIRECTORY include/nanet DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT development)
configure_package_config_file(cmake/nanetConfig.cmake.in nanetConfig.cmake INSTALL_DESTINATION "${config}")
write_basic_package_version_file(nanetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
file(GLOB find_modules cmake/Find*.cmake)
install(FILES "${PROJECT_BINARY_DIR}/nanetConfig.cmake" "${PROJECT_BINARY_DIR}/nanetConfigVersion.cmake"
        cmake/NanetPlugin.cmake ${find_modules} DESTINATION "${config}" COMPONENT development)

# pkg-config's list has what needs no library but the system's C++: not remote memory, nor GPU code, which CMake users get by name.
set(nanet_pc_libraries ${libraries})
list(REMOVE_ITEM nanet_pc_libraries nanet_rdma)
list(REVERSE nanet_pc_libraries)  # users before what they use
list(TRANSFORM nanet_pc_libraries PREPEND "-l")
list(JOIN nanet_pc_libraries " " nanet_pc_libraries)
if(NOT NANET_CUDA)
  # Relative to the file, so that --prefix at the installation is as good as CMAKE_INSTALL_PREFIX.
  file(RELATIVE_PATH nanet_pc_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
  configure_file(cmake/nanet.pc.in nanet.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/nanet.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endif()

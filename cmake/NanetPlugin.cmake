# SPDX-License-Identifier: Apache-2.0
# nanet_plugin(NAME SOURCE...): libNAME.so, a plug-in with kinds of links, protocols and processors (nanet/engine/plugin.hpp). It has nanet's libraries
# in itself and shows its entry point alone, not even the templates of the C++ library: who loads it has the same, with variables of its own.
function(nanet_plugin name)
  set(shown "${CMAKE_CURRENT_BINARY_DIR}/nanet_plugin.map")
  file(CONFIGURE OUTPUT "${shown}" CONTENT "{ global: nanet_plugin; local: *; };\n" @ONLY)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE nanet::engine)
  set_target_properties(${name} PROPERTIES PREFIX lib CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS "${shown}")
  target_link_options(${name} PRIVATE "LINKER:--version-script=${shown}")
endfunction()

# SPDX-License-Identifier: Apache-2.0
# nanet_plugin(NAME SOURCE...): libNAME.so, a plug-in with kinds of links, protocols and processors (nanet/engine/plugin.hpp). It has nanet's libraries
# in itself and shows none of their symbols: who loads it has the same ones, with variables of its own.
function(nanet_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE nanet::engine)
  set_target_properties(${name} PROPERTIES PREFIX lib CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_link_options(${name} PRIVATE "LINKER:--exclude-libs,ALL")
endfunction()

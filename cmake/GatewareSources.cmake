# SPDX-License-Identifier: Apache-2.0
# Writes FOLDER/Vnic_all.cpp, which includes all that Verilator made: their names are known only afterwards.
file(GLOB parts "${FOLDER}/Vnic*.cpp")
list(REMOVE_ITEM parts "${FOLDER}/Vnic_all.cpp")
set(text "")
foreach(part IN LISTS parts)
  string(APPEND text "#include \"${part}\"\n")
endforeach()
file(WRITE "${FOLDER}/Vnic_all.cpp" "${text}")

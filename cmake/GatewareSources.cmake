# SPDX-License-Identifier: Apache-2.0
# Writes FOLDER/VTOP_all.cpp, which includes all that Verilator made: their names are known only afterwards.
file(GLOB parts "${FOLDER}/V${TOP}*.cpp")
list(REMOVE_ITEM parts "${FOLDER}/V${TOP}_all.cpp")
set(text "")
foreach(part IN LISTS parts)
  string(APPEND text "#include \"${part}\"\n")
endforeach()
file(WRITE "${FOLDER}/V${TOP}_all.cpp" "${text}")

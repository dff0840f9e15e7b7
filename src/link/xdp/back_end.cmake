# SPDX-License-Identifier: Apache-2.0
# What link/xdp takes beside its sources: clang compiles the XDP program for the kernel's machine, and its object becomes bytes of the library.
find_program(NANET_BPF_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
if(NOT NANET_BPF_CLANG)
  nanet_refuse(NANET_XDP "no clang, which compiles the XDP program" "install clang")
endif()

set(bpf_flags -O2 -g -target bpf -mcpu=v2 -Wall -Wextra -Werror)  # v2: what Linux 5.9 takes
foreach(include IN LISTS NANET_XDP_INCLUDE_DIRS)
  list(APPEND bpf_flags "-I${include}")
endforeach()
if(CMAKE_LIBRARY_ARCHITECTURE)
  list(APPEND bpf_flags -idirafter "/usr/include/${CMAKE_LIBRARY_ARCHITECTURE}")  # asm/types.h of Debian and Ubuntu
endif()

set(bpf_folder "${PROJECT_BINARY_DIR}/xdp")
set(bpf_object "${bpf_folder}/steer.bpf.o")
file(MAKE_DIRECTORY "${bpf_folder}")
# Once now, to say in one line what is missing: the kernel's headers, or BPF in clang.
execute_process(COMMAND "${NANET_BPF_CLANG}" ${bpf_flags} -c "${folder}/steer.bpf.c" -o "${bpf_object}"
                RESULT_VARIABLE bpf_result ERROR_VARIABLE bpf_error OUTPUT_QUIET)
if(NOT bpf_result EQUAL 0)
  string(REGEX MATCH "[^\n]*error:[^\n]*" bpf_error "${bpf_error}")
  nanet_refuse(NANET_XDP "${NANET_BPF_CLANG} cannot compile the XDP program: ${bpf_error}" "install clang, libbpf-dev and linux-libc-dev")
endif()

add_custom_command(
  OUTPUT "${bpf_folder}/steer_object.cpp"
  COMMAND "${NANET_BPF_CLANG}" ${bpf_flags} -c "${folder}/steer.bpf.c" -o "${bpf_object}"
  COMMAND "${CMAKE_COMMAND}" -D "OBJECT=${bpf_object}" -D "SOURCE=${bpf_folder}/steer_object.cpp" -P "${folder}/embed.cmake"
  DEPENDS "${folder}/steer.bpf.c" "${folder}/steer.h" "${folder}/embed.cmake"
  COMMENT "XDP program"
  VERBATIM)
list(APPEND sources "${bpf_folder}/steer_object.cpp")

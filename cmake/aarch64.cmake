# SPDX-License-Identifier: Apache-2.0
# For a 64-bit Arm machine, with the cross-compiler of Debian and Ubuntu (g++-aarch64-linux-gnu). Tests run under qemu if it is there.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE NEVER)
find_program(NANET_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(NANET_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${NANET_QEMU};-L;/usr/aarch64-linux-gnu")
endif()

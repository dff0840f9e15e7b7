# SPDX-License-Identifier: Apache-2.0
# cmake -D OBJECT=FILE -D SOURCE=FILE.cpp -P embed.cmake: writes a C++ source that holds the bytes of OBJECT (steer_object.hpp).
file(READ "${OBJECT}" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
file(WRITE "${SOURCE}" "// SPDX-License-Identifier: Apache-2.0
// Made by embed.cmake.
#include \"link/xdp/steer_object.hpp\"

namespace nanet::link {

alignas(8) static const unsigned char kBytes[] = {
${bytes}
};
const std::span<const unsigned char> kSteerObject(kBytes, sizeof kBytes);

}  // namespace nanet::link
")

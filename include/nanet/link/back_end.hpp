// SPDX-License-Identifier: Apache-2.0
// Links that need a library of the system, or a simulator. Each is a back-end with one C entry point, nanet_link_NAME; src/link/open_NAME.cpp says
// what it takes.
//
// A program that is linked to the CMake target nanet_link_NAME contains the back-end. Any other loads libnanet_link_NAME.so when it
// opens the first such link: from the folder of the program or library that holds nanet, else from where the system keeps libraries. So
// nanet starts where those libraries are not installed. What was loaded stays until the process ends.
//
// Thread rules: any thread; set-up, it locks and makes system calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "nanet/link/link.hpp"

namespace nanet::link {

// What an entry point returns. Version and size say whether the module belongs to this nanet.
struct BackEnd {
  const char* version;  // "nanet 1.2.3"
  std::size_t config_bytes;
  std::unique_ptr<Link> (*open)(const void* config);  // of the back-end's own type; throws SetupError
};

// What a kind of link says of its back-end.
struct BackEndPlace {
  const char* name;            // NAME of the entry point and the module
  const BackEnd* (*linked)();  // the entry point, a weak symbol: null if the program is not linked to the back-end
  std::size_t config_bytes;    // of the configuration that open() takes
  const char* to_build;        // what it takes, for a person
  const char* to_run;
};

// Whether this build has it: linked in, or its module is found. Loads nothing that lies beside nanet.
bool has_back_end(const BackEndPlace& place);

// Loads it if need be. Empty: links of this kind can be opened; else "why; suggestion".
std::string back_end_problem(const BackEndPlace& place);

// Loads it if need be, and opens a link. name: of the link. config: of the back-end's own type. Throws SetupError.
std::unique_ptr<Link> open_back_end(const BackEndPlace& place, const std::string& name, const void* config);

}  // namespace nanet::link

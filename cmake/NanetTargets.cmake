# SPDX-License-Identifier: Apache-2.0
# How every target of this project is made. A folder's sources are found by pattern: adding a file needs no edit here.
# These variables are for this folder and those below: a project that takes nanet in with add_subdirectory keeps its own.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# How nanet's own code is compiled. Linked privately and not installed, so that none of it reaches the code of a user.
add_library(nanet_options INTERFACE)
# No contraction: a fit must give the same bits as a scalar loop, a vector loop and a GPU kernel.
target_compile_options(nanet_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false>)
if(PROJECT_IS_TOP_LEVEL OR NANET_WERROR)
  target_compile_options(nanet_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow
    -Wno-missing-field-initializers>)  # configurations are written with designated initialisers: what is left out has a default
endif()
if(NANET_WERROR)
  target_compile_options(nanet_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # These come from the optimiser, depend on what it inlines, and are wrong now and then: shown, but no reason to stop.
    foreach(warning maybe-uninitialized mismatched-new-delete array-bounds stringop-overflow stringop-overread restrict)
      target_compile_options(nanet_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-error=${warning}>)
    endforeach()
  endif()
endif()
if(NANET_SANITIZE)
  target_compile_options(nanet_options INTERFACE -fsanitize=${NANET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(nanet_options INTERFACE -fsanitize=${NANET_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NANET_SANITIZE MATCHES "address")
    # GCC 13.2 lays vectors of 64 bytes at unaligned places of the stack that this option would make (GCC bug 110027).
    target_compile_options(nanet_options INTERFACE --param=asan-use-after-return=0)
  endif()
endif()

# What nearly every source includes, read once: a third of the time to compile one goes into these.
set(NANET_STANDARD_HEADERS <algorithm> <array> <atomic> <bit> <cmath> <cstddef> <cstdint> <cstring> <limits> <memory> <optional> <span> <string>
    <string_view> <utility> <vector>)

# nanet_unity(TARGET): with NANET_UNITY its sources are compiled eight at a time, which takes half as long. So no two files of a library may have
# something of the same name, not even in anonymous namespaces. What includes itself again, needs a setting before its headers, has options of its own,
# or is made by the build stays alone. CMake's own UNITY_BUILD names absolute paths, so a compiler cache knows nothing again in another folder.
# What runs engines is compiled apart from the rest of nanet_engine, of which a plug-in takes what it names: not all links, and not CUDA.
function(nanet_unity target)
  if(NOT NANET_UNITY)
    return()
  endif()
  get_target_property(paths ${target} SOURCES)
  set(sources "")
  set(units "")
  foreach(path IN LISTS paths)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${path}" alone)
    get_source_file_property(definitions "${path}" COMPILE_DEFINITIONS)
    if(NOT path MATCHES "\\.cpp$")
      set(alone YES)
    elseif(NOT alone AND NOT definitions)
      file(STRINGS "${path}" alone REGEX "^#define (HWY_TARGET_INCLUDE|ALLOW_EXPERIMENTAL_API)" LIMIT_COUNT 1)
    endif()
    if(alone OR definitions)
      list(APPEND sources "${path}")
      continue()
    endif()
    set(group ${target})
    if(path MATCHES "/engine/(links/.*|checks|declared_protocol|engine|loops|port|set_up)\\.cpp$")
      set(group ${target}_runs)
    endif()
    list(LENGTH of_${group} taken)
    math(EXPR unit "${taken} / 8")
    list(APPEND of_${group} "${path}")
    list(APPEND units ${group}_${unit})
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    string(APPEND text_${group}_${unit} "#include \"${path}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit IN LISTS units)
    set(source "${PROJECT_BINARY_DIR}/unity/${unit}.cpp")
    file(CONFIGURE OUTPUT "${source}" CONTENT "${text_${unit}}" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${sources}")
  target_compile_options(${target} PRIVATE "-iquote${PROJECT_SOURCE_DIR}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # which takes a source for a header when it is included
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# nanet_own_library(TARGET): what every library of nanet asks of those who link to it, and how it is compiled itself.
function(nanet_own_library target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>" PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC Threads::Threads PRIVATE $<BUILD_INTERFACE:nanet_options> $<BUILD_INTERFACE:nanet_highway>)
  if(target STREQUAL "nanet_base")  # the first
    target_precompile_headers(${target} PRIVATE ${NANET_STANDARD_HEADERS})
  else()
    target_precompile_headers(${target} REUSE_FROM nanet_base)
  endif()
  string(REGEX REPLACE "^nanet_" "" name ${target})
  add_library(nanet::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
endfunction()

# nanet_library(NAME [DEPENDENCY...]): library nanet_NAME from src/NAME, linked to nanet_DEPENDENCY (or to a target named with ::).
# NANET_LIBRARIES lists them, each after those that it uses.
function(nanet_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp")
  file(GLOB openers CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/open_*.cpp")
  foreach(opener IN LISTS openers)  # open_NAME.cpp opens what is in the folder NAME, which nanet_back_end makes
    string(REGEX REPLACE "open_([a-z0-9_]+)\\.cpp$" "\\1/" folder "${opener}")
    string(REGEX REPLACE "([.+])" "\\\\\\1" folder "${folder}")
    list(FILTER sources EXCLUDE REGEX "^${folder}")
  endforeach()
  add_library(nanet_${name} STATIC ${sources})
  nanet_own_library(nanet_${name})
  nanet_unity(nanet_${name})
  set(NANET_LIBRARIES ${NANET_LIBRARIES} nanet_${name} PARENT_SCOPE)
  foreach(dependency IN LISTS ARGN)
    if(dependency MATCHES "::")
      target_link_libraries(nanet_${name} PUBLIC ${dependency})
    else()
      target_link_libraries(nanet_${name} PUBLIC nanet_${dependency})
    endif()
  endforeach()
endfunction()

# nanet_version_text(TARGET): version_text.hpp for one source of TARGET, looked at in each build and written if the commit is another.
function(nanet_version_text target)
  set(folder "${PROJECT_BINARY_DIR}/version")
  add_custom_target(nanet_version_text
    COMMAND "${CMAKE_COMMAND}" -D "SOURCE=${PROJECT_SOURCE_DIR}" -D "VERSION=${PROJECT_VERSION}" -D "COMMIT=${NANET_COMMIT}"
            -D "HEADER=${folder}/version_text.hpp" -P "${PROJECT_SOURCE_DIR}/cmake/VersionText.cmake"
    BYPRODUCTS "${folder}/version_text.hpp"
    COMMENT "version"
    VERBATIM)
  add_dependencies(${target} nanet_version_text)
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()

# nanet_refuse(OPTION WHY SUGGESTION): what was asked for cannot be built. One line, which CMake does not break.
function(nanet_refuse option why suggestion)
  message(FATAL_ERROR " ${option} is on and cannot be built (${why}) ${suggestion}, or set ${option}=OFF")
endfunction()

# nanet_back_end(LIBRARY NAME MODULE...): a part of nanet_LIBRARY that needs libraries of the system, from src/LIBRARY/NAME. pkg-config must
# find every MODULE; one with nanet_ in its name is a target. Made twice of the same objects: library nanet_LIBRARY_NAME, for programs that
# shall have it in themselves, and libnanet_LIBRARY_NAME.so, which any other program loads when it wants it. So nanet_LIBRARY is the same with
# and without. A back_end.cmake in the folder adds what more it takes to `sources`. NANET_BACK_ENDS lists what there is.
function(nanet_back_end library name)
  set(folder "${PROJECT_SOURCE_DIR}/src/${library}/${name}")
  string(TOUPPER "${name}" upper)
  set(modules ${ARGN})
  set(targets ${ARGN})
  list(FILTER modules EXCLUDE REGEX "^nanet_")
  list(FILTER targets INCLUDE REGEX "^nanet_")
  if(modules)
    find_package(PkgConfig QUIET)
    if(NOT PKG_CONFIG_FOUND)
      nanet_refuse("NANET_${upper}" "no pkg-config" "install pkg-config")
    endif()
    pkg_check_modules(NANET_${upper} QUIET ${modules})
    if(NOT NANET_${upper}_FOUND)
      list(TRANSFORM modules APPEND "-dev" OUTPUT_VARIABLE packages)
      list(JOIN modules ", " modules)
      list(JOIN packages " " packages)
      nanet_refuse("NANET_${upper}" "pkg-config does not find all of ${modules}" "install ${packages}")
    endif()
    # CMake 3.28 and newer name the compiler's own folders too: given by -isystem they hide <stdlib.h> from <cstdlib>.
    list(REMOVE_ITEM NANET_${upper}_INCLUDE_DIRS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  endif()
  file(GLOB sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  if(EXISTS "${folder}/back_end.cmake")
    include("${folder}/back_end.cmake")
  endif()
  message(STATUS "back-end ${name}: on")
  set(target nanet_${library}_${name})
  add_library(${target} STATIC ${sources})
  nanet_own_library(${target})
  nanet_unity(${target})
  # What the modules want from a compiler (DPDK: an instruction set, a header before all others) is for these sources only.
  list(TRANSFORM NANET_${upper}_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE options)
  if(NANET_${upper}_CFLAGS_OTHER)  # another instruction set: what was precompiled does not fit
    list(APPEND options ${NANET_${upper}_CFLAGS_OTHER})
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  target_compile_options(${target} PRIVATE ${options})
  target_compile_definitions(${target} PUBLIC NANET_${upper}=1)
  target_link_libraries(${target} PUBLIC nanet_${library} PRIVATE ${targets} ${NANET_${upper}_LDFLAGS})
  target_link_options(${target} INTERFACE "LINKER:-u,${target}")  # the entry point: else no linker would look into this library
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

  add_library(${target}_module MODULE $<TARGET_OBJECTS:${target}>)
  set_target_properties(${target}_module PROPERTIES OUTPUT_NAME ${target} LINKER_LANGUAGE CXX)
  target_link_libraries(${target}_module PRIVATE nanet_options nanet_${library} ${targets} ${NANET_${upper}_LDFLAGS})
  target_link_options(${target}_module PRIVATE "LINKER:--exclude-libs,ALL")
  set(NANET_BACK_ENDS ${NANET_BACK_ENDS} ${library}_${name} PARENT_SCOPE)
  set(NANET_${upper}_OPTIONS "${options}" PARENT_SCOPE)  # for a test of its inside
endfunction()

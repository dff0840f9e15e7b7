# SPDX-License-Identifier: Apache-2.0
# The unit tests: one program a folder of tests/unit.

# A test is compiled often and runs briefly, and most of the time goes into headers that all share. Only the tests' own code is
# less optimised.
# A program that runs nothing, since what is compiled for a library does not fit one.
add_executable(nanet_test_headers "${PROJECT_SOURCE_DIR}/tests/unit/headers.cpp")
target_link_libraries(nanet_test_headers PRIVATE nanet_options nanet_highway GTest::gtest_main)
target_compile_features(nanet_test_headers PRIVATE cxx_std_20)
target_compile_options(nanet_test_headers PRIVATE $<$<CONFIG:Release>:-Og>)
target_precompile_headers(nanet_test_headers PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/headers.hpp")

# nanet_unit_tests(NAME [NO_THREADS] [SLOW] [OPTIMISED] [SHARDS N] [LOCK OF] [MORE...]): program test_NAME from tests/unit/NAME, linked to nanet_NAME if there is one
# and to each nanet_MORE.
#   NO_THREADS  starts no thread (scripts/check_layers.py watches its library): there is nothing in it for ThreadSanitizer
#   SLOW        left out of `make test-quick`
#   OPTIMISED   computes for a minute: compiled like the library
#   SHARDS      as so many tests for CTest, which runs them side by side
#   LOCK        of those with threads that have the same one, CTest runs one at a time, and each of its shards, beside all others. Without it
#               they share `network`: they count what the machine's network and its clock do
function(nanet_unit_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_THREADS;SLOW;OPTIMISED" "SHARDS;LOCK" "")
  if(arg_NO_THREADS AND NANET_SANITIZE MATCHES "thread")
    message(STATUS "test_${name}: not built (no thread in it)")
    return()
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/tests/unit/${name}/*.cpp")
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE GTest::gtest_main nanet_highway)
  if(arg_OPTIMISED)
    target_precompile_headers(test_${name} PRIVATE "${PROJECT_SOURCE_DIR}/tests/unit/headers.hpp")
  else()
    target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    target_precompile_headers(test_${name} REUSE_FROM nanet_test_headers)
  endif()
  # g++ takes the counting operator delete of allocation_count.hpp for one that does not belong to operator new.
  target_compile_options(test_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
  foreach(more IN LISTS name arg_UNPARSED_ARGUMENTS)
    if(TARGET nanet_${more})
      target_link_libraries(test_${name} PRIVATE nanet_${more})
    endif()
  endforeach()
  target_compile_definitions(test_${name} PRIVATE NANET_VECTORS="${PROJECT_SOURCE_DIR}/tests/vectors")
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  if(NOT arg_LOCK)
    set(arg_LOCK network)
  endif()
  math(EXPR last "${arg_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(test unit.${name})
    set(environment UCX_MEM_BISTRO_GRACE_DURATION=1ms)  # as in tests/conftest.py
    if(arg_SHARDS GREATER 1)
      set(test unit.${name}.${shard})
      list(APPEND environment "GTEST_TOTAL_SHARDS=${arg_SHARDS}" "GTEST_SHARD_INDEX=${shard}")
    endif()
    if(NANET_SANITIZE MATCHES "thread")  # UCX would patch mmap, which ThreadSanitizer has patched already
      list(APPEND environment UCX_MEM_MMAP_HOOK_MODE=none "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan_suppressions.txt")
    endif()
    add_test(NAME ${test} COMMAND test_${name})
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 ENVIRONMENT "${environment}")  # under a sanitizer the ring finders take ten times as long
    if(NOT arg_NO_THREADS)
      set_tests_properties(${test} PROPERTIES RESOURCE_LOCK ${arg_LOCK}.${shard})
    endif()
    if(arg_SLOW)
      set_tests_properties(${test} PROPERTIES LABELS slow COST 100)  # begun first
    endif()
  endforeach()
endfunction()

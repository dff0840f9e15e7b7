# SPDX-License-Identifier: Apache-2.0
# GPU code: kernels are glue in src/gpu/kernels, and compute what the host functions compute, with the same bits (-fmad=false).
#
# Compiler: CMAKE_CUDA_COMPILER if it is set, else what scripts/find_nvcc.sh finds (a toolkit, or the compiler from PyPI).
# Architectures: machine code for sm_80, sm_90 and sm_100, and PTX of 90, which the driver compiles for any other GPU that is newer.
# Each costs a third of the compile time: of about four minutes of one core for all (two on two cores).
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90 100-real CACHE STRING "GPUs to compile for, as CMake names them")
endif()
if(NOT CMAKE_CUDA_COMPILER)
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/find_nvcc.sh" OUTPUT_VARIABLE nvcc OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT nvcc)
    message(FATAL_ERROR "no CUDA compiler (neither $CUDACXX, nor PATH, nor /usr/local/cuda, nor .venv has an nvcc of version 13 or newer) "
      "run make cuda, which fetches one, or install the CUDA toolkit")
  endif()
  set(CMAKE_CUDA_COMPILER "${nvcc}" CACHE FILEPATH "CUDA compiler")
endif()
# The compiler from PyPI keeps its libraries in lib, and itself looks in lib64.
cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH cuda_root)
cmake_path(GET cuda_root PARENT_PATH cuda_root)
if(EXISTS "${cuda_root}/lib/libcudart_static.a" AND NOT EXISTS "${cuda_root}/lib64" AND NOT CMAKE_CUDA_FLAGS MATCHES "${cuda_root}/lib")
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -L${cuda_root}/lib" CACHE STRING "flags of the CUDA compiler" FORCE)
endif()
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "${CMAKE_CUDA_COMPILER} is of version ${CMAKE_CUDA_COMPILER_VERSION} (13 or newer is needed) "
    "set CMAKE_CUDA_COMPILER to a newer one, or run make cuda")
endif()
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)

# Each finder of NANET_FINDERS is compiled by itself, side by side with the others.
set(finder_list "${PROJECT_SOURCE_DIR}/include/nanet/rich/finder.hpp")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${finder_list}")
file(READ "${finder_list}" finder_list)
string(REGEX MATCHALL "  X\\([a-z]+, [A-Za-z]+Cuts, " NANET_FINDERS "${finder_list}")
list(TRANSFORM NANET_FINDERS REPLACE "^  X\\(([a-z]+),.*" "\\1")

# nanet_cuda_library(NAME [DEPENDENCY...]): as nanet_library, with the .cu files of src/NAME/kernels; a .cu.in there is made once for each finder.
function(nanet_cuda_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp" "${PROJECT_SOURCE_DIR}/src/${name}/*.cu")
  file(GLOB templates CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/kernels/*.cu.in")
  foreach(template IN LISTS templates)
    cmake_path(GET template STEM kernels)
    foreach(finder IN LISTS NANET_FINDERS)
      set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}/${kernels}_${finder}.cu")
      configure_file("${template}" "${source}" @ONLY)
      list(APPEND sources "${source}")
    endforeach()
  endforeach()
  add_library(nanet_${name} STATIC ${sources})
  nanet_own_library(nanet_${name})
  target_include_directories(nanet_${name} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  foreach(dependency IN LISTS ARGN)
    target_link_libraries(nanet_${name} PUBLIC nanet_${dependency})
  endforeach()
  target_compile_options(nanet_${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  # Static: a program with GPU code starts on a machine without a GPU too.
  set_target_properties(nanet_${name} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
  list(JOIN CMAKE_CUDA_ARCHITECTURES " " architectures)
  target_compile_definitions(nanet_${name} PRIVATE NANET_CUDA_ARCHITECTURES="${architectures}" PUBLIC NANET_CUDA=1)
endfunction()

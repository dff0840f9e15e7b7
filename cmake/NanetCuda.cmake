# SPDX-License-Identifier: Apache-2.0
# GPU code: kernels are glue in src/gpu/kernels, and compute what the host functions compute, with the same bits (-fmad=false).
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)  # 90 also as PTX, which the driver compiles for anything newer
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)

# Each is compiled by itself, side by side with the others.
set(NANET_FINDERS math pomh domh hough tripls histogram almagest triplets mixture)

# nanet_cuda_library(NAME [DEPENDENCY...]): as nanet_library, with the .cu files of src/NAME/kernels.
function(nanet_cuda_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/${name}/*.cpp" "${PROJECT_SOURCE_DIR}/src/${name}/*.cu")
  foreach(finder IN LISTS NANET_FINDERS)
    set(source "${CMAKE_CURRENT_BINARY_DIR}/${name}/finder_kernels_${finder}.cu")
    configure_file("${PROJECT_SOURCE_DIR}/src/${name}/kernels/finder_kernels.cu.in" "${source}" @ONLY)
    list(APPEND sources "${source}")
  endforeach()
  add_library(nanet_${name} STATIC ${sources})
  target_include_directories(nanet_${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_include_directories(nanet_${name} SYSTEM PRIVATE ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES})
  target_link_libraries(nanet_${name} PUBLIC nanet_options)
  foreach(dependency IN LISTS ARGN)
    target_link_libraries(nanet_${name} PUBLIC nanet_${dependency})
  endforeach()
  target_compile_options(nanet_${name} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  set_target_properties(nanet_${name} PROPERTIES CUDA_RUNTIME_LIBRARY Static)
endfunction()

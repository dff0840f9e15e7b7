// SPDX-License-Identifier: Apache-2.0
// Marks functions that compile for the host and, under nvcc, for the GPU as well.
#pragma once

#ifdef __CUDACC__
#define NANET_HD __host__ __device__
#else
#define NANET_HD
#endif

// For code that should stay in a GPU's instruction caches. NANET_DEVICE_CALL marks a long function that is called from several places: there it is called, not
// taken in line. NANET_UNROLL(times) stands before a loop that is to be unrolled so often there, and not more.
#ifdef __CUDA_ARCH__
#define NANET_DEVICE_CALL __noinline__
#define NANET_PRAGMA(text) _Pragma(#text)
#define NANET_UNROLL(times) NANET_PRAGMA(unroll times)
#else
#define NANET_DEVICE_CALL
#define NANET_UNROLL(times)
#endif

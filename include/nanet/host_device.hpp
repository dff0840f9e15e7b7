// SPDX-License-Identifier: Apache-2.0
// Marks functions that compile for the host and, under nvcc, for the GPU as well.
#pragma once

#ifdef __CUDACC__
#define NANET_HD __host__ __device__
#else
#define NANET_HD
#endif

// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer keeps 256 MiB of freed memory from being used again. A target that makes its tables for each input would get pages that were
// never touched each time, and spend its time in the kernel: 4 MiB are more than any input frees.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=4:malloc_context_size=8"; }

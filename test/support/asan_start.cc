// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer asks a program for this before its runtime starts (cmake/resmgr.cmake).
#include <cstdint>

#include <sys/mman.h>

// The memory of the program's globals without a value, by the linker.
extern "C" char __bss_start[];
extern "C" char _end[];

// Runs before the program's memory may be checked. ASAN_OPTIONS override what it returns.
//
// The runtime keeps the places of allocations in two tables of 4 MB each, which are globals, and
// its search for leaks reads all of them. In huge pages, where the kernel has any, that takes a
// fifth less time from the start to the end of the daemon (140 ms, 110 ms; 5,900 page faults,
// 3,900).
//
// The last twelve of the 30 frames that it keeps of each allocation tell the place; the others take
// a tenth of the time of random lives. Freed memory is kept from use until 32 MB more are freed;
// the usual 256 MB take an eighth of that time, for fresh pages. Frames of functions that have
// ended are kept from use within 128 KB for each size; the usual 1 MB takes 7 % of the time of a
// start.
extern "C" __attribute__((no_sanitize("address", "undefined"))) const char*
__asan_default_options() {
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  const uintptr_t begin =
      (reinterpret_cast<uintptr_t>(__bss_start) + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(_end) / kHugePage * kHugePage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return "detect_stack_use_after_return=1:strict_string_checks=1:malloc_context_size=12:"
         "quarantine_size_mb=32:max_uar_stack_size_log=17";
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

// RESMGR_ASAN and RESMGR_TSAN are 1 if AddressSanitizer or ThreadSanitizer instruments this source,
// else 0. GCC defines macros for this, clang has __has_feature.
#if defined(__has_feature)
#define RESMGR_ASAN __has_feature(address_sanitizer)
#define RESMGR_TSAN __has_feature(thread_sanitizer)
#else
#if defined(__SANITIZE_ADDRESS__)
#define RESMGR_ASAN 1
#else
#define RESMGR_ASAN 0
#endif
#if defined(__SANITIZE_THREAD__)
#define RESMGR_TSAN 1
#else
#define RESMGR_TSAN 0
#endif
#endif

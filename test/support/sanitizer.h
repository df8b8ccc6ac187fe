// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace resmgr::test {

// Memory and times mean nothing then, and what only counts values through takes minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace resmgr::test
